/* What leaves, and what stays in this browser: records that wait, receipts of those that were sent, a random name and a key per campaign. Never a
   photo.
   A record is kept here before it is sent, so a broken connection can neither lose a receipt nor send it twice. A receipt is never removed: what
   became of the record is written into it, and its secret is replaced by its hash once the collector that stored the record has deleted it. */

import { ask, random, seal, sha256 } from "./campaign.js";
import { toldLabels } from "./randomised.js";

const MAGIC = "PRIVET1\n";
const STEP = 512;
const WAITING = "privet/waiting/";
const RECEIPT = "privet/receipt/";
const KINDS = { sealed: "application/vnd.privet.sealed", open: "application/vnd.privet.record" };

const start = MAGIC.length + 4;
const names = ({ campaign, release, submission, labels, shape, consent }) =>
  ({ campaign, release, submission, shape, dtype: "float32", labels, ...(consent ? { consent } : {}) });
const headerOf = (record) => new TextEncoder().encode(JSON.stringify(names(record)));
/** Room for a header, so that its length tells no answer. */
const roomFor = (header) => Math.ceil((header.length + start) / STEP) * STEP - start;
/** Of texts, whose length is free, zeros follow to the next power of two. */
const padded = (size, free) => (free ? 2 ** Math.ceil(Math.log2(size)) : size);

/** The record as bytes: a header that names campaign, release and submission and holds the labels, then the numbers. The layout is in
    privet/exchange/envelope.py. */
export function pack({ z, free = false, ...record }) {
  const header = headerOf(record);
  const size = roomFor(header);
  if (size > 16 * STEP) throw new Error("The answers are too long to be sent.");
  const content = new Uint8Array(padded(start + size + 4 * z.length, free)).fill(32, 0, start + size);
  const view = new DataView(content.buffer);
  content.set(new TextEncoder().encode(MAGIC));
  view.setUint32(MAGIC.length, size, true);
  content.set(header, start);
  z.forEach((value, i) => view.setFloat32(start + size + 4 * i, value, true));
  return content;
}

/** What a record names the campaign's own text of consent by. */
const consentOf = async ({ consent }) => (consent ? await sha256(new TextEncoder().encode(consent)) : null);

const isFree = ({ manifest }) => manifest.expect.shape.includes(null);

/** A record ready to leave. */
export async function prepare(campaign, { z, shape, source }, answers, agreed = "") {
  const { manifest, id } = campaign;
  const submission = random(16);
  const labels = toldLabels(answers, manifest.labels, noiseKey(id), id);
  const consent = await consentOf(manifest);
  let content = pack({ campaign: id, release: manifest.release.card, submission, labels, shape, z, consent, free: isFree(campaign) });
  if (manifest.sealing_key !== null) content = seal(content, manifest.sealing_key);
  const receipt = {
    server: location.origin, campaign: id, title: manifest.title, submission, secret: random(32), sha256: await sha256(content), source,
    received: null, release: manifest.release.card, kind: KINDS[manifest.mode], person: person(id), invite: invitation(),
    numbers: await numbersOf(z), state: "stored", asked_back: null, ...campaign.signed,
    consent: [manifest.consent, agreed].filter(Boolean).join("\n"), consent_version: manifest.consent_version ?? "",
  };
  return { receipt, content };
}

/** The hash of released numbers: the same record gives the same ones. */
export function numbersOf(z) {
  const view = new DataView(new ArrayBuffer(4 * z.length));
  z.forEach((value, i) => view.setFloat32(4 * i, value, true));
  return sha256(view.buffer);
}

/** How many bytes a record of this shape is long, before the labels are known. */
export function bytesOf(campaign, shape) {
  const { manifest } = campaign;
  const header = headerOf({ campaign: "0".repeat(32), release: manifest.release.card, submission: "0".repeat(32), labels: {}, shape, consent: manifest.consent && "0".repeat(64) });
  const numbers = 4 * shape.reduce((product, size) => product * size, 1);
  return padded(start + roomFor(header) + numbers, isFree(campaign)) + (manifest.sealing_key === null ? 0 : 48);
}

/** Keep it, send it, and turn it into a receipt. */
export async function send({ receipt, content }) {
  localStorage.setItem(WAITING + receipt.submission, JSON.stringify({ receipt, content: toText(content) }));
  return await post(receipt, content);
}

