/* What this browser sent to campaigns of this collector, and what is certified at the number of records sent so far. A record counts once it may
   have left: stored, waiting, or taken back since. The same numbers sent again count once. */

import * as outbox from "./outbox.js";
import { make } from "./view.js";
import { bounds, count, covered, known, pooled, together } from "./words.js";

const ACCOUNT = "privet/account/";

const accountOf = ({ id, manifest, audit, claim }) => ({
  campaign: id, title: manifest.title, who: manifest.who, owner: manifest.signing_key, private: manifest.private,
  bounds: bounds(audit, manifest.private), claim,
});

/** Write down the campaign before anything is sent to it. */
export const remember = (campaign) => localStorage.setItem(ACCOUNT + campaign.id, JSON.stringify(accountOf(campaign)));

const sentTo = (campaign) => outbox.everything().filter((one) => one.campaign === campaign && one.state !== "refused");
const numbersOf = (receipts) => new Set(receipts.map((one) => one.numbers || one.submission));

/** {seen, certified} where the campaign would have more records of this browser that belong together than any bound covers; else null. */
export function beyond(campaign, numbers) {
  const { bounds: some, private: names } = accountOf(campaign);
  const [certified, seen] = [covered(some, names), numbersOf(sentTo(campaign.id)).add(numbers).size];
  return seen > Math.max(certified, 1) ? { seen, certified } : null;
}

function accounts() {
  const campaigns = [...new Set(outbox.everything().map((one) => one.campaign))];
  return campaigns.map((campaign) => {
    const kept = JSON.parse(localStorage.getItem(ACCOUNT + campaign) ?? "null");
    const { title } = outbox.everything().find((one) => one.campaign === campaign);
    return { campaign, title, who: "an owner", owner: campaign, private: [], bounds: [], claim: { kind: "owner" }, ...kept, seen: numbersOf(sentTo(campaign)).size };
  });
}

/** The ledger as elements: owner by owner, campaign by campaign. */
export function lines() {
  const all = accounts();
  const owners = Map.groupBy ? Map.groupBy(all, ({ owner }) => owner) : grouped(all);
  const shown = [...owners.values()].flatMap((some) => [...some.map(campaignLine), ...(some.length > 1 ? [make("li", {}, together(total(some), some.length))] : [])]);
  return owners.size > 1 ? [...shown, make("li", {}, pooled(total(all), owners.size))] : shown;
}

const total = (some) => some.reduce((sum, { seen }) => sum + seen, 0);

function grouped(all) {
  const owners = new Map();
  for (const one of all) owners.set(one.owner, [...(owners.get(one.owner) ?? []), one]);
  return owners;
}

function campaignLine(account) {
  const said = account.private.length ? account.private.map((name) => known(account, name, account.seen)) : [];
  const link = make("a", { href: `/c/${account.campaign}` }, account.title);
  return make("li", {}, make("p", {}, link, `, ${account.who}: ${count(account.seen)} sent`), ...said.map((text) => make("p", { className: "soft" }, text)));
}
