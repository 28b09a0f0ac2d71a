/* Who stands for an audit: its owner, or somebody whose key this participant trusts. As privet/exchange/participant/claims.py finds it out.
   A signature is of the content as canonical JSON (keys sorted, no blanks). Numbers are taken as they are written, since browsers write them
   otherwise than Python does: what was written otherwise does not verify, and counts as changed. */

import { bytesOf, fingerprint, sha256 } from "./campaign.js";
import sodium from "./vendor/libsodium-wrappers.mjs";

const TRUSTED = "privet/auditor/";
const DEEPEST = 100;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

class Raw {
  constructor(text) {
    this.text = text;
  }
}

/** JSON with numbers as they are written; an object that names a field twice is refused. */
export function parse(text) {
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (!match) throw new Error("This is not JSON.");
    at = pattern.lastIndex;
    return match[0];
  };
  const blank = () => {
    while (" \t\n\r".includes(text[at]) && at < text.length) at += 1;
  };
  const list = (end, item) => {
    at += 1;
    blank();
    if (text[at] === end) return void (at += 1);
    for (;;) {
      item();
      blank();
      const next = text[at++];
      if (next === end) return;
      if (next !== ",") throw new Error("This is not JSON.");
    }
  };
  const value = (depth) => {
    if (depth > DEEPEST) throw new Error("This JSON is too deep.");
    blank();
    if (text[at] === "{") {
      const fields = new Map();
      list("}", () => {
        blank();
        const name = JSON.parse(take(STRING));
        blank();
        if (text[at++] !== ":" || fields.has(name)) throw new Error("A field is named twice.");
        fields.set(name, value(depth + 1));
      });
      return fields;
    }
    if (text[at] === "[") {
      const items = [];
      list("]", () => items.push(value(depth + 1)));
      return items;
    }
    if (text[at] === '"') return JSON.parse(take(STRING));
    return new Raw(take(/[tfn]/.test(text[at]) ? WORD : NUMBER));
  };
  const whole = value(0);
  blank();
  if (at !== text.length) throw new Error("This is not JSON.");
  return whole;
}

/** As Python orders texts: by code points, which is another order than that of a browser's. */
function byCodePoints(a, b) {
  const [first, second] = [Array.from(a, (c) => c.codePointAt(0)), Array.from(b, (c) => c.codePointAt(0))];
  const place = first.findIndex((code, i) => code !== second[i]);
  return place < 0 ? first.length - second.length : (first[place] ?? -1) - (second[place] ?? -1);
}

export function canonical(value) {
  if (value instanceof Raw) return value.text;
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const names = [...value.keys()].sort(byCodePoints);
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value.get(name))}`).join(",")}}`;
}

const ascii = (text) => text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const encoded = (text) => new TextEncoder().encode(text);

/** The hash of all that decides what is released: graph, encoding of records, law of the noise. */
export function runs(graph, card) {
  const about = new Map([["graph", graph], ["input", card.get("input")], ["noise", card.get("noise") ?? new Raw("null")]]);
  return sha256(encoded(ascii(canonical(about))));
}

/** {kind, name, key}: who stands for the audit with this text. */
export async function claimOf({ auditText, cardText, manifest }) {
  let audit, signature, right;
  try {
    audit = parse(auditText);
    signature = audit.get("signature");
    if (!(signature instanceof Map)) return { kind: "owner" };
    const given = bytesOf(signature.get("value"));
    signature.set("value", "");
    right = sodium.crypto_sign_verify_detached(given, encoded(canonical(audit)), bytesOf(signature.get("key")));
  } catch {
    right = false;
  }
  if (!signature) return { kind: "owner" };
  if (!right) return { kind: "changed" };
  if (signature.get("key") === manifest.signing_key) return { kind: "owner" }; // owners who sign their own audits claim them
  const key = await fingerprint(signature.get("key"));
  const name = trustedAs(key);
  if (name === null) return { kind: "stranger", name: String(signature.get("auditor")), key };
  const same = audit.get("release")?.get?.("runs") === (await runs(manifest.release.graph, parse(cardText)));
  return { kind: same ? "checked" : "unbound", name, key };
}

const trustedAs = (key) => localStorage.getItem(TRUSTED + key);
export const trust = (key, name) => localStorage.setItem(TRUSTED + key, name);
export const distrust = (key) => localStorage.removeItem(TRUSTED + key);