/** Send what waits from before; the receipts of what went. */
export async function retry(campaign) {
  const sent = [];
  for (const { receipt, content } of all(WAITING).filter(({ receipt }) => receipt.campaign === campaign)) {
    sent.push(await post(receipt, Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0)), false));
  }
  return sent;
}

export const waiting = (campaign) => all(WAITING).filter(({ receipt }) => receipt.campaign === campaign).length;
export const receipts = (campaign) => all(RECEIPT).filter((one) => one.campaign === campaign).sort((a, b) => a.received - b.received);

/** Everything that was sent or waits, to all campaigns of this collector. */
export const everything = () => [...all(RECEIPT), ...all(WAITING).map(({ receipt }) => receipt)];

const keep = (receipt) => localStorage.setItem(RECEIPT + receipt.submission, JSON.stringify(receipt));
const ofHex = (text) => Uint8Array.from(text.match(/../g), (byte) => parseInt(byte, 16));

/** Ask the collector to delete a record; the receipt as it is then. Only who stored the record knows the hash of its bytes, which the request does
    not hold: an answer without it may come from a wrong or an empty server, and the receipt stays able to withdraw. */
export async function withdraw(receipt) {
  const asked = { ...receipt, asked_back: receipt.asked_back ?? Date.now() };
  keep(asked);
  const end = (state, more = {}) => {
    const ended = { ...asked, state, ...more };
    keep(ended);
    return ended;
  };
  let answer;
  try {
    const headers = { "Privet-Withdraw": receipt.secret };
    answer = await ask(`/v1/campaigns/${receipt.campaign}/submissions/${receipt.submission}`, { method: "DELETE", headers });
  } catch (error) {
    if (error.status === 404) return asked;
    if (error.status === 410) return end("gone");
    throw error;
  }
  if (answer.headers.get("privet-withdrawn") !== receipt.sha256) return end("gone");
  return end("withdrawn", { secret: "", secret_sha256: await sha256(ofHex(receipt.secret)) });
}

/** Send it; `first` says that it was never tried before. A refusal then says that it is not stored; later, a lost answer may have said that it is. */
async function post(receipt, content, first = true) {
  const headers = {
    "Content-Type": receipt.kind, "Idempotency-Key": receipt.submission, "Privet-Release": receipt.release,
    "Privet-Withdraw": await sha256(ofHex(receipt.secret)), "Privet-Person": receipt.person,
  };
  if (receipt.invite) headers.Authorization = `Bearer ${receipt.invite}`;
  let answer;
  try {
    answer = await (await ask(`/v1/campaigns/${receipt.campaign}/submissions`, { method: "POST", headers, body: content })).json();
  } catch (error) {
    // Too many at once, no network, a server that is not well: it waits. Anything else is an answer, and the answer is no.
    if (error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status)) {
      keep({ ...receipt, state: first ? "refused" : "unsure", person: "", invite: null });
      localStorage.removeItem(WAITING + receipt.submission);
    }
    throw error;
  }
  if (answer.submission !== receipt.submission || answer.sha256 !== receipt.sha256)
    throw new Error("The collector's receipt is for something else than what was sent.");
  const given = { ...receipt, received: answer.received, person: "", invite: null };
  keep(given);
  localStorage.removeItem(WAITING + receipt.submission);
  return given;
}

/** A random name of this browser in one campaign: it ties its records there together, and to nothing elsewhere. */
function person(campaign) {
  const key = `privet/person/${campaign}`;
  if (!localStorage.getItem(key)) localStorage.setItem(key, random(32));
  return localStorage.getItem(key);
}

/** The key of this browser's noise in one campaign, made at the first record: with it, the same record gives the same numbers. Whoever has it
    can take the noise off what was sent, so it never leaves. */
export function noiseKey(campaign) {
  const name = `privet/noise/${campaign}`;
  if (!localStorage.getItem(name)) localStorage.setItem(name, random(32));
  return ofHex(localStorage.getItem(name));
}

/** The part of a link after # is never sent by a browser. */
export const invitation = () => new URLSearchParams(location.hash.slice(1)).get("invite");

function all(prefix) {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  return keys.map((key) => JSON.parse(localStorage.getItem(key)));
}

function toText(content) {
  let text = "";
  for (let start = 0; start < content.length; start += 4096) text += String.fromCharCode(...content.subarray(start, start + 4096));
  return btoa(text);
}
