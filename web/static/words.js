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

const OWNER = { kind: "owner" };

/** Who says so, as the end of a sentence; claims.js finds it out. */
export function saidBy({ kind, name, key }) {
  if (kind === "checked") return say("checked", { who: name, key });
  if (kind === "changed") return say("changed");
  if (kind === "owner") return say("claimed", { who: "the campaign's owner" });
  const stranger = kind === "stranger";
  return say(stranger ? "signed_stranger" : "signed_unbound", { who: "the campaign's owner", name, key });
}

/** What goes before figures; nothing where somebody whom the participant trusts has checked them. */
const before = ({ kind }) => (kind === "checked" ? "" : `${say("owner_claims", { who: "The campaign's owner" })} `);

/** What was found about one private attribute: the number to show large, what was measured, and what is claimed for every attacker. */
export function hidden(audit, attribute, claim = OWNER) {
  if (!audit) return { found: say("no_audit"), proof: "", more: "" };
  const said = measuredOf(audit, attribute, claim);
  return said.found === say("unmeasured") ? said : { ...said, found: before(claim) + said.found };
}

function measuredOf(audit, attribute, claim) {
  const reading = audit.readings?.find((one) => one.role === "private" && one.attribute === attribute);
  const { proof, more } = proved(audit, attribute, reading, claim);
  const worst = reading?.released?.length ? headline(reading) : null;
  if (!worst) return { found: say("unmeasured"), proof: "", more: "" };
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

function proved(audit, attribute, reading, claim) {
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
    by: saidBy(claim),
  });
  const worst = worstGroup(audit, one, claim);
  const more = [worst ? "" : say("no_groups"), prior(one), tail(one), say("computer")];
  return { proof: [worst, said].filter(Boolean).join(" "), more: more.filter(Boolean).join(" ") };
}

/** The group with the highest bound, if there is one; it is called certified only where somebody trusted has checked. */
function worstGroup(audit, { attribute }, claim) {
  const all = audit.certificates.filter((one) => one.attribute === attribute).flatMap((one) => one.groups ?? []);
  const bounded = all.filter((group) => isNumber(group.bound)).sort((a, b) => b.bound - a.bound);
  if (!bounded.length) return "";
  const { by, value, bound } = bounded[0];
  const fields = { by, value, what: attribute, bound: percent(bound, "up") };
  return claim.kind === "checked" ? say("certified_group", fields) : say("claimed_group", fields);
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

/** What an audit says of several records of a person who is known by nothing else; one release made of several records is another thing. */
export const bounds = (audit, names) =>
  (audit?.certificates ?? [])
    .filter((one) => names.includes(one.attribute) && isNumber(one.bound) && one.releases === 1 && !one.given?.length && one.per !== "person" && (one.weighing ?? "people") === "people")
    .map((one) => ({ attribute: one.attribute, records: one.records ?? 1, bound: one.bound, blind: 1 / Math.max(one.values.length, 1) }));

/** For how many records of a person there is a bound for every private attribute. */
export const covered = (known, names) => (names.length ? Math.min(...names.map((name) => Math.max(0, ...known.filter((one) => one.attribute === name).map((one) => one.records)))) : 0);

/** How many records of a person are taken, and whether a bound covers so many. */
export function howMany(most, audit, names, claim = OWNER) {
  if (most === 1) return say("records_once");
  const fewest = covered(bounds(audit, names), names);
  const said = most.toLocaleString("en");
  if (fewest < most) return say("records_uncertified", { most: said });
  const fields = { most: said, records: fewest.toLocaleString("en") };
  return claim.kind === "checked" ? say("records_certified", fields) : say("records_claimed", fields);
}

export const count = (records) => `${records.toLocaleString("en")} record${records === 1 ? "" : "s"}`;

/** What is certified about an attribute at so many records sent to a campaign, and who says so. */
export function known({ bounds: some, claim }, attribute, records) {
  const holding = some.filter((one) => one.attribute === attribute && one.records >= Math.max(records, 1)).sort((a, b) => a.bound - b.bound);
  if (!holding.length) return say("sent_uncertified", { what: attribute, count: count(records) });
  const [{ bound, blind, records: many }] = holding;
  const seen = (many === 1 ? say("seen_record") : say("seen_records", { records: many.toLocaleString("en") })) + say("knows_nothing");
  return before(claim) + say("sent_bound", { what: attribute, seen, bound: percent(bound, "up"), blind: percent(blind), by: saidBy(claim) });
}

/** That nothing is certified for what was sent to several campaigns of an owner, or to several owners. */
export const together = (records, campaigns) => say("sent_owner", { count: count(records), campaigns: campaigns.toLocaleString("en") });
export const pooled = (records, owners) => say("sent_owners", { count: count(records), owners: owners.toLocaleString("en") });

/** What the campaign binds itself to, beside keeping records for so long. */
function governed({ counts_epsilon: epsilon, least_people: least, labels }) {
  const changed = labels.filter((label) => label.epsilon).map((label) => label.name);
  return [
    ...(epsilon ? [["What the owner gets", `Counts of people with noise (epsilon ${epsilon}), no record.`]] : []),
    ...(least > 1 ? [["Not before", `${least.toLocaleString("en")} people have taken part`]] : []),
    ...(changed.length ? [["Changed at random", `Your answers to ${changed.join(", ")}, before they leave`]] : []),
  ];
}

/** What a record is for, who may read it, how long it is kept: label and text. */
export function about({ manifest, fingerprint, audit, claim }, standing) {
  const asked = manifest.labels.map(({ name, values, question }) => `${name} (${values.join(" or ") || "a number"})${question ? `: ${question}` : ""}`).join("; ");
  const seenBefore = {
    used: `you sent to it before from this browser, as ${standing.who}`,
    other: "NOT the key that you used before under this name",
    new: "you never sent to it from this browser: compare it with what the owner tells you",
  }[standing.kind];
  return [
    ["Who asks", manifest.who],
    ["Hides", `${manifest.private.join(", ")} (method: ${manifest.method})`],
    ["Also asks", asked || "nothing beside the record"],
    ["Who can read it", manifest.mode === "sealed" ? "Only whoever has the owner's key. The server cannot." : "The collector's server and its owner."],
    ["How long", `${manifest.retention_days} ${manifest.retention_days === 1 ? "day" : "days"}, or until you withdraw`],
    ["How often", howMany(manifest.records_per_person, audit, manifest.private, claim)],
    ...governed(manifest),
    ["Owner's key", `${fingerprint} (${seenBefore})`],
    ["Checked here", "Signature, manifest and release are the ones that the link names."],
  ];
}

export const size = (bytes) => (bytes < 2000 ? `${bytes} bytes` : bytes < 2e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
/** Collectors keep the day of a record, not its hour. */
export const day = (milliseconds) => new Date(milliseconds).toLocaleDateString([], { dateStyle: "medium", timeZone: "UTC" });
export const moment = (milliseconds) => new Date(milliseconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
