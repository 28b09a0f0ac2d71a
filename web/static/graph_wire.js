/* A small reader of ONNX files that takes nothing for granted; the same as release/graph_wire.py. It knows the fields of graph_rules.json
   and refuses everything else, so that what is looked at is what the runtime sees. */

import { RULES } from "./graph_rules.js";

export const LIMITS = RULES.limits;
export const LARGEST = 2 ** 53;
const [VARINT, EIGHT, LENGTH, FOUR] = [0, 1, 2, 5];
const LISTS = { 1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data" };
const MESSAGES = new Map(Object.entries(RULES.messages).map(([kind, table]) => [kind, new Map(Object.entries(table))]));
export const TYPES = new Map(Object.entries(RULES.types));
export const product = (sizes) => sizes.reduce((all, size) => all * size, 1);

/** A graph that is not run; `code` is the reason. */
export class Refused extends Error {
  constructor(code, detail = "") {
    const shown = detail.slice(0, 60).replace(/[^\x20-\x7e]/g, "?");
    super(`The graph is not run: ${RULES.reasons[code]}${shown && ` (${shown})`}.`);
    this.code = code;
  }
}

/** One message with all fields of the table; fields that are absent are null or empty. */
export function readMessage(content, kind) {
  const table = MESSAGES.get(kind);
  const message = {};
  for (const [name, how] of table.values()) message[name] = how[0] === "*" ? [] : null;
  const cursor = { at: 0 };
  while (cursor.at < content.length) {
    const key = varint(content, cursor);
    const [field, wire] = [String(key >> 3n), Number(key & 7n)];
    let value;
    if (wire === VARINT) value = varint(content, cursor);
    else if (wire === EIGHT || wire === FOUR) value = cut(content, cursor, wire === EIGHT ? 8 : 4);
    else if (wire === LENGTH) value = cut(content, cursor, Number(varint(content, cursor)));
    else throw new Refused("malformed");
    if (!table.has(field)) throw new Refused("unknown_field", `field ${field} of ${kind}`);
    store(message, ...table.get(field), wire, value);
  }
  return message;
}

function cut(content, cursor, size) {
  const end = cursor.at + size;
  if (end > content.length) throw new Refused("malformed");
  const part = content.subarray(cursor.at, end);
  cursor.at = end;
  return part;
}

function store(message, name, how, wire, value) {
  const [word, code] = how.split(":");
  if (word === "refuse") throw new Refused(code);
  if (how[0] === "*") {
    if (["*int", "*float", "*double"].includes(how) && wire === LENGTH) for (const one of packed(value, how)) message[name].push(one);
    else message[name].push(valueOf(how.slice(1), wire, value));
    return;
  }
  if (message[name] !== null) throw new Refused("repeated_field", name);
  message[name] = valueOf(word, wire, value);
  if (word === "zero" && message[name] !== 0) throw new Refused(code);
}

const EXPECTED = { int: VARINT, zero: VARINT, float: FOUR, double: EIGHT };
const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function valueOf(how, wire, value) {
  if (wire !== (EXPECTED[how] ?? LENGTH)) throw new Refused("malformed");
  if (how === "int" || how === "zero") return signed(value);
  if (how === "float") return view(value).getFloat32(0, true);
  if (how === "double") return view(value).getFloat64(0, true);
  if (how === "text") {
    if (value.length > LIMITS.name_bytes) throw new Refused("name_length");
    // One character a byte: two names are the same exactly where their bytes are.
    return Array.from(value, (byte) => String.fromCharCode(byte)).join("");
  }
  return how === "bytes" || how === "skip" ? value : readMessage(value, how);
}

function packed(content, how) {
  const values = [];
  if (how !== "*int") {
    const size = how === "*float" ? 4 : 8;
    if (content.length % size) throw new Refused("malformed");
    const numbers = view(content);
    for (let at = 0; at < content.length; at += size) values.push(size === 4 ? numbers.getFloat32(at, true) : numbers.getFloat64(at, true));
    return values;
  }
  const cursor = { at: 0 };
  while (cursor.at < content.length) values.push(signed(varint(content, cursor)));
  return values;
}

function varint(content, cursor) {
  let [value, shift] = [0n, 0n];
  for (;;) {
    if (cursor.at >= content.length || shift > 63n) throw new Refused("malformed");
    const byte = content[cursor.at];
    cursor.at += 1;
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      // The runtime would cut off what does not fit into 64 bits.
      if (value >= 1n << 64n) throw new Refused("malformed");
      return value;
    }
  }
}

/** A whole number; beyond LARGEST, LARGEST. */
function signed(value) {
  return clamp(Number(BigInt.asIntN(64, value)));
}

export const clamp = (value) => Math.max(-LARGEST, Math.min(LARGEST, value));

/** The numbers of a tensor, after checking that it holds as many as it says. */
export function readTensor(message) {
  const [kind, name] = [message.data_type ?? 0, message.name ?? ""];
  if (kind === 8) throw new Refused("string_tensor", name);
  if (!TYPES.has(String(kind))) throw new Refused("element_type", name);
  const shape = message.dims;
  checkSizes(shape, name);
  const numbers = data(message, kind, name);
  if (numbers.length !== product(shape)) throw new Refused("tensor_size", name);
  if ([1, 10, 11].includes(kind) && numbers.some(Number.isNaN)) throw new Refused("not_a_number", name);
  return { kind, shape, numbers };
}

/** The numbers of a tensor, wherever they are; they must be in one place. */
function data(message, kind, name) {
  const filled = ["float_data", "int32_data", "int64_data", "double_data", "uint64_data"].filter((field) => message[field].length);
  const place = LISTS[kind] ?? "int32_data";
  const raw = message.raw_data;
  if (raw !== null) {
    const size = TYPES.get(String(kind))[1];
    if (filled.length || raw.length % size) throw new Refused("tensor_size", name);
    return numbersOf(raw, kind, size);
  }
  if (filled.length && filled.join() !== place) throw new Refused("tensor_size", name);
  return kind === 10 ? message[place].map((bits) => half(bits & 0xffff)) : message[place];
}

const READ = { 3: "getInt8", 4: "getUint16", 5: "getInt16", 6: "getInt32", 12: "getUint32" };

function numbersOf(raw, kind, size) {
  if (kind === 2 || kind === 9) return raw;
  if (kind === 1) return new Float32Array(raw.slice().buffer);
  if (kind === 11) return new Float64Array(raw.slice().buffer);
  const [numbers, bytes] = [view(raw), new Float64Array(raw.length / size)];
  for (let k = 0; k < bytes.length; k++) {
    if (kind === 10) bytes[k] = half(numbers.getUint16(2 * k, true));
    else if (kind === 7) bytes[k] = Number(numbers.getBigInt64(8 * k, true));
    else if (kind === 13) bytes[k] = Number(numbers.getBigUint64(8 * k, true));
    else bytes[k] = numbers[READ[kind]](size * k, true);
  }
  return bytes;
}

/** The number that sixteen bits spell. */
function half(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

/** Refused where a tensor of these sizes cannot be; empty ones of one axis may be constants. */
export function checkSizes(shape, name) {
  if (shape.length > LIMITS.rank) throw new Refused("rank", name);
  if (shape.some((size) => size < 0)) throw new Refused("negative_size", name);
  if (shape.includes(0) && shape.length !== 1) throw new Refused("zero_size", name);
  if (product(shape) > LIMITS.tensor_numbers) throw new Refused("too_large", name);
}
