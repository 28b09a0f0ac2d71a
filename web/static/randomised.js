/* Answers that are changed at random before they leave, where the campaign asks for it so; as privet/exchange/participant/randomised.py, which
   explains it. The same key, question and answer give the same result in both. */

import sodium from "./vendor/libsodium-wrappers.mjs";

const TAG = "privet answer 1\0";
const utf8 = (text) => new TextEncoder().encode(text);

/** A number between 0 and 1 that only who has the key knows. */
export function chance(key, campaign, name, answer) {
  const bytes = [...utf8(TAG)];
  for (const part of [campaign, name, answer].map(utf8)) bytes.push(...new Uint8Array(Uint32Array.of(part.length).buffer), ...part);
  const digest = sodium.crypto_generichash(16, Uint8Array.from(bytes), key);
  const words = new DataView(digest.buffer, digest.byteOffset, 8);
  const bits = words.getUint32(4, true) * 2 ** 20 + (words.getUint32(0, true) >>> 12);
  return (bits + 0.5) * 2 ** -52;
}

/** The place of the answer that is told. */
export function toldAnswer(place, answers, epsilon, uniform) {
  const keep = Math.exp(epsilon) / (Math.exp(epsilon) + answers - 1);
  if (uniform < keep) return place;
  const other = Math.min(Math.floor(((uniform - keep) / (1 - keep)) * (answers - 1)), answers - 2);
  return other < place ? other : other + 1;
}

/** What is told of these answers. */
export function toldLabels(answers, asked, key, campaign) {
  const told = { ...answers };
  for (const { name, values, epsilon } of asked) {
    const place = epsilon ? values.indexOf(told[name]) : -1;
    if (place >= 0) told[name] = values[toldAnswer(place, values.length, epsilon, chance(key, campaign, name, values[place]))];
  }
  return told;
}
