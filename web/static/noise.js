/* Unit noise, as privet/release/noise.py draws it: 52 random bits to a number between 0 and 1, and the inverse distribution function of the
   law. The same bytes give the same noise in both. The bytes are a function of a secret key and the record, as in
   privet/release/keyed_noise.py, which explains it: the same record gives the same numbers. */

import sodium from "./vendor/libsodium-wrappers.mjs";

const A = [
  3.387132872796366608, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4, 4.5921953931549871457e4,
  6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
];
const B = [
  1, 4.2313330701600911252e1, 6.871870074920579083e2, 5.3941960214247511077e3, 2.1213794301586595867e4, 3.930789580009271061e4,
  2.8729085735721942674e4, 5.226495278852854561e3,
];
const C = [
  1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504, 1.27045825245236838258,
  2.4178072517745061177e-1, 2.27238449892691845833e-2, 7.7454501427834140764e-4,
];
const D = [
  1, 2.05319162663775882187, 1.6763848301838038494, 6.8976733498510000455e-1, 1.4810397642748007459e-1, 1.51986665636164571966e-2,
  5.475938084995344946e-4, 1.05075007164441684324e-9,
];
const E = [
  6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 2.9656057182850489123e-1, 2.6532189526576123093e-2,
  1.2426609473880784386e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
];
const F = [
  1, 5.9983220655588793769e-1, 1.3692988092273580531e-1, 1.48753612908506148525e-2, 7.868691311456132591e-4, 1.8463183175100546818e-5,
  1.4215117583164458887e-7, 2.04426310338993978564e-15,
];

const polynomial = (coefficients, x) => coefficients.reduceRight((sum, coefficient) => sum * x + coefficient, 0);

/** Inverse of the normal distribution function, to about 1e-16 (Wichura 1988, algorithm AS 241, Applied Statistics 37, 477-484). */
export function ndtri(p) {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return (q * polynomial(A, r)) / polynomial(B, r);
  }
  const r = Math.sqrt(-Math.log(q < 0 ? p : 1 - p));
  const far = r <= 5 ? polynomial(C, r - 1.6) / polynomial(D, r - 1.6) : polynomial(E, r - 5) / polynomial(F, r - 5);
  return q < 0 ? -far : far;
}

export const UNIT = {
  gaussian: ndtri,
  laplace: (p) => (p < 0.5 ? Math.log(2 * p) : -Math.log(2 - 2 * p)),
  uniform: (p) => p,
};

/** Unit noise of a law from random bytes, eight for each number. */
export function fromBytes(law, bytes) {
  const quantile = UNIT[law];
  if (!quantile) throw new Error(`The release's noise law is not known here: ${law}.`);
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const noise = new Float32Array(bytes.byteLength / 8);
  for (let i = 0; i < noise.length; i++) {
    const bits = words.getUint32(8 * i + 4, true) * 2 ** 20 + (words.getUint32(8 * i, true) >>> 12);
    noise[i] = quantile((bits + 0.5) * 2 ** -52); // neither 0 nor 1, which have no finite quantile
  }
  return noise;
}

const TAG = "privet noise 1\0\0";
const WORD = 8; // bytes
const BLOCK = 64; // bytes
const utf8 = (text) => new TextEncoder().encode(text);

function join(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

const number = (value, bytes) => Uint8Array.from({ length: bytes }, (_, i) => Math.floor(value / 2 ** (8 * i)) % 256);
/** A part of a message, after its length: no two lists of parts give the same message. */
const sized = (text) => join([number(utf8(text).length, 4), utf8(text)]);

/** The first random words of a record, as bytes. `secret` has the key (bytes), the SHA-256 of the release's graph and the campaign's name;
    `record` the id, the name of its numbers' type, its shape and its numbers. */
export function words({ key, graph, campaign }, { id = "", dtype, shape, x }, count) {
  const content = new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
  const hash = Uint8Array.from(graph.match(/../g), (byte) => parseInt(byte, 16));
  const message = join([utf8(TAG), hash, sized(campaign), sized(id), sized(`${dtype} ${shape.join(",")}`), content]);
  const digest = (last) => sodium.crypto_generichash(BLOCK, join([message, Uint8Array.of(last)]), key);
  const blocks = [digest(0)];
  if (count > BLOCK / WORD) {
    const inner = digest(1);
    while (blocks.length * BLOCK < count * WORD) blocks.push(sodium.crypto_generichash(BLOCK, number(blocks.length, 8), inner));
  }
  return join(blocks).slice(0, WORD * count);
}

/** Noise of a record: the same whenever the same record is released in the same campaign. The first word is not noise: it decides the record's
    place where a file of records is shuffled. */
export const keyed = (law, count, secret, record) => fromBytes(law, words(secret, record, count + 1).slice(WORD));

/** Fresh noise from the browser's cryptographic generator, which gives 65,536 bytes at a time. */
export function fresh(law, count) {
  const bytes = new Uint8Array(8 * count);
  for (let start = 0; start < bytes.length; start += 65536) crypto.getRandomValues(bytes.subarray(start, start + 65536));
  return fromBytes(law, bytes);
}
