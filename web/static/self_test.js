/* What this page finds out about a release with made-up records, whatever its card and audit claim: whether what it gives changes with the
   noise, and how much of a record least squares rebuild from it. As release/self_test.py, with fewer records. */

import { solve } from "./drift.js";
import { fresh } from "./noise.js";

const [LEARNED, JUDGED, PATTERNS, LOOKED_AT, FINE] = [56, 20, 12, 24, 5];
const [REBUILT, HELD, PENALTY] = [0.9, 0.9, 1e-3];

/** Numbers that are the same on every visit. */
function generator(seed) {
  let state = seed;
  const unit = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - unit())) * Math.cos(2 * Math.PI * unit());
}

const list = (many, make) => Array.from({ length: many }, (_, k) => make(k));

/** A smooth pattern over a picture, or any over a row. */
function pattern({ modality, channels, height, width, shape }, normal) {
  if (modality !== "image") return list(shape[0], normal);
  const coarse = list(channels * FINE * FINE, normal);
  const between = (place, size) => (place * (FINE - 1)) / Math.max(1, size - 1);
  return list(channels * height * width, (k) => {
    const [channel, row, column] = [Math.floor(k / (height * width)), Math.floor(k / width) % height, k % width];
    const [down, across] = [between(row, height), between(column, width)];
    const [top, left] = [Math.min(FINE - 2, Math.floor(down)), Math.min(FINE - 2, Math.floor(across))];
    const at = (y, x) => coarse[(channel * FINE + y) * FINE + x];
    const mix = (y) => at(y, left) * (1 - across + left) + at(y, left + 1) * (across - left);
    return mix(top) * (1 - down + top) + mix(top + 1) * (down - top);
  });
}

/** The share of what records were made of that ridge regression rebuilds, of records that it has not seen. */
function rebuilt(rows, wanted) {
  const [known, columns] = [rows.slice(0, LEARNED), rows[0].length];
  const gram = list(columns, (i) => list(columns, (j) => known.reduce((all, row) => all + row[i] * row[j], i === j ? PENALTY : 0)));
  let [missed, all] = [0, 0];
  for (let k = 0; k < wanted[0].length; k++) {
    const weights = solve(gram, list(columns, (i) => known.reduce((sum, row, n) => sum + row[i] * wanted[n][k], 0)));
    for (let n = LEARNED; n < rows.length; n++) {
      missed += (rows[n].reduce((sum, value, i) => sum + value * weights[i], 0) - wanted[n][k]) ** 2;
      all += wanted[n][k] ** 2;
    }
  }
  return 1 - missed / all;
}

/** A random mixture of the released numbers, standardised, with a constant. */
function looked(given, normal) {
  const size = given[0].length;
  const many = Math.min(LOOKED_AT, size);
  const mixing = size > LOOKED_AT ? list(many, () => list(size, normal)) : null;
  const centre = list(size, (k) => given.reduce((all, z) => all + z[k], 0) / given.length);
  const rows = given.map((z) => list(many, (j) => (mixing ? z.reduce((all, value, k) => all + (value - centre[k]) * mixing[j][k], 0) : z[j] - centre[j])));
  const scales = list(many, (j) => Math.max(1e-12, Math.sqrt(rows.reduce((all, row) => all + row[j] ** 2, 0) / rows.length)));
  return rows.map((row) => [...row.map((value, j) => value / scales[j]), 1]);
}

/** A sentence about the release; an error where what was found contradicts what is claimed of it. */
export async function selfTest(release, audit) {
  const { input, noise, output } = release.card;
  const normal = generator(1);
  const size = input.shape.reduce((all, one) => all * (one ?? 1), 1);
  const drawn = () => (noise ? fresh(noise.law, noise.shape.reduce((all, one) => all * one, 1)) : null);
  if (input.modality === "text" || [...input.shape, ...output.shape].includes(null)) return "";
  const patterns = list(Math.min(PATTERNS, size), () => pattern(input, normal));
  const amounts = list(LEARNED + JUDGED, () => list(patterns.length, normal));
  const picture = input.modality === "image";
  const records = amounts.map((parts) => {
    const mixed = list(size, (k) => parts.reduce((all, amount, n) => all + amount * patterns[n][k], 0));
    return picture ? Uint8Array.from(mixed, (value) => Math.max(0, Math.min(255, Math.round(128 + (40 * value) / Math.sqrt(patterns.length))))) : Float32Array.from(mixed);
  });
  if (noise) {
    const [first, second] = [await release.run(records[0], drawn()), await release.run(records[0], drawn())];
    if (first.every((value, k) => value === second[k]))
      throw new Error("Do not take part: the release's card says that noise is added, but what it gives does not change with the noise.");
  }
  const given = [];
  for (const x of records) given.push(Float64Array.from(await release.run(x, drawn())));
  const share = rebuilt(looked(given, normal), amounts);
  const said = `${Math.max(0, Math.round(100 * share))} %`;
  if (share < REBUILT) return `Tested on this device: least squares rebuilt ${said} of made-up records from what leaves; better attacks may rebuild more.`;
  const what = `what leaves is your record in another form: ${said} of made-up records was rebuilt from it by least squares.`;
  if ((audit?.certificates ?? []).some(({ bound }) => typeof bound === "number" && bound < HELD))
    throw new Error(`Do not take part: ${what} The certificate that the campaign shows cannot be true of it.`);
  return `Tested on this device: ${what}`;
}
