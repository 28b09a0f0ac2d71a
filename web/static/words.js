/* Figures to plain sentences, never stronger than the figures: the words are those of the table that Python's pages use, ends of intervals and bounds are rounded outward, what is missing is called so. */

import { SENTENCES } from "./sentences.js";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const measured = (score) => Boolean(score) && score.n > 0 && score.interval !== "the whole range" && [score.value, score.low, score.high].every(isNumber);
export const tries = (chance) => (!isNumber(chance) || chance >= 0.02 ? 100 : chance >= 0.002 ? 1000 : 10000);

/** How often in so many tries. */
export function times(value, of = 100, way = "nearest") {
  const exact = Math.round(Math.min(Math.max(value, 0), 1) * of * 1e7) / 1e7;
  if (way === "down") return String(Math.floor(exact));
  if (way === "up") return String(Math.ceil(exact));
  if (exact >= of - 0.5 && exact < of) return `over ${of - 1}`;
  if (exact > 0 && exact < 0.5) return "under 1";
  return String(Math.floor(exact + 0.5));
}

/** A share in per cent with one decimal. */
export function percent(value, way = "nearest") {
  const exact = Math.round(value * 1e10) / 1e7;
  const tenths = way === "up" ? Math.ceil(exact) : way === "down" ? Math.floor(exact) : Math.floor(exact + 0.5);
  return (tenths / 10).toFixed(1);
}

/** The sentence of that name with its fields filled in; one that the table does not have, or a field too few or too many, is a mistake of ours. */
export function say(name, fields = {}) {
  const text = SENTENCES[name];
  if (text === undefined) throw new Error(`There is no sentence '${name}'.`);
  const wanted = new Set(Array.from(text.matchAll(/\{(\w+)\}/g), (match) => match[1]));
  if (wanted.size !== Object.keys(fields).length || ![...wanted].every((field) => field in fields)) throw new Error(`The sentence '${name}' has the fields ${[...wanted].join(", ")}.`);
  return text.replace(/\{(\w+)\}/g, (_, field) => String(fields[field]));
}

const soMany = (count) => `${count} ${count === "1" || count === "under 1" ? "time" : "times"}`;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const ONE_RECORD = ["rebuilt", "kept columns", "released and kept"];

/** The finding to judge one record by: the highest of the strongest attacker on released numbers and those on rebuilt records and on the columns that leave as well. */
function headline(reading) {
  const findings = [reading.released[reading.best], ...(reading.others ?? []).filter((one) => ONE_RECORD.includes(one.source))];
  return findings.filter((one) => measured(one?.score)).reduce((most, one) => (most && most.score.value >= one.score.value ? most : one), null);
}

function seen({ source, columns }) {
  const beside = listed(columns ?? []) || "the columns kept";
  return { rebuilt: "one rebuilt record", "kept columns": `${beside} beside the release, without it`, "released and kept": `one released record with ${beside}` }[source] ?? "one released record";
}

/** The values that are told from the rest beyond chance, the most readable first. */
const legible = (reading) => (reading.classes ?? []).filter((one) => measured(one.score) && one.score.low > one.score.chance).sort((a, b) => b.score.value - a.score.value);

/** Names with "and" before the last, at most six of them. */
const listed = (names) => (names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join(""));

/** What is said after the figure: that it is guessing only where every value against the rest is. */
function besideGuessing(reading, score, of) {
  const readable = legible(reading).length > 0;
  const judged = reading.values.length <= 2 || Boolean(reading.classes?.length);
  if (score.low > score.chance || readable || !judged) {
    const unknown = score.low <= score.chance && !readable ? say("classes_unknown") : "";
    return say("guessing", { blind: soMany(times(score.chance, of)) }) + unknown;
  }
  const text = say("as_guessing", { blind: times(score.chance, of) });
  if (score.high - score.chance <= 0.1) return text;
  return text + say("could_be", { rows: `${score.n.toLocaleString("en")} records`, high: times(score.high, of, "up") });
}

