/* One picture: from a file or a camera's frame to the bytes that the release takes, just as privet/data/images.py makes them. */

const LARGEST = 100_000_000;
const BITS = 22;

/** Pixels of a picture file, upright and in the colours that are written in it. */
export async function decode(file) {
  let picture;
  try {
    picture = await createImageBitmap(file, { imageOrientation: "from-image", colorSpaceConversion: "none", premultiplyAlpha: "none" });
  } catch {
    throw new Error("This file cannot be read as a picture. Choose a JPEG, PNG or WebP.");
  }
  if (picture.width * picture.height > LARGEST) throw new Error("This picture has more than 100 megapixels: make it smaller first.");
  const pixels = grab(picture, picture.width, picture.height);
  picture.close();
  return pixels;
}

let canvas;

/** Pixels of anything that can be drawn. */
export function grab(source, width, height) {
  canvas ??= document.createElement("canvas");
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0);
  return { data: context.getImageData(0, 0, width, height).data, width, height };
}

/** uint8 (channels, height, width): the picture is scaled until it covers the size, and its middle is taken. */
export function encode({ data, width, height }, { channels, height: rows, width: columns }) {
  const scale = Math.max(rows / height, columns / width);
  const [left, top] = [(width - columns / scale) / 2, (height - rows / scale) / 2];
  // Pillow takes the box in single precision.
  const [x, y] = [Math.max(left, 0), Math.max(top, 0)].map(Math.fround);
  const [right, bottom] = [Math.min(left + columns / scale, width), Math.min(top + rows / scale, height)].map(Math.fround);
  const same = width === columns && height === rows;
  const [across, down] = same ? [] : [weights(width, x, right, columns), weights(height, y, bottom, rows)];
  const out = new Uint8Array(channels * rows * columns);
  for (let channel = 0; channel < channels; channel++) {
    let plane = channels === 1 ? grey(data) : band(data, channel);
    if (!same) {
      plane = resample(plane, width, height, across, true);
      plane = resample(plane, columns, height, down, false);
    }
    out.set(plane, channel * rows * columns);
  }
  return out;
}

/** RGBA bytes of a picture (channels, height, width) of bytes, or of floats in [-1, 1]. */
export function toImage(values, { channels, height, width }) {
  const image = new ImageData(width, height);
  const size = height * width;
  for (let i = 0; i < size; i++) {
    for (let colour = 0; colour < 3; colour++) {
      const value = values[(channels === 1 ? 0 : colour) * size + i];
      image.data[4 * i + colour] = values instanceof Uint8Array ? value : (value + 1) * 127.5;
    }
    image.data[4 * i + 3] = 255;
  }
  return image;
}

function band(data, channel) {
  const plane = new Uint8Array(data.length / 4);
  for (let i = 0; i < plane.length; i++) plane[i] = data[4 * i + channel];
  return plane;
}

/** ITU-R 601 brightness in the whole numbers that Pillow uses. */
function grey(data) {
  const plane = new Uint8Array(data.length / 4);
  for (let i = 0; i < plane.length; i++) plane[i] = (data[4 * i] * 19595 + data[4 * i + 1] * 38470 + data[4 * i + 2] * 7471 + 0x8000) >> 16;
  return plane;
}

/** For each step of the result, the first step of the source it is made of and their weights: a triangle as wide as the reduction.
    In whole numbers of 2^-22, as Pillow has them, so that both round alike. Pillow 13 takes columns of tall pictures first, and then
    a few bytes differ by one. */
function weights(size, start, end, steps) {
  const scale = (end - start) / steps;
  const support = Math.max(scale, 1);
  return Array.from({ length: steps }, (_, step) => {
    const centre = start + (step + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - support + 0.5), 0);
    const last = Math.min(Math.trunc(centre + support + 0.5), size);
    const parts = Array.from({ length: last - first }, (_, i) => Math.max(1 - Math.abs((i + first - centre + 0.5) / support), 0));
    const total = parts.reduce((sum, part) => sum + part, 0);
    return { first, parts: Int32Array.from(parts, (part) => Math.trunc((part / total) * 2 ** BITS + 0.5)) };
  });
}

/** Along rows, or along columns. `width` and `height` are those of the plane. */
function resample(plane, width, height, table, along) {
  const out = new Uint8ClampedArray(along ? table.length * height : width * table.length);
  const [lines, step, line] = along ? [height, 1, width] : [width, width, 1];
  const [outStep, outLine] = along ? [1, table.length] : [width, 1];
  for (let at = 0; at < table.length; at++) {
    const { first, parts } = table[at];
    for (let k = 0; k < lines; k++) {
      let sum = 1 << (BITS - 1);
      for (let i = 0, from = k * line + first * step; i < parts.length; i++, from += step) sum += plane[from] * parts[i];
      out[at * outStep + k * outLine] = sum >> BITS;
    }
  }
  return out;
}
