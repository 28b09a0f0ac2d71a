/* Fields of forms: what the campaign asks beside a record, and the columns of a table that is the record. */

import { find, make } from "./view.js";

function field(id, values, empty, required = false) {
  const options = () => [make("option", { value: "" }, empty), ...values.map((value) => make("option", { value }, value))];
  const made = values.length ? make("select", {}, ...options()) : make("input", { type: "number", step: "any" });
  return Object.assign(made, { id, required });
}

const labelled = (text, made) => make("p", {}, make("label", { htmlFor: made.id }, text), made);

/** Something that the campaign asks. */
export function question({ name, question: words, values, required }, place) {
  return labelled(`${words || name}${required ? " (needed)" : ""}`, field(`label-${place}`, values, required ? "Choose" : "No answer", required));
}

/** A column of the table that the release takes. */
export const cell = ({ name, values }, place) => labelled(name, field(`column-${place}`, values, "No answer"));

/** What was answered; nothing is there of what was not. */
export function answers(labels) {
  const given = labels.map(({ name, values }, place) => [name, values, find(`label-${place}`).value]).filter(([, , value]) => value !== "");
  return Object.fromEntries(given.map(([name, values, value]) => [name, values.length ? value : Number(value)]));
}

/** What was filled in, as text. */
export const row = (columns) => columns.map(({ name }, place) => [name, find(`column-${place}`).value]).filter(([, value]) => value !== "");
