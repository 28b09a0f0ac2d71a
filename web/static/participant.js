/* The participant's page: check the campaign, show what it hides, run the release here, show what leaves, and send it if its owner agrees. */

import { watch } from "./camera.js";
import { open } from "./campaign.js";
import { answers, cell, question, row } from "./fields.js";
import { encodeRow, encodeText, kindOf, readText } from "./inputs.js";
import { told } from "./metadata.js";
import * as outbox from "./outbox.js";
import { decode, encode } from "./picture.js";
import { Decoder, Release, load } from "./runtime.js";
import { drawNumbers, drawPicture, find, make, pairs } from "./view.js";
import { about, hidden, moment, size } from "./words.js";

let campaign, release, decoder, live;
let chosen = null; // what would leave: the released numbers, their shape, and where they are from

const TITLES = { image: "Choose a picture", text: "Write a text", table: "Fill in the form" };
const STAYS = {
  image: "It stays on this device, with its name, place and time.",
  text: "Your words stay on this device.",
  table: "What you fill in stays on this device.",
};

function say(text, wrong = false) {
  find("status").textContent = text;
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
  describe();
  const kind = kindOf(campaign.card.input);
  if (!kind) throw new Error(`A page cannot take what this campaign asks for. Take part with  privet share ${location.href.split("#")[0]} FILES...`);
  find("choose-title").textContent = TITLES[kind];
  find("keeps").textContent = STAYS[kind];
  steps("Loading what runs the release in this browser (14 MB, once)");
  await load();
  const secret = { key: outbox.noiseKey(campaign.id), graph: campaign.manifest.release.graph, campaign: campaign.id };
  release = await Release.open(campaign.graph, campaign.card, secret);
  decoder = campaign.decoder && (await Decoder.open(campaign.decoder, campaign.card));
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

function describe() {
  const { manifest, audit } = campaign;
  const known = localStorage.getItem(`privet/owner/${manifest.signing_key}`) !== null;
  localStorage.setItem(`privet/owner/${manifest.signing_key}`, manifest.who);
  document.title = `${manifest.title} - Privet`;
  find("title").textContent = manifest.title;
  find("purpose").textContent = manifest.purpose;
  find("command").textContent = `privet share ${location.origin}${location.pathname}`;
  find("about").replaceChildren(...pairs(about(campaign, known)));
  find("hides").replaceChildren(...manifest.private.map((name) => headline(name, hidden(audit, name))));
  find("report").hidden = !manifest.release.report;
  find("report-link").href = `/c/${campaign.id}/report`;
  find("labels").append(...manifest.labels.map(question));
  find("labels").hidden = !manifest.labels.length;
  find("page").hidden = false;
  showReceipts();
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
  if (picture && form === "record") drawPicture(find("leaves"), z, input);
  else drawNumbers(find("leaves"), z);
  if (decoder && picture) drawPicture(find("rebuilt"), await decoder.run(z), input);
  find("rebuilt-view").hidden = !decoder || !picture;
  const many = z.length === 1 ? "One number" : `${z.length.toLocaleString("en")} numbers`;
  const which = z.length <= 4 ? Array.from(z, (value) => value.toFixed(3)).join(", ") : shape.length > 1 ? shape.join(" × ") : "";
  const sealed = campaign.manifest.mode === "sealed" ? "sealed" : "not sealed";
  find("leaving").textContent = `${many}${which && ` (${which})`}. With a header ${size(outbox.bytesOf(campaign, shape))}, ${sealed}.`;
  find("look").hidden = false;
  return { z, shape };
}

/** It is chosen: from now on just these numbers would leave. */
function settle({ z, shape }, source, stays, metadata = [], read = "") {
  chosen = { z, shape, source };
  const shown = Array.from(z.slice(0, 1000), (value) => value.toFixed(4)).join("  ");
  find("numbers").textContent = z.length > 1000 ? `${shown}  ... and ${z.length - 1000} more` : shown;
  find("stays").textContent = stays;
  find("read").textContent = read;
  find("before-words").hidden = !read;
  find("metadata").replaceChildren(...pairs(metadata.length ? [["Also stays here", "What the file says beside the picture:"], ...metadata] : []));
  find("metadata").hidden = !metadata.length;
  find("send").hidden = !campaign.open;
  find("consent").checked = false;
  find("submit").disabled = true;
  say("This is what would leave. Nothing was sent.");
  find("look").scrollIntoView({ block: "start" });
}

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
}

