/* The participant's page: check the campaign, show what it hides, run the release here, show what leaves, and send it if its owner agrees. */

import { overlaps } from "./asking.js";
import { watch } from "./camera.js";
import { open } from "./campaign.js";
import { drift } from "./drift.js";
import { claimOf, distrust, trust } from "./claims.js";
import { answers, cell, question, row } from "./fields.js";
import { encodeRow, encodeText, kindOf, readText } from "./inputs.js";
import { told } from "./metadata.js";
import * as ledger from "./ledger.js";
import * as outbox from "./outbox.js";
import * as owners from "./owners.js";
import { decode, encode } from "./picture.js";
import { drawPictureIn, pictureIn } from "./picture_like.js";
import { Decoder, Release, load } from "./runtime.js";
import { selfTest } from "./self_test.js";
import { drawNumbers, drawPicture, find, make, pairs, write } from "./view.js";
import { about, count, day, hidden, saidBy, size } from "./words.js";

let campaign, release, decoder, live;
let chosen = null; // what would leave: the released numbers, their shape, and where they are from

const TITLES = { image: "Choose a picture", text: "Write a text", table: "Fill in the form" };
const STAYS = {
  image: "It stays on this device, with its name, place and time.",
  text: "Your words stay on this device.",
  table: "What you fill in stays on this device.",
};

const STATES = { stored: "stored", withdrawn: "withdrawn", gone: "gone, says the server, without proof", refused: "refused", unsure: "perhaps stored: the last answer was lost" };

/** Say it where the participant is: after the element `near`, where one is given, so that it covers nothing. */
function say(text, wrong = false, near = null) {
  near?.after(find("status"));
  write("status", text);
  find("status").classList.toggle("wrong", wrong);
}

/** Whatever goes wrong is said, and nothing is sent. */
const saying = (action) => async (event) => {
  try {
    await action(event);
  } catch (error) {
    say(error.message, true);
  }
};

async function start() {
  const steps = (text) => {
    say(`${text} ...`);
    find("progress").value += 1;
  };
  campaign = await open(location.pathname.split("/").pop(), steps);
  await describe();
  const kind = kindOf(campaign.card.input);
  if (!kind) throw new Error(`A page cannot take what this campaign asks for. Take part with  privet share ${location.href.split("#")[0]} FILES...`);
  find("choose-title").textContent = TITLES[kind];
  find("keeps").textContent = STAYS[kind];
  steps("Loading what runs the release in this browser (14 MB, once)");
  await load();
  const secret = { key: outbox.noiseKey(campaign.id), graph: campaign.manifest.release.graph, campaign: campaign.id };
  release = await Release.open(campaign.graph, campaign.card, secret);
  decoder = campaign.decoder && (await Decoder.open(campaign.decoder, campaign.card));
  say("Testing the release on this device ...");
  find("hides").after(make("p", { id: "tested" }, await selfTest(release, campaign.audit)));
  find("progress").hidden = true;
  find("take-part").hidden = false;
  find("choose").hidden = !campaign.open || kind !== "image";
  find("write").hidden = !campaign.open || kind !== "text";
  find("fill").hidden = !campaign.open || kind !== "table";
  if (kind === "table") find("columns").append(...campaign.card.input.columns.map(cell));
  find("closed").hidden = campaign.open;
  say("Ready. From here on everything happens on this device until you press Send.");
  document.body.dataset.ready = "yes";
}

async function describe() {
  const { manifest } = campaign;
  campaign.standing = await owners.standing(manifest);
  document.title = `${manifest.title} - Privet`;
  write("title", manifest.title);
  write("purpose", manifest.purpose);
  find("command").textContent = `privet share ${location.origin}${location.pathname}`;
  find("labels").append(...manifest.labels.map(question));
  find("labels").hidden = !manifest.labels.length;
  write("consent-text", manifest.consent ?? "");
  find("consent-text").hidden = !manifest.consent;
  find("report").hidden = !manifest.release.report;
  find("report-link").href = `/c/${campaign.id}/report`;
  warn();
  await attribute();
  find("page").hidden = false;
  showReceipts();
}

/** What a participant must not overlook: another key under a known name, and questions near what is hidden. */
function warn() {
  const { manifest, standing, audit, fingerprint } = campaign;
  const values = Object.fromEntries((audit?.readings ?? []).map((one) => [one.attribute, one.values ?? []]));
  const alarms = overlaps(manifest.labels, manifest.private, values).map(
    ({ label, attribute: name, word }) => `The question "${label}" is near "${name}", which the release hides: both have "${word}". Your answer leaves as you give it.`,
  );
  if (standing.kind === "other") {
    alarms.unshift(`"${standing.who}" had the key ${standing.key} when you sent to it. This is another key: somebody may pretend to be them. Ask them before you go on.`);
    write("new-key-text", `I asked ${standing.who}, not through this page: their new key is ${fingerprint}.`);
  }
  if (standing.kind === "used" && standing.who !== manifest.who) alarms.unshift(`When you sent to this key, it was called "${standing.who}".`);
  find("alarms").replaceChildren(...alarms.map((text) => make("li", { className: "warning" }, text)));
  find("alarms").hidden = !alarms.length;
  find("new-key").hidden = standing.kind !== "other";
}

