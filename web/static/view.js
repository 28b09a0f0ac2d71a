/* Drawing what is seen: pictures, and released numbers that are none. And making elements from text, never from markup. */

import { toImage } from "./picture.js";

export const find = (id) => document.getElementById(id);

/** Text of strangers as it is seen: marks that turn the direction of writing, and all others that are not seen, are written as escapes. */
export const shown = (text) => String(text).replace(/(?![\n\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

/** An element with text or other elements in it. */
export function make(tag, options = {}, ...inside) {
  const element = Object.assign(document.createElement(tag), options);
  element.append(...inside.map((part) => (typeof part === "string" ? shown(part) : part)));
  return element;
}

export const write = (id, text) => (find(id).textContent = shown(text));

export const pairs = (rows) => rows.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]);

export function drawPicture(canvas, values, form) {
  [canvas.width, canvas.height] = [form.width, form.height];
  canvas.getContext("2d").putImageData(toImage(values, form), 0, 0);
}

/** One field per number, violet below zero and green above it, white at it; as square as the numbers allow. */
export function drawNumbers(canvas, z) {
  const columns = Math.ceil(Math.sqrt(z.length));
  [canvas.width, canvas.height] = [columns, Math.ceil(z.length / columns)];
  const image = new ImageData(canvas.width, canvas.height);
  const most = z.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1);
  z.forEach((value, i) => {
    const [ends, share] = [value < 0 ? [123, 49, 150] : [22, 117, 76], Math.abs(value) / most];
    ends.forEach((end, colour) => (image.data[4 * i + colour] = 245 + (end - 245) * share));
    image.data[4 * i + 3] = 255;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
