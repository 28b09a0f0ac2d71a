/* Whether a record is like those that a release was learned from; the same as release/drift.py. The card holds the mean and covariance of a
   dozen features of its training records. */

const [SUMS, FAR, RIDGE, LEAST] = [8, 1.25, 0.02, 1e-3];

/** SUMS signs of a whole number, the same everywhere: a cheap hash of it. */
export function signs(place) {
  return Array.from({ length: SUMS }, (_, k) => {
    let mixed = (Math.imul(place, 0x9e3779b1) ^ Math.imul(k + 1, 0x85ebca6b)) >>> 0;
    for (const [shift, factor] of [[15, 0x2c1b3c6d], [12, 0x297a2d39]]) mixed = Math.imul(mixed ^ (mixed >>> shift), factor) >>> 0;
    return (mixed ^ (mixed >>> 15)) & 1 ? 1 : -1;
  });
}

function picture(x, { channels, height, width }) {
  const at = (channel, row, column) => x[(channel * height + row) * width + column] / 255;
  const [levels, spreads, edges] = [[], [], []];
  const quarters = [0, 0, 0, 0];
  const [middle, centre] = [Math.floor(height / 2), Math.floor(width / 2)];
  for (let channel = 0; channel < channels; channel++) {
    let [sum, squares, across, down] = [0, 0, 0, 0];
    for (let row = 0; row < height; row++)
      for (let column = 0; column < width; column++) {
        const value = at(channel, row, column);
        sum += value;
        squares += value * value;
        if (column) across += Math.abs(value - at(channel, row, column - 1));
        if (row) down += Math.abs(value - at(channel, row - 1, column));
        const [lower, right] = [row >= middle, column >= centre];
        quarters[2 * lower + right] += value / channels / ((lower ? height - middle : middle) * (right ? width - centre : centre));
      }
    const many = height * width;
    levels.push(sum / many);
    spreads.push(Math.sqrt(Math.max(0, squares / many - (sum / many) ** 2)));
    edges.push(across / (height * (width - 1)) + down / ((height - 1) * width));
  }
  const names = ["brightness", "contrast", "sharpness"].flatMap((name) => Array(channels).fill(name));
  return [[...levels, ...spreads, ...edges, ...quarters], [...names, ...Array(4).fill("layout")]];
}

function row(x) {
  const sums = Array(SUMS).fill(0);
  x.forEach((value, place) => signs(place).forEach((sign, k) => (sums[k] += (sign * value) / Math.sqrt(x.length))));
  const extreme = Math.log1p(x.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  return [[...sums, extreme], [...Array(SUMS).fill("the columns together"), "a single column"]];
}

function text(x) {
  const words = Array.from(x, Number).filter((code) => code !== 0);
  const length = Math.max(1, words.length);
  const sums = Array(SUMS).fill(0);
  for (const code of words) signs(code).forEach((sign, k) => (sums[k] += sign / Math.sqrt(length)));
  const unknown = words.filter((code) => code === 1).length / length;
  return [[Math.log(length), unknown, ...sums], ["length", "unknown words", ...Array(SUMS).fill("the words used")]];
}

/** The features of an encoded record, and what each is about; null for kinds that this page does not take. */
export function features(x, input) {
  if (input.modality === "image") return picture(x, input);
  if (input.modality === "table") return row(x);
  return input.modality === "text" ? text(x) : null;
}

/** The solution of a symmetric system, by elimination. */
export function solve(matrix, right) {
  const rows = matrix.map((line, k) => [...line, right[k]]);
  rows.forEach((line, k) => {
    for (const other of rows.slice(k + 1)) {
      const factor = other[k] / line[k];
      for (let j = k; j < line.length; j++) other[j] -= factor * line[j];
    }
  });
  const solution = Array(rows.length).fill(0);
  for (let k = rows.length - 1; k >= 0; k--) {
    const known = solution.reduce((all, value, j) => (j > k ? all + rows[k][j] * value : all), 0);
    solution[k] = (rows[k].at(-1) - known) / rows[k][k];
  }
  return solution;
}

const fits = (summary, size) =>
  Array.isArray(summary?.mean) && summary.mean.length === size && summary.covariance?.length === size && summary.covariance.every((line) => line?.length === size)
  && summary.usual?.length === 2 && [...summary.mean, ...summary.covariance.flat(), ...summary.usual].every(Number.isFinite);

/** How far a record is from those of the summary, in the units of `usual`. */
export function distance(values, { mean: middle, covariance }) {
  const deviations = covariance.map((line, k) => Math.sqrt(Math.max(line[k], LEAST ** 2)));
  const away = values.map((value, k) => (value - middle[k]) / deviations[k]);
  const correlation = covariance.map((line, k) => line.map((value, j) => value / deviations[k] / deviations[j] + (j === k ? RIDGE : 0)));
  const squares = solve(correlation, away).reduce((all, value, k) => all + value * away[k], 0);
  return { far: Math.sqrt(Math.max(0, squares) / away.length), away };
}

/** A sentence where a record is unlike those that the release was learned from; else an empty text. */
export function drift(card, x) {
  const [values, names] = features(x, card.input) ?? [[], []];
  if (!values.length || !fits(card.typical, values.length)) return "";
  const { far, away } = distance(values, card.typical);
  if (!(far > FAR * card.typical.usual[1])) return "";
  const most = away.reduce((best, value, k) => (Math.abs(value) > Math.abs(away[best]) ? k : best), 0);
  return `Your record is unlike those that the release was learned from, most of all in ${names[most]}: what was measured and certified may not hold here.`;
}