function receiptRow(receipt) {
  const name = receipt.submission.slice(0, 12);
  const keep = make("button", { type: "button", className: "quiet" }, "Download receipt");
  const back = make("button", { type: "button", className: "quiet" }, "Withdraw");
  keep.setAttribute("aria-label", `Download the receipt ${name}`);
  back.setAttribute("aria-label", `Withdraw ${name}`);
  keep.onclick = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(receipt, null, 1)], { type: "application/json" }));
    make("a", { href: url, download: `receipt-${name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  back.onclick = saying(async () => {
    back.disabled = true;
    const deleted = await outbox.withdraw(receipt).finally(() => (back.disabled = false));
    showReceipts();
    say(deleted ? "Withdrawn: the collector has deleted it." : "It was gone already.");
    if (!find("sent").hidden) find("sent-title").focus();
  });
  const words = make("div", {}, make("code", {}, name), ` sent ${moment(receipt.received)}, from ${receipt.source}`);
  return make("li", {}, words, make("div", { className: "buttons" }, keep, back));
}

find("file").onchange = saying(async ({ target }) => {
  const [file] = target.files;
  target.value = "";
  if (!file) return;
  await live?.stop();
  say("Running the release on this device ...");
  const [pixels, metadata] = [await decode(file), await told(file)];
  settle(await show(encode(pixels, campaign.card.input)), file.name, `Your file is ${size(file.size)}.`, metadata);
});

/** A form that is not sent anywhere: the release runs on what it holds. */
const onForm = (id, action) => {
  find(id).onsubmit = (event) => {
    event.preventDefault();
    say("Running the release on this device ...");
    saying(action)();
  };
};

onForm("write", async () => {
  const x = encodeText(find("text").value, campaign.card.input);
  const [read, longest] = [readText(x, campaign.card.input), campaign.card.input.longest];
  const cut = x.length === longest ? ` It reads the first ${longest} words.` : "";
  settle(await show(x), "a text", "", [], `${read}${cut && `\n\n${cut.trim()}`}`);
});

onForm("fill", async () => {
  const given = row(campaign.card.input.columns);
  const read = given.map(([name, value]) => `${name}: ${value}`).join("\n") || "nothing was filled in";
  settle(await show(encodeRow(Object.fromEntries(given), campaign.card.input)), "a form", "", [], read);
});

find("camera").onclick = saying(async () => {
  say("Your browser asks whether this page may see the camera. Pictures of it stay here.");
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
    if (last) settle(last, "the camera", "");
    find("consent").focus();
  });
  find("stop").onclick = saying(async () => {
    await live.stop();
    forget();
    find("camera").focus();
    say("The camera is off.");
  });
});

find("consent").onchange = () => (find("submit").disabled = !find("consent").checked || !chosen);
find("again").onclick = () => {
  forget();
  say("Nothing was sent.");
  find({ text: "text", table: "column-0" }[kindOf(campaign.card.input)] ?? "file").focus();
};

find("send").onsubmit = (event) => {
  event.preventDefault();
  saying(async () => {
    if (!chosen || !find("consent").checked) return;
    find("submit").disabled = true;
    say("Sealing and sending ...");
    const record = await outbox.prepare(campaign, chosen, answers(campaign.manifest.labels));
    // Whatever happens to it now, the same numbers are not sent twice under two names.
    chosen = null;
    find("send").hidden = true;
    try {
      const receipt = await outbox.send(record);
      say(`Sent, ${size(record.content.length)}, and stored. Your receipt is ${receipt.submission.slice(0, 12)}.`);
    } catch (error) {
      say(error.message + (outbox.waiting(campaign.id) ? " Your record waits here, and is sent when the collector can be reached." : ""), true);
    }
    showReceipts();
    find("sent-title").focus();
  })();
};

const retry = saying(async () => {
  if (!campaign || !outbox.waiting(campaign.id)) return;
  try {
    const sent = await outbox.retry(campaign.id);
    say(`Sent ${sent.length} that waited.`);
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
