/* Whether a campaign asks for what its release hides: words are compared, not names, as privet/exchange/protocol/asking.py does it.
   Another word for the same thing is not caught, so everything that is asked is shown beside everything that is hidden. */

const ENDINGS = "ness less ings ing ers ies est ed er es ly e s y".split(" ");
const EMPTY = new Set(
  ("a an and any are at be been by can did do does for from had has have how i in is it its many me much my no not of on one or other our that the " +
    "their they this to type was we were what when where which who will with yes you your kind number value true false none unknown").split(" "),
);

/** The words of a text without case and marks; camelCase and snake_case are several. */
export function words(text) {
  const plain = String(text).normalize("NFKD").replace(/[\p{M}\u00ad\u200b]/gu, "");
  return plain.replace(/([a-z0-9])(?=[A-Z])/g, "$1 ").toLowerCase().replaceAll("ß", "ss").match(/[\p{L}\p{N}]+/gu) ?? [];
}

function stem(word) {
  const ending = ENDINGS.find((one) => word.endsWith(one) && word.length - one.length >= 3);
  return ending ? word.slice(0, -ending.length) : word;
}

const inside = (word, there) => there.some((other) => stem(other) === stem(word) || (word.length >= 5 && other.includes(word)));
const textsOf = ({ name, question, values }) => [name, question ?? "", ...(values ?? [])];

/** Whether all words of an attribute's name are in a text. */
function names(text, attribute) {
  const all = words(attribute);
  const some = all.filter((word) => !EMPTY.has(word));
  const wanted = some.length ? some : all;
  const there = words(text);
  if (wanted.join("").length < 2) return wanted.length > 0 && there.join(" ") === wanted.join(" "); // one letter is a name, not a word
  return wanted.every((word) => inside(word, there));
}

/** The first question that asks for a private attribute by its words. */
export const askedFor = (labels, hidden) => labels.find((label) => textsOf(label).some((text) => hidden.some((attribute) => names(text, attribute))));

/** Questions that share a word with a private attribute, or an answer with its values. */
export function overlaps(labels, hidden, values) {
  const pairs = labels.flatMap((label) => hidden.map((attribute) => ({ label: label.name, attribute, word: shared(label, attribute, values[attribute] ?? []) })));
  return pairs.filter(({ word }) => word);
}

function shared(label, attribute, values) {
  const there = textsOf(label).flatMap(words);
  const word = words(attribute).find((one) => !EMPTY.has(one) && one.length > 1 && inside(one, there));
  if (word) return word;
  const answers = new Set((label.values ?? []).map((value) => words(value).join(" ")));
  const telling = (value) => answers.has(value) && !EMPTY.has(value) && !/^\p{N}*$/u.test(value) && value.length > 1;
  return values.find((value) => telling(words(value).join(" "))) ?? "";
}
