/* The whole numbers that sizes are made of: shapes, parts of them, and sums with constants; the same as release/graph_values.py. */

import { LARGEST, LIMITS, product } from "./graph_wire.js";

const UNCHANGED = ["Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten"];
const CALCULATED = {
  Add: (a, b) => a + b,
  Sub: (a, b) => a - b,
  Mul: (a, b) => a * b,
  Div: (a, b) => (b === 0 || Math.abs(a) >= 2 ** 51 ? null : Math.trunc(a / b)),
  Min: (...all) => Math.min(...all),
  Max: (...all) => Math.max(...all),
  Neg: (a) => -a,
  Equal: (a, b) => Number(a === b),
  Less: (a, b) => Number(a < b),
  Greater: (a, b) => Number(a > b),
  Not: (a) => Number(a === 0),
  And: (a, b) => Number(a !== 0 && b !== 0),
  Or: (a, b) => Number(a !== 0 || b !== 0),
  Where: (a, b, c) => (a !== 0 ? b : c),
};
const KINDS = new Set([...UNCHANGED, "Cast", "Concat", "Gather", "Slice", "Expand", "Range", ...Object.keys(CALCULATED)]);

/** The values of an operator's result, where they follow from values that are known; else null. */
export function knownValues(kind, inputs, attributes, shape) {
  const present = inputs.filter((tensor) => tensor !== null);
  if (!present.length || !KINDS.has(kind) || present[0].values === null) return null;
  const first = present[0].values;
  if (UNCHANGED.includes(kind)) return first;
  if (kind === "Cast") return cast(first, attributes.get("to"));
  const lists = present.map((tensor) => tensor.values);
  if (lists.includes(null)) return null;
  if (kind === "Concat") return present.every((tensor) => tensor.shape.length === 1) ? lists.flat() : null;
  if (kind === "Gather" || kind === "Slice") return picked(kind, present, lists);
  if (kind === "Expand") return first.length === 1 && product(shape) <= LIMITS.known_numbers ? Array(product(shape)).fill(first[0]) : null;
  if (kind === "Range") return shape[0] <= LIMITS.known_numbers ? Array.from({ length: shape[0] }, (_, k) => lists[0][0] + k * lists[2][0]) : null;
  return calculated(kind, present, lists);
}

function cast(values, to) {
  if (to === 9) return values.map((value) => Number(value !== 0));
  if (to === 6 || to === 7) return values.map(Math.trunc);
  return to === 1 || to === 11 ? values : null;
}

/** Some of the numbers of a list. */
function picked(kind, tensors, lists) {
  const [values, size] = [lists[0], lists[0].length];
  if (tensors[0].shape.length !== 1) return null;
  if (kind === "Gather") {
    const places = lists[1].map(Math.trunc);
    return places.some((place) => place < -size || place >= size) ? null : places.map((place) => values[place < 0 ? place + size : place]);
  }
  if (lists.slice(1).some((one) => one.length !== 1)) return null;
  if (lists.length > 4 && Math.trunc(lists[4][0]) !== 1) return null;
  const [start, end] = [lists[1][0], lists[2][0]].map(Math.trunc).map((place) => Math.max(0, Math.min(place < 0 ? place + size : place, size)));
  return values.slice(start, end);
}

/** Number by number, where lists are of one length or of one number. */
function calculated(kind, tensors, lists) {
  if (tensors.some((tensor) => tensor.shape.length > 1 || ![6, 7, 9].includes(tensor.kind))) return null;
  const longest = Math.max(...lists.map((values) => values.length));
  if (lists.some((values) => values.length !== 1 && values.length !== longest)) return null;
  // Beyond this a number is not known exactly, so that nothing may be computed from it.
  if (lists.some((values) => values.some((value) => Math.abs(value) >= LARGEST))) return null;
  const rows = [];
  for (let k = 0; k < longest; k++) {
    const value = CALCULATED[kind](...lists.map((values) => values[values.length > 1 ? k : 0]));
    if (value === null) return null;
    rows.push(value);
  }
  return rows;
}
