/* Owners' keys that this browser has sent to, by the names they came with. A key is kept when something is sent to it, never by looking. */

import { fingerprint } from "./campaign.js";

const USED = "privet/used/";
// Letters of other scripts that look like Latin ones.
const FROM = "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04cf\u043a\u043c\u0442\u043d\u0432\u03b1\u03bf\u03c1\u03b5\u03b9\u03ba\u03bd\u03c4\u03c5\u03c7\u0131\u0142";
const TO = "aeopcyxijsdlkmthbaopeikvtuxil";

function words(name) {
  const plain = name.normalize("NFKD").toLowerCase().replace(/[\p{Mn}\p{Cf}]/gu, "");
  const alike = Array.from(plain, (c) => (FROM.includes(c) ? TO[FROM.indexOf(c)] : c)).join("");
  return new Set(alike.match(/[\p{L}\p{N}]+/gu) ?? []);
}

/** Whether people could take two names for the same: the words of one, up to its first comma or bracket, are all in the other. */
export function isSameName(one, other) {
  const head = (name) => [words(name.split(/[,;(<[:/|]/)[0]), words(name)].find((some) => some.size) ?? new Set();
  const within = (some, all) => [...some].every((word) => all.has(word));
  const [first, second] = [head(one), head(other)];
  return first.size > 0 && second.size > 0 && (within(first, words(other)) || within(second, words(one)));
}

/** {kind: "new" | "used" | "other", who, key}: what is known of the owner's key; looking changes nothing. */
export async function standing(manifest) {
  const used = Object.keys(localStorage).filter((name) => name.startsWith(USED)).map((name) => [name.slice(USED.length), JSON.parse(localStorage.getItem(name)).who]);
  const same = used.find(([key]) => key === manifest.signing_key);
  if (same) return { kind: "used", who: same[1], key: await fingerprint(same[0]) };
  const other = used.find(([, who]) => isSameName(who, manifest.who));
  return other ? { kind: "other", who: other[1], key: await fingerprint(other[0]) } : { kind: "new", who: "", key: "" };
}

export function keep({ signing_key: key, who }) {
  if (localStorage.getItem(USED + key) === null) localStorage.setItem(USED + key, JSON.stringify({ who, since: Date.now() }));
}
