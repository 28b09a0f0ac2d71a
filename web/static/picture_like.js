/* Whether released numbers look like a picture, whatever the card calls them: neighbours alike along rows and along columns. They are then drawn
   as a picture, as light as it takes to see it. Pixels in a shuffled order are not recognised. */

const FEWEST = 64; // numbers, and 8 from side to side
const MAPS = 16;

/** Ways to read the numbers as planes: {planes, height, width, at(plane, row, column)}. */
function layouts(length, shape, input) {
  const planar = (planes, height, width) => ({ planes, height, width, at: (p, y, x) => (p * height + y) * width + x });
  const mixed = (planes, height, width) => ({ planes, height, width, at: (p, y, x) => (y * width + x) * planes + p });
  const sizes = [];
  if (shape.length === 3) sizes.push(planar(...shape), ...(shape[2] <= 4 ? [mixed(shape[2], shape[0], shape[1])] : []));
  if (shape.length === 2) sizes.push(planar(1, ...shape));
  for (const planes of [1, 3]) {
    const side = Math.sqrt(length / planes);
    if (Number.isInteger(side)) sizes.push(planar(planes, side, side), mixed(planes, side, side));
    if (input?.height && length === planes * input.height * input.width) sizes.push(planar(planes, input.height, input.width), mixed(planes, input.height, input.width));
  }
  return sizes.filter(({ planes, height, width }) => planes * height * width === length && height >= 8 && width >= 8);
}

/** How alike neighbours are, from 0 to 1: the lower of rows' and columns' correlation. */
function likeness(z, { planes, height, width, at }) {
  let [square, across, down, pairsAcross, pairsDown] = [0, 0, 0, 0, 0];
  for (let p = 0; p < planes; p++) {
    let mean = 0;
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) mean += z[at(p, y, x)] / (height * width);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const value = z[at(p, y, x)];
        square += (value - mean) ** 2;
        if (x) [across, pairsAcross] = [across + (value - z[at(p, y, x - 1)]) ** 2, pairsAcross + 1];
        if (y) [down, pairsDown] = [down + (value - z[at(p, y - 1, x)]) ** 2, pairsDown + 1];
      }
    }
  }
  const variance = square / (planes * height * width);
  return variance > 0 ? 1 - Math.max(across / pairsAcross, down / pairsDown) / (2 * variance) : 0;
}

/** The layout in which the numbers look like a picture, or null. Numbers without any order pass less than once in a hundred thousand. */
export function pictureIn(z, shape, input) {
  if (z.length < FEWEST) return null;
  const least = Math.max(0.25, 4.5 / Math.sqrt(z.length));
  const some = layouts(z.length, shape, input).map((layout) => ({ ...layout, likeness: likeness(z, layout) }));
  const best = some.reduce((most, one) => (!most || one.likeness > most.likeness ? one : most), null);
  return best && best.likeness >= least ? best : null;
}

/** Draw it: one or three planes as grey or colours, more of them side by side. */
export function drawPictureIn(canvas, z, { planes, height, width, at }) {
  const sorted = Float32Array.from(z).sort();
  const [low, high] = [sorted[Math.floor(0.01 * (z.length - 1))], sorted[Math.ceil(0.99 * (z.length - 1))]];
  const shade = (index) => (255 * (z[index] - low)) / (high - low || 1);
  const colours = planes === 3;
  const across = colours || planes === 1 ? 1 : Math.ceil(Math.sqrt(Math.min(planes, MAPS)));
  const tiles = colours ? 1 : Math.min(planes, MAPS);
  [canvas.width, canvas.height] = [across * width, Math.ceil(tiles / across) * height];
  const image = new ImageData(canvas.width, canvas.height);
  for (let tile = 0; tile < tiles; tile++) {
    const [left, top] = [(tile % across) * width, Math.floor(tile / across) * height];
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const place = 4 * ((top + y) * canvas.width + left + x);
        for (let colour = 0; colour < 3; colour++) image.data[place + colour] = shade(at(colours ? colour : tile, y, x));
        image.data[place + 3] = 255;
      }
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
