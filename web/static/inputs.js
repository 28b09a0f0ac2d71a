/* What a participant gives that is no picture - a text, or a row of a table - as the numbers that the release takes, just as
   privet/data/schema.py makes them. */

const UNKNOWN = 1n;

/* Python's idea of a blank; JavaScript's \s knows another. */
const BLANK = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = new RegExp(`[\\p{L}\\p{N}_']+|[^\\p{L}\\p{N}_'${BLANK}]`, "gu");

/** Lower-case words and single marks. */
export const splitWords = (text) => text.toLowerCase().match(WORD) ?? [];

const tables = new WeakMap();

function codes(input) {
  if (!tables.has(input)) tables.set(input, new Map(input.words.map((word, i) => [word, BigInt(i + 2)])));
  return tables.get(input);
}

/** Word codes of a text, int64: the card's words from 2 on, 1 for every other, cut to the longest that the release reads. */
export function encodeText(text, input) {
  const known = codes(input);
  const found = splitWords(text).slice(0, input.longest).map((word) => known.get(word) ?? UNKNOWN);
  return BigInt64Array.from(found.length ? found : [UNKNOWN]);
}

/** The text as the release reads it: an unknown word is a question mark. */
export const readText = (x, input) => Array.from(x, (code) => (code === UNKNOWN ? "?" : input.words[Number(code) - 2])).join(" ");

/** A row of a table, float32: numbers standardised, one place for each value of a category; nothing given is the mean, or no value. */
export function encodeRow(row, { columns }) {
  const parts = columns.flatMap(({ name, mean, std, values }) => {
    if (values.length) return values.map((value) => (row[name] === value ? 1 : 0));
    const number = row[name] === undefined || row[name] === "" ? NaN : Number(row[name]);
    const scaled = (number - mean) / std;
    return [Number.isFinite(scaled) ? scaled : 0];
  });
  return Float32Array.from(parts);
}

/** What kind of thing this page can take for a release, or null. */
export function kindOf({ modality, shape, channels, height, width, words, columns }) {
  if (modality === "image" && String(shape) === String([channels, height, width])) return "image";
  if (modality === "text" && Array.isArray(words)) return "text";
  if (modality === "table" && Array.isArray(columns)) return "table";
  return null;
}
