/* Records per day, as bars. */

const NAMESPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, BELOW, ABOVE] = [720, 190, 30, 28];
const DAY = 86_400_000;

function draw(tag, attributes, text = "") {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

/** An SVG of {"2026-11-01": 12, ...}: every day from the first to the last has its place, at most the last 90. */
export function chart(byDay) {
  const days = Object.keys(byDay).sort();
  const last = Date.parse(days.at(-1));
  const first = Math.max(Date.parse(days[0]), last - 89 * DAY);
  const all = Array.from({ length: (last - first) / DAY + 1 }, (_, i) => new Date(first + i * DAY).toISOString().slice(0, 10));
  const most = Math.max(...all.map((day) => byDay[day] ?? 0));
  const step = WIDTH / Math.max(all.length, 14);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  svg.append(draw("title", {}, `Records per day: ${days.slice(-90).map((day) => `${day} ${byDay[day]}`).join(", ")}`));
  svg.append(draw("line", { x1: 0, x2: WIDTH, y1: HEIGHT - BELOW, y2: HEIGHT - BELOW }));
  all.forEach((day, i) => {
    const height = ((byDay[day] ?? 0) / most) * (HEIGHT - BELOW - ABOVE);
    const bar = draw("rect", { x: i * step + 1, y: HEIGHT - BELOW - height, width: Math.max(step - 2, 1), height, rx: 2 });
    bar.append(draw("title", {}, `${day}: ${byDay[day] ?? 0}`));
    svg.append(bar);
  });
  svg.append(draw("text", { x: 0, y: HEIGHT - 8 }, all[0]), draw("text", { x: 0, y: 19 }, `most on a day: ${most}`));
  if (all.length > 1) svg.append(draw("text", { x: Math.max(all.length * step, 180), y: HEIGHT - 8, "text-anchor": "end" }, all.at(-1)));
  return svg;
}