function singleValues(reading) {
  const read = reading.values.length <= 2 ? [] : legible(reading).slice(0, 3);
  const said = read.map(({ value, score }) => `${say("class_read", { value, times: soMany(times(score.value)), of: 100, low: times(score.low, 100, "down"), high: times(score.high, 100, "up") })}.`);
  const rare = (reading.classes ?? []).filter((one) => one.rare).map((one) => `${one.value} (${one.people.toLocaleString("en")})`);
  if (rare.length) said.push(`${say("classes_rare", { names: listed(rare) })}.`);
  return said.join(" ");
}

function atRealFrequencies(reading, { plain }, of) {
  if (!measured(plain) || !isNumber(plain.chance) || plain.chance < 1 / reading.values.length + 0.02) return "";
  return `${say("real_frequencies", { times: soMany(times(plain.value, of)), of, blind: times(plain.chance, of) })}.`;
}

function weighedByPeople({ evidence }, headlineScore, of) {
  const score = evidence?.balanced_by_people;
  if (!measured(score) || Math.abs(score.value - headlineScore.value) < 0.01) return "";
  return `${say("by_people", { times: soMany(times(score.value, of)), of, low: times(score.low, of, "down"), high: times(score.high, of, "up") })}.`;
}

/** What was found about one private attribute: the number to show large, what was measured, and what is claimed for every attacker. */
export function hidden(audit, attribute) {
  const reading = audit?.readings?.find((one) => one.role === "private" && one.attribute === attribute);
  if (!audit) return { found: say("no_audit"), proof: "", more: "" };
  const { proof, more } = proved(audit, attribute, reading);
  const worst = reading?.released?.length ? headline(reading) : null;
  if (!worst) return { found: say("unmeasured"), proof, more };
  const { score } = worst;
  const count = reading.released.length;
  const who = count === 1 ? "the only attacker" : `the best of ${count} attackers`;
  if (!reading.values.length) {
    const share = `${Math.max(Math.round(100 * score.value), 0)} %`;
    return { found: `${capital(say("found_number", { seen: seen(worst), who, share }))}${say("guessing_number")}.`, proof, more };
  }
  const of = tries(score.chance);
  const values = reading.values.length === 2 ? "both values" : `all ${reading.values.length} values`;
  const fields = { seen: seen(worst), who, values, times: soMany(times(score.value, of)), of, low: times(score.low, of, "down"), high: times(score.high, of, "up") };
  const raw = reading.raw?.[reading.best_raw]?.score;
  const before = measured(raw) ? `${say("on_raw", { noun: "record", who: "it", does: say("is_right", { times: soMany(times(raw.value, of)) }) })}.` : "";
  const together = `${capital(say("found", fields))}${besideGuessing(reading, score, of)}.`;
  const single = singleValues(reading);
  // Where the mean over all values is guessing and one of them is read, that one comes first.
  const first = single && score.low <= score.chance ? legible(reading)[0] : null;
  const found = [...(first ? [single, together] : [together, single]), atRealFrequencies(reading, worst, of), weighedByPeople(reading, score, of), before].filter(Boolean).join(" ");
  if (first) return { large: times(first.score.value), label: say("large_value", { of: 100, value: first.value }), found, proof, more };
  return { large: times(score.value, of), label: say("large", { of }), found, proof, more };
}

/** All of it in one paragraph. */
export const spoken = ({ found, proof, more }) => [found, proof, more].filter(Boolean).join(" ");

/** How sure a bound is, and of how many statements together. */
function sure({ confidence, statements }) {
  const share = Number((100 * confidence).toPrecision(10));
  if (statements > 1) return say("sure_together", { sure: share, statements });
  const alone = statements === 1;
  return say(alone ? "sure_alone" : "sure_each", { sure: share });
}

const ofOneRecord = (one) => one.releases === 1 && (one.records ?? 1) === 1 && !one.given?.length;

