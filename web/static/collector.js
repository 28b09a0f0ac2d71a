/* The collector's page: what came to which campaign and when, what the audit of its release says, and how to export it. */

import { ask, readManifest, readPart } from "./campaign.js";
import { chart } from "./chart.js";
import { find, make, pairs } from "./view.js";
import { hidden, moment, size, spoken } from "./words.js";

const TOKEN = "privet/token"; // of this tab only: sessionStorage ends with it

const headers = () => ({ Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}` });

function say(text, wrong = false) {
  find("status").textContent = text;
  find("status").classList.toggle("wrong", wrong);
}

async function show() {
  const inside = sessionStorage.getItem(TOKEN) !== null;
  find("enter").hidden = inside;
  find("inside").hidden = !inside;
  find("campaigns").replaceChildren();
  if (!inside) return;
  say("Asking ...");
  try {
    const campaigns = await (await ask("/v1/campaigns", { headers: headers() })).json();
    const shown = await Promise.all(campaigns.sort((a, b) => b.created - a.created).map(one));
    find("campaigns").replaceChildren(...shown);
    say(campaigns.length ? "" : "There are no campaigns yet.");
  } catch (error) {
    if (error.status === 401 || error.status === 403) leave();
    say(error.message, true);
  }
}

async function one({ campaign }) {
  const [figures, given] = await Promise.all([
    ask(`/v1/campaigns/${campaign}/figures`, { headers: headers() }).then((answer) => answer.json()),
    ask(`/v1/campaigns/${campaign}`).then((answer) => answer.json()),
  ]);
  const manifest = await readManifest(campaign, given);
  const box = make("article", { className: "campaign" });
  const gone = Object.entries(figures.gone).map(([why, many]) => `${many} ${why}`).join(", ");
  const state = [figures.closed ? "Closed" : "Open", manifest.mode, manifest.access === "invited" ? "by invitation" : "for anyone"];
  const people = `${figures.people} ${figures.people === 1 ? "person" : "people"}`;
  const where =
    manifest.mode === "sealed"
      ? "Records are sealed: only the machine that has the campaign's folder with its sealing.key can open them."
      : "On the machine that has the campaign's folder:";
  box.append(
    make("h2", {}, manifest.title),
    make("p", { className: "soft" }, `${state.join(", ")}, since ${moment(figures.created)}`),
    definition([
      ["Records", `${figures.records} of ${people}, ${size(figures.bytes)}${gone ? `; gone: ${gone}` : ""}`],
      ["Kept", `${manifest.retention_days} days`],
      ["Hides", manifest.private.join(", ")],
      ["Link", `${location.origin}/c/${campaign}`],
    ]),
    make("h3", {}, "Records per day"),
    Object.keys(figures.by_day).length ? chart(figures.by_day) : make("p", {}, "Nothing has come yet."),
    make("h3", {}, "Audit of the release"),
    await audited(campaign, manifest),
    make("h3", {}, "Export"),
    make("p", {}, where),
    make("pre", { tabIndex: 0 }, instructions(manifest)),
  );
  return box;
}

const definition = (rows) => make("dl", { className: "about" }, ...pairs(rows));

async function audited(campaign, manifest) {
  const { audit: hash, report } = manifest.release;
  if (!hash) return make("p", {}, "None is attached. Attach one with  privet campaign create --report.");
  const audit = JSON.parse(new TextDecoder().decode(await readPart(hash)));
  const rows = manifest.private.map((name) => [name, spoken(hidden(audit, name))]);
  const link = make("a", { href: `/v1/parts/${hash}`, download: "audit.json" }, "Download audit.json");
  const box = make("div", {}, definition(rows), make("p", {}, link, report ? "." : "; its report is report.html in the folder of your audit."));
  if (!report) return box;
  const address = `/c/${campaign}/report`;
  const whole = make("details", {}, make("summary", {}, "The whole report"));
  // Asked for when it is opened; it comes with a policy of its own, under which it can do nothing but be read.
  whole.ontoggle = () => {
    if (whole.open && !whole.querySelector("iframe")) whole.append(make("iframe", { src: address, title: `Audit report of ${manifest.title}`, className: "report" }));
  };
  box.append(whole, make("p", {}, make("a", { href: address, target: "_blank", rel: "noopener" }, "The report in a tab of its own")));
  return box;
}

function instructions({ labels }) {
  const lines = ["privet campaign show CAMPAIGN", "privet campaign export CAMPAIGN --out data"];
  if (labels.length) lines.push(`privet task --data data/export.parquet --label "${labels[0].name}" --out model`);
  return lines.join("\n");
}

function leave() {
  sessionStorage.removeItem(TOKEN);
  find("enter").hidden = false;
  find("inside").hidden = true;
  find("campaigns").replaceChildren();
}

find("enter").onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, find("token").value.trim());
  find("token").value = "";
  show();
};
find("again").onclick = show;
find("leave").onclick = () => {
  leave();
  say("The token is forgotten.");
  find("token").focus();
};
show();