/** Who claims what the page shows of the release; the figures are said to be claimed unless somebody trusted has checked them. */
async function attribute() {
  const { manifest, audit } = campaign;
  campaign.claim = audit ? await claimOf(campaign) : { kind: "owner" };
  const { kind, name, key } = campaign.claim;
  const checked = kind === "checked";
  find("hides-title").textContent = checked ? "What it hides" : "What its owner says it hides";
  const by = saidBy(campaign.claim);
  write("claim-text", `The figures are ${kind === "changed" ? `the owner's claim, ${by}` : by}.`);
  find("claim").hidden = !audit;
  find("claim").classList.toggle("warning", !checked);
  find("trust").hidden = !["stranger", "unbound", "checked"].includes(kind);
  write("trust-key", kind === "stranger" ? `I compared this key with what ${name} says: trust it` : `Trust the key of ${name} no longer`);
  find("trust-key").onclick = saying(async () => {
    if (kind === "stranger") trust(key, name);
    else distrust(key);
    await attribute();
    find("trust-key").focus();
  });
  find("about").replaceChildren(...pairs(about(campaign, campaign.standing)));
  find("hides").replaceChildren(...manifest.private.map((one) => headline(one, hidden(audit, one, campaign.claim))));
  find("hides").classList.toggle("claimed", !checked);
}

function headline(name, { large, label, found, proof, more }) {
  const score = make("div", { className: "score" });
  if (large) score.append(make("b", {}, large), make("span", {}, label));
  const words = make("div", {}, make("p", { className: "name" }, name), make("p", {}, found), make("p", {}, proof));
  if (more) words.append(make("details", {}, make("summary", {}, "What this does not say"), make("p", {}, more)));
  return make("li", {}, score, words);
}

/** Run the release on an encoded record, and show what leaves and what could be rebuilt. */
async function show(x) {
  const { input, form } = campaign.card;
  const z = await release.run(x);
  const shape = release.shape(x);
  const picture = input.modality === "image";
  if (picture) drawPicture(find("before"), x, input);
  find("before-picture").hidden = !picture;
  const isPicture = picture && form === "record";
  // What says that it is a picture, and can be seen as one, is drawn as it is; all else as what it looks like.
  const like = isPicture && visible(z) ? null : pictureIn(z, shape, input);
  if (like) drawPictureIn(find("leaves"), z, like);
  else if (isPicture) drawPicture(find("leaves"), z, input);
  else drawNumbers(find("leaves"), z);
  if (decoder && picture) drawPicture(find("rebuilt"), await decoder.run(z), input);
  find("rebuilt-view").hidden = !decoder || !picture;
  if (decoder && drawnByRelease(campaign)) find("rebuilt-words").replaceChildren(...drawnWords(campaign.card));
  const many = isPicture ? "A picture" : z.length === 1 ? "One number" : `${z.length.toLocaleString("en")} numbers`;
  const which = isPicture ? `${input.width} × ${input.height}` : z.length <= 4 ? Array.from(z, (value) => value.toFixed(3)).join(", ") : shape.length > 1 ? shape.join(" × ") : "";
  const sealed = campaign.manifest.mode === "sealed" ? "sealed" : "not sealed";
  find("leaving").textContent = `${like ? "It looks like a picture, and is drawn as one. " : ""}${many}${which && ` (${which})`}. With a header ${size(outbox.bytesOf(campaign, shape))}, ${sealed}.`;
  const unlike = drift(campaign.card, x);
  if (unlike) find("leaving").textContent += ` ${unlike}`;
  find("look").hidden = false;
  return { z, shape };
}

/** Whether numbers drawn as a picture in [-1, 1] can be seen: not all next to each other, and not outside of it. */
function visible(z) {
  const inside = z.filter((value) => value > -1.01 && value < 1.01);
  const mean = inside.reduce((sum, value) => sum + value, 0) / (inside.length || 1);
  const spread = Math.sqrt(inside.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (inside.length || 1));
  return inside.length > 0.9 * z.length && spread > 0.05;
}

/** The release's own decoder, which its card names: what leaves is a code, and this is its picture. */
const drawnByRelease = ({ card, manifest }) => Boolean(card.sha256?.decoder) && card.sha256.decoder === manifest.release.decoder;

function drawnWords({ classes, network }) {
  const values = Object.entries(classes ?? {}).map(([name, words], place) => `${name}: ${words[network?.settings?.drawn_as?.[place]] ?? words[0]}`);
  const alike = values.length ? ` Everybody is drawn with the same value (${values.join(", ")}).` : "";
  return [make("b", {}, "The picture it stands for,"), ` which anybody can draw from these numbers with the release's own decoder.${alike} Others may read more.`];
}

/** It is chosen: from now on just these numbers would leave. */
async function settle({ z, shape }, source, stays, metadata = [], read = "") {
  chosen = { z, shape, source };
  askBeyond(ledger.beyond(campaign, await outbox.numbersOf(z)));
  const shown = Array.from(z.slice(0, 1000), (value) => value.toFixed(4)).join("  ");
  find("numbers").textContent = z.length > 1000 ? `${shown}  ... and ${z.length - 1000} more` : shown;
  write("stays", stays);
  write("read", read);
  find("before-words").hidden = !read;
  find("metadata").replaceChildren(...pairs(metadata.length ? [["Also stays here", "What the file says beside the picture:"], ...metadata] : []));
  find("metadata").hidden = !metadata.length;
  find("send").hidden = !campaign.open;
  for (const box of BOXES) find(box).checked = false;
  allow();
  say("This is what would leave. Nothing was sent.", false, find("look-title"));
  find("look").scrollIntoView({ block: "start" });
}

/** Where more records would be known of this person than any bound covers, that is agreed to by itself. */
function askBeyond(more) {
  find("beyond").hidden = !more;
  if (!more) return;
  const covers = more.certified ? `a bound covers ${more.certified.toLocaleString("en")}` : "no bound covers any";
  write("beyond-text", `With this one the campaign has ${count(more.seen)} of me that belong together, and ${covers}. Several can tell much more than one. I send it all the same.`);
}

/** Sending is possible once everything that is asked to be agreed to was. */
const BOXES = ["accept-key", "accept-beyond", "consent"];
const agreed = () => BOXES.every((box) => find(box).checked || find(box).parentElement.hidden);
const allow = () => (find("submit").disabled = !chosen || !agreed());

/** Nothing is chosen. */
function forget() {
  chosen = null;
  find("send").hidden = find("look").hidden = find("metadata").hidden = true;
  find("stays").textContent = find("numbers").textContent = "";
}

function showReceipts() {
  const kept = outbox.receipts(campaign.id);
  const waiting = outbox.waiting(campaign.id);
  find("sent").hidden = !kept.length && !waiting;
  find("waiting").hidden = !waiting;
  find("waiting-text").textContent = `${waiting} ${waiting === 1 ? "record waits" : "records wait"} here to be sent.`;
  find("receipts").replaceChildren(...kept.map(receiptRow));
  find("ledger").replaceChildren(...ledger.lines());
}

function receiptRow(receipt) {
  const name = receipt.submission.slice(0, 12);
  const keep = make("button", { type: "button", className: "quiet" }, "Download receipt");
  const back = make("button", { type: "button", className: "quiet" }, "Withdraw");
  keep.setAttribute("aria-label", `Download receipt ${name}`);
  back.setAttribute("aria-label", `Withdraw ${name}`);
  keep.onclick = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(receipt, null, 1)], { type: "application/json" }));
    make("a", { href: url, download: `receipt-${name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  back.onclick = saying(async () => {
    back.disabled = true;
    const { state } = await outbox.withdraw(receipt).finally(() => (back.disabled = false));
    showReceipts();
    const words = {
      withdrawn: "Withdrawn: the collector has deleted it.",
      gone: "The server says that it is gone, without proof that it had it. The receipt is kept: you can try again.",
    };
    say(words[state] ?? "NOT deleted: the collector knows no such record under this secret. The receipt is kept.", !(state in words), find("sent-title"));
    find("sent-title").focus();
  });
  const sent = receipt.received ? `sent ${day(receipt.received)}` : "not sent";
  const words = make("div", {}, make("code", {}, name), ` ${sent}, from ${receipt.source}: ${STATES[receipt.state ?? "stored"]}`);
  const buttons = ["withdrawn", "refused"].includes(receipt.state) ? [keep] : [keep, back];
  const row = make("li", {}, words, make("div", { className: "buttons" }, ...buttons));
  row.dataset.state = receipt.state ?? "stored";
  return row;
}

find("file").onchange = saying(async ({ target }) => {
  const [file] = target.files;
  target.value = "";
  if (!file) return;
  await live?.stop();
  say("Running the release on this device ...", false, find("choose"));
  const [pixels, metadata] = [await decode(file), await told(file)];
  await settle(await show(encode(pixels, campaign.card.input)), file.name, `Your file is ${size(file.size)}.`, metadata);
});

/** A form that is not sent anywhere: the release runs on what it holds. */
const onForm = (id, action) => {
  find(id).onsubmit = (event) => {
    event.preventDefault();
    say("Running the release on this device ...", false, find(id));
    saying(action)();
  };
};

onForm("write", async () => {
  const x = encodeText(find("text").value, campaign.card.input);
  const [read, longest] = [readText(x, campaign.card.input), campaign.card.input.longest];
  const cut = x.length === longest ? ` It reads the first ${longest} words.` : "";
  await settle(await show(x), "a text", "", [], `${read}${cut && `\n\n${cut.trim()}`}`);
});

onForm("fill", async () => {
  const given = row(campaign.card.input.columns);
  const read = given.map(([name, value]) => `${name}: ${value}`).join("\n") || "nothing was filled in";
  await settle(await show(encodeRow(Object.fromEntries(given), campaign.card.input)), "a form", "", [], read);
});

find("camera").onclick = saying(async () => {
  say("Your browser asks whether this page may see the camera. Pictures of it stay here.", false, find("choose"));
  forget();
  let last;
  const rate = (perSecond) => {
    document.body.dataset.rate = perSecond.toFixed(1);
    find("rate").textContent = `Live, ${perSecond.toFixed(0)} pictures a second. Each with noise of its own; none is sent.`;
  };
  live = await watch(find("video"), campaign.card.input.width, async (pixels) => (last = await show(encode(pixels, campaign.card.input))), rate);
  const seen = (on) => {
    find("camera").hidden = on;
    find("take").hidden = find("stop").hidden = find("rate").hidden = !on;
  };
  live.ended = (error) => {
    seen(false);
    if (error) say(error.message, true);
  };
  seen(true);
  say("The camera is on. Nothing was sent.");
  find("take").focus();
  find("take").onclick = saying(async () => {
    await live.stop();
    if (last) await settle(last, "the camera", "");
    find("consent").focus();
  });
  find("stop").onclick = saying(async () => {
    await live.stop();
    forget();
    find("camera").focus();
    say("The camera is off.");
  });
});

for (const box of BOXES) find(box).onchange = allow;
find("again").onclick = () => {
  forget();
  say("Nothing was sent.", false, find("choose"));
  find({ text: "text", table: "column-0" }[kindOf(campaign.card.input)] ?? "file").focus();
};

find("send").onsubmit = (event) => {
  event.preventDefault();
  saying(async () => {
    if (!chosen || !agreed()) return;
    find("submit").disabled = true;
    say("Sealing and sending ...", false, find("submit").parentElement);
    const agreedTo = BOXES.filter((box) => find(box).checked).map((box) => find(box).labels[0].textContent).join("\n");
    const record = await outbox.prepare(campaign, chosen, answers(campaign.manifest.labels), agreedTo);
    owners.keep(campaign.manifest);
    ledger.remember(campaign);
    // Whatever happens to it now, the same numbers are not sent twice under two names.
    chosen = null;
    find("send").hidden = true;
    try {
      const receipt = await outbox.send(record);
      say(`Sent, ${size(record.content.length)}, and stored. Your receipt is ${receipt.submission.slice(0, 12)}.`, false, find("sent-title"));
    } catch (error) {
      say(error.message + (outbox.waiting(campaign.id) ? " Your record waits here, and is sent when the collector can be reached." : ""), true, find("sent-title"));
    }
    campaign.standing = await owners.standing(campaign.manifest);
    warn();
    await attribute();
    showReceipts();
    find("sent-title").focus();
  })();
};

const retry = saying(async () => {
  if (!campaign || !outbox.waiting(campaign.id)) return;
  try {
    const sent = await outbox.retry(campaign.id);
    say(`Sent ${sent.length} that waited.`, false, find("sent-title"));
  } finally {
    showReceipts();
  }
});
find("retry").onclick = retry;
addEventListener("online", retry);

/** At the first visit the worker came too late to see what was fetched: it is kept for when there is no network. */
async function keep() {
  await navigator.serviceWorker?.register("/sw.js");
  await navigator.serviceWorker?.ready;
  const { card, graph, audit, decoder } = campaign.manifest.release;
  const parts = [card, graph, audit, decoder].filter(Boolean).map((hash) => `/v1/parts/${hash}`);
  await (await caches.open("privet-parts")).addAll([`/v1/campaigns/${campaign.id}`, ...parts]);
  document.body.dataset.offline = "ready";
}

saying(async () => {
  await start();
  keep().catch(() => {}); // without it the page works, while there is a network
})();
