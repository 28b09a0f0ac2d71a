/* What leaves, and what stays in this browser: records that wait, receipts of those that were sent, a random name and a key per campaign. Never a
   photo.
   A record is kept here before it is sent, so a broken connection can neither lose a receipt nor send it twice. */

import { ask, random, seal, sha256 } from "./campaign.js";

const MAGIC = "PRIVET1\n";
const STEP = 512;
const WAITING = "privet/waiting/";
const RECEIPT = "privet/receipt/";
const KINDS = { sealed: "application/vnd.privet.sealed", open: "application/vnd.privet.record" };

const start = MAGIC.length + 4;
const names = ({ campaign, release, submission, labels, shape }) => ({ campaign, release, submission, shape, dtype: "float32", labels });
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

const isFree = ({ manifest }) => manifest.expect.shape.includes(null);

/** A record ready to leave. */
export async function prepare(campaign, { z, shape, source }, labels) {
  const { manifest, id } = campaign;
  const submission = random(16);
  let content = pack({ campaign: id, release: manifest.release.card, submission, labels, shape, z, free: isFree(campaign) });
  if (manifest.sealing_key !== null) content = seal(content, manifest.sealing_key);
  const receipt = {
    server: location.origin, campaign: id, title: manifest.title, submission, secret: random(32), sha256: await sha256(content), source,
    received: null, release: manifest.release.card, kind: KINDS[manifest.mode], person: person(id), invite: invitation(),
  };
  return { receipt, content };
}

/** How many bytes a record of this shape is long, before the labels are known. */
export function bytesOf(campaign, shape) {
  const { manifest } = campaign;
  const header = headerOf({ campaign: "0".repeat(32), release: manifest.release.card, submission: "0".repeat(32), labels: {}, shape });
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
    sent.push(await post(receipt, Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))));
  }
  return sent;
}

export const waiting = (campaign) => all(WAITING).filter(({ receipt }) => receipt.campaign === campaign).length;
export const receipts = (campaign) => all(RECEIPT).filter((one) => one.campaign === campaign).sort((a, b) => a.received - b.received);

/** Ask the collector to delete a record; false where it was gone already. */
export async function withdraw(receipt) {
  let deleted = true;
  try {
    const headers = { "Privet-Withdraw": receipt.secret };
    await ask(`/v1/campaigns/${receipt.campaign}/submissions/${receipt.submission}`, { method: "DELETE", headers });
  } catch (error) {
    if (error.status !== 404 && error.status !== 410) throw error;
    deleted = false;
  }
  localStorage.removeItem(RECEIPT + receipt.submission);
  return deleted;
}

async function post(receipt, content) {
  const headers = {
    "Content-Type": receipt.kind, "Idempotency-Key": receipt.submission, "Privet-Release": receipt.release,
    "Privet-Withdraw": await sha256(Uint8Array.from(receipt.secret.match(/../g), (byte) => parseInt(byte, 16))), "Privet-Person": receipt.person,
  };
  if (receipt.invite) headers.Authorization = `Bearer ${receipt.invite}`;
  let answer;
  try {
    answer = await (await ask(`/v1/campaigns/${receipt.campaign}/submissions`, { method: "POST", headers, body: content })).json();
  } catch (error) {
    // Too many at once, no network, a server that is not well: it waits. Anything else is an answer, and the answer is no.
    if (error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status)) localStorage.removeItem(WAITING + receipt.submission);
    throw error;
  }
  if (answer.submission !== receipt.submission || answer.sha256 !== receipt.sha256)
    throw new Error("The collector's receipt is for something else than what was sent.");
  const given = { ...receipt, received: answer.received, person: "", invite: null };
  localStorage.setItem(RECEIPT + receipt.submission, JSON.stringify(given));
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
  return Uint8Array.from(localStorage.getItem(name).match(/../g), (byte) => parseInt(byte, 16));
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
