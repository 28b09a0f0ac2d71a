/* A campaign, checked here. Nothing is believed because a server says so: the link pins the manifest, the manifest pins the owner's key
   and every part of the release, and what does not fit is refused before a picture is chosen. */

import { askedFor } from "./asking.js";
import sodium from "./vendor/libsodium-wrappers.mjs";

export const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
export const sha256 = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));
export const random = (bytes) => hex(crypto.getRandomValues(new Uint8Array(bytes)));
export const bytesOf = (text) => sodium.from_base64(text, sodium.base64_variants.URLSAFE_NO_PADDING);

/** The sentence of an answer that is not a yes. */
export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "omit", redirect: "error", ...options });
  } catch {
    throw Object.assign(new Error("The collector cannot be reached."), { status: 0 });
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(said.error ?? `The collector answers ${answer.status}.`), { status: answer.status });
}

/** The manifest, if it is the one that the link names and its owner signed it. */
export async function readManifest(campaign, { manifest: text, signature }) {
  await sodium.ready;
  const content = new TextEncoder().encode(text);
  if ((await sha256(content)).slice(0, 32) !== campaign)
    throw new Error("The manifest is not the one that the link names: it was changed. Do not take part.");
  let manifest, signed;
  try {
    manifest = JSON.parse(text);
    signed = sodium.crypto_sign_verify_detached(bytesOf(signature), content, bytesOf(manifest.signing_key));
  } catch {
    signed = false;
  }
  if (!signed) throw new Error("The manifest's signature is wrong: it was changed. Do not take part.");
  if (manifest.kind !== "privet campaign" || manifest.version !== 1) throw new Error("This page does not know this kind of campaign.");
  if ((manifest.mode === "sealed") !== (manifest.sealing_key !== null)) throw new Error("The campaign contradicts itself: it is not used.");
  const asked = askedFor(manifest.labels, manifest.private);
  if (asked) throw new Error(`The campaign asks for '${asked.name}', which its release hides. Do not take part.`);
  return manifest;
}

/** A part of the release, if it is the one that the owner signed. */
export async function readPart(hash) {
  const content = await (await ask(`/v1/parts/${hash}`)).arrayBuffer();
  if ((await sha256(content)) !== hash) throw new Error("A part of the release is not the one that the campaign's owner signed. Do not take part.");
  return content;
}

const decoded = (content) => new TextDecoder("utf-8", { fatal: true }).decode(content);

/** Everything a participant needs, checked. `step` hears what is done. */
export async function open(campaign, step) {
  step("Checking the campaign's signature");
  const given = await (await ask(`/v1/campaigns/${campaign}`)).json().catch(() => {
    throw new Error("The collector did not send a campaign.");
  });
  const manifest = await readManifest(campaign, given);
  step("Fetching the release and checking it");
  const [cardText, graph] = await Promise.all([readPart(manifest.release.card).then(decoded), readPart(manifest.release.graph)]);
  const card = JSON.parse(cardText);
  const same =
    card.sha256?.graph === manifest.release.graph &&
    JSON.stringify(card.private) === JSON.stringify(manifest.private) &&
    JSON.stringify(card.output?.shape) === JSON.stringify(manifest.expect.shape) &&
    card.input?.modality === manifest.modality;
  if (!same) throw new Error("The manifest and the card of the release contradict each other. Do not take part.");
  const auditText = manifest.release.audit ? decoded(await readPart(manifest.release.audit)) : "null";
  const audit = JSON.parse(auditText);
  if (audit && audit.release?.sha256?.graph !== manifest.release.graph) throw new Error("The audit is of another release. Do not take part.");
  const decoder = manifest.release.decoder ? await readPart(manifest.release.decoder) : null;
  const texts = { cardText, auditText, signed: { manifest: given.manifest, signature: given.signature } };
  return { id: campaign, manifest, card, graph, audit, decoder, ...texts, open: given.open, fingerprint: await fingerprint(manifest.signing_key) };
}

/** What people compare: the first half of a key's SHA-256, in groups of four. */
export async function fingerprint(key) {
  return (await sha256(bytesOf(key))).slice(0, 32).match(/.{4}/g).join(" ");
}

/** A box that only the campaign's owner can open. */
export const seal = (content, key) => sodium.crypto_box_seal(content, bytesOf(key));