function proved(audit, attribute, reading) {
  const one = audit.certificates?.find((certificate) => certificate.attribute === attribute && ofOneRecord(certificate));
  if (!one) return { proof: say("uncertified"), more: "" };
  if (!isNumber(one.bound)) return { proof: say("not_certified", { reason: one.reason || "no reason was kept" }), more: "" };
  const byPeople = (one.weighing ?? "people") === "people" ? reading?.evidence?.balanced_by_people : null;
  const rebuilt = (reading?.others ?? []).filter((other) => other.source === "rebuilt").map((other) => other.score);
  const scores = [byPeople ?? reading?.released?.[reading.best]?.score, ...rebuilt];
  if (reading?.values.length && scores.some((score) => measured(score) && score.low > one.bound)) return { proof: say("beaten", { bound: percent(one.bound, "up") }), more: "" };
  const together = one.per === "person";
  const said = say("certified", {
    seen: say(together ? "seen_person" : "seen_record") + say("knows_nothing"),
    what: one.attribute,
    bound: percent(one.bound, "up"),
    over: one.weighing ?? "people",
    blind: percent(1 / Math.max(one.values.length, 1)),
    sure: sure(one),
    by: say("claimed", { who: "the campaign's owner" }),
  });
  const worst = worstGroup(audit, one);
  const more = [worst ? "" : say("no_groups"), prior(one), tail(one), say("computer")];
  return { proof: [worst, said].filter(Boolean).join(" "), more: more.filter(Boolean).join(" ") };
}

/** The worst certified group, if there is one. */
function worstGroup(audit, { attribute }) {
  const all = audit.certificates.filter((one) => one.attribute === attribute).flatMap((one) => one.groups ?? []);
  const bounded = all.filter((group) => isNumber(group.bound)).sort((a, b) => b.bound - a.bound);
  if (!bounded.length) return "";
  const { by, value, bound } = bounded[0];
  return say("certified_group", { by, value, what: attribute, bound: percent(bound, "up") });
}

function prior({ at_prior: bound, prior: frequencies }) {
  if (!frequencies?.length) return "";
  const most = percent(Math.max(...frequencies));
  return isNumber(bound) ? say("certified_prior", { bound: percent(bound, "up"), most }) : say("certified_no_prior", { most });
}

/** That a bound is an average, and how often an adversary can be surer, where that is bounded. */
function tail({ priors }) {
  const above = (priors?.posterior ?? []).filter((point) => point.at >= 0.7 - 1e-9 && point.bound < 1).sort((a, b) => a.at - b.at);
  if (!above.length) return say("certified_average");
  return say("certified_tail", { share: percent(above[0].bound, "up"), probability: Number((100 * above[0].at).toPrecision(10)) });
}

/** How many records of a person are taken, and whether what is certified covers so many. */
export function howMany(most, audit, names) {
  if (most === 1) return say("records_once");
  const covered = names.map((name) =>
    // One release made of several records is another thing than several releases.
    Math.max(0, ...(audit?.certificates ?? []).filter((one) => one.attribute === name && isNumber(one.bound) && one.releases === 1 && !one.given?.length && one.per !== "person").map((one) => one.records ?? 1)),
  );
  const fewest = covered.length ? Math.min(...covered) : 0;
  const said = most.toLocaleString("en");
  if (fewest < most) return say("records_uncertified", { most: said });
  return say("records_certified", { most: said, records: fewest.toLocaleString("en") });
}

/** What a record is for, who may read it, how long it is kept: label and text. */
export function about({ manifest, fingerprint, audit }, known) {
  const asked = manifest.labels.map((label) => `${label.name} (${label.values.join(" or ") || "a number"})`).join(", ");
  const seenBefore = known ? "seen before in this browser" : "new to this browser: compare it with what the owner tells you";
  return [
    ["Who asks", manifest.who],
    ["Hides", `${manifest.private.join(", ")} (method: ${manifest.method})`],
    ["Also asks", asked || "nothing beside the record"],
    ["Who can read it", manifest.mode === "sealed" ? "Only whoever has the owner's key. The server cannot." : "The collector's server and its owner."],
    ["How long", `${manifest.retention_days} ${manifest.retention_days === 1 ? "day" : "days"}, or until you withdraw`],
    ["How often", howMany(manifest.records_per_person, audit, manifest.private)],
    ["Owner's key", `${fingerprint} (${seenBefore})`],
    ["Checked here", "Signature, manifest and release are the ones that the link names."],
  ];
}

export const size = (bytes) => (bytes < 2000 ? `${bytes} bytes` : bytes < 2e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
export const moment = (milliseconds) => new Date(milliseconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
