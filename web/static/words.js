/* Figures to plain sentences, never stronger than the figures: ends of intervals and bounds are rounded outward, what is missing is called so. */

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
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

const soMany = (count) => `${count} ${count === "1" || count === "under 1" ? "time" : "times"}`;

/** What was found about one private attribute: the number to show large, what was measured, and what is proved. */
export function hidden(audit, attribute) {
  const reading = audit?.readings?.find((one) => one.role === "private" && one.attribute === attribute);
  const proof = proved(audit, attribute, reading);
  const score = reading?.released?.[reading.best]?.score;
  if (!audit) return { found: "How well it is hidden is not known: the campaign's owner has attached no audit.", proof: "" };
  if (!score || !(score.n > 0) || !isNumber(score.value)) return { found: "No attacker's success was measured.", proof };
  const count = reading.released.length;
  const who = count === 1 ? "The only attacker" : `The best of ${count} attackers`;
  if (!reading.values.length) {
    const share = Math.max(Math.round(100 * score.value), 0);
    return { found: `${who} explains ${share} % of the differences between people; guessing explains none.`, proof };
  }
  const of = tries(score.chance);
  const between = isNumber(score.low) && isNumber(score.high) ? ` (between ${times(score.low, of, "down")} and ${times(score.high, of, "up")})` : "";
  const found = `${who} is right ${soMany(times(score.value, of))} in ${of}${between}; guessing is right ${soMany(times(score.chance, of))}.`;
  const raw = reading.raw?.[reading.best_raw]?.score;
  const before = raw && isNumber(raw.value) ? ` On the raw record it is right ${soMany(times(raw.value, of))}.` : "";
  return { large: times(score.value, of), of, found: found + before, proof };
}

function proved(audit, attribute, reading) {
  const one = audit?.certificates?.find((certificate) => certificate.attribute === attribute && certificate.releases === 1);
  if (!one) return "Not certified: a stronger attacker may read more.";
  if (!isNumber(one.bound)) return `Not certified: ${one.reason || "no reason was kept"}.`;
  const found = reading?.released?.[reading.best]?.score;
  if (reading?.values.length && found && isNumber(found.low) && found.low > one.bound)
    return "A certificate is attached, but an attacker did better than it allows: do not rely on it.";
  const of = tries(1 / Math.max(one.values.length, 1));
  const sure = Number((100 * one.confidence).toPrecision(10));
  return `Certified: nobody can be right more than ${times(one.bound, of, "up")} times in ${of} (${sure} % confidence).`;
}

/** What a record is for, who may read it, how long it is kept: label and text. */
export function about({ manifest, fingerprint }, known) {
  const asked = manifest.labels.map((label) => `${label.name} (${label.values.join(" or ") || "a number"})`).join(", ");
  const most = manifest.records_per_person;
  const more = `Up to ${most.toLocaleString("en")} records per person. The figures are about one; each further one tells a little more.`;
  const seen = known ? "seen before in this browser" : "new to this browser: compare it with what the owner tells you";
  return [
    ["Who asks", manifest.who],
    ["Hides", `${manifest.private.join(", ")} (method: ${manifest.method})`],
    ["Also asks", asked || "nothing beside the record"],
    ["Who can read it", manifest.mode === "sealed" ? "Only whoever has the owner's key. The server cannot." : "The collector's server and its owner."],
    ["How long", `${manifest.retention_days} ${manifest.retention_days === 1 ? "day" : "days"}, or until you withdraw`],
    ["How often", most === 1 ? "Once per person" : more],
    ["Owner's key", `${fingerprint} (${seen})`],
    ["Checked here", "Signature, manifest and release are the ones that the link names."],
  ];
}

export const size = (bytes) => (bytes < 2000 ? `${bytes} bytes` : bytes < 2e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
export const moment = (milliseconds) => new Date(milliseconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
