/* What a photo's file says beside the picture: where, when, with what, by whom. Shown to its owner, and never sent. */

const NAMED = {
  0x010e: "Description", 0x010f: "Device", 0x0110: "Device", 0x0131: "Software", 0x0132: "Time", 0x013b: "Name", 0x8298: "Name",
  0x9003: "Time", 0xa430: "Name", 0xa431: "Serial number", 0xa434: "Lens",
};
const DETAILS = 0x8769;
const PLACE = 0x8825;
const SIZES = { 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 9: 4, 10: 8 };

/** Rows of what is said and how, from the EXIF block of a JPEG; empty where there is none or it cannot be read. */
export async function told(file) {
  try {
    return read(new DataView(await file.slice(0, 256 * 1024).arrayBuffer()));
  } catch {
    return []; // a broken block says nothing to anybody
  }
}

function read(view) {
  const block = exif(view);
  if (!block) return [];
  const little = block.getUint16(0) === 0x4949;
  const first = tags(block, block.getUint32(4, little), little);
  const found = new Map();
  const add = (what, value) => value && !found.get(what)?.includes(value) && found.set(what, [...(found.get(what) ?? []), value]);
  const place = first.get(PLACE) && where(tags(block, first.get(PLACE)[0], little));
  if (place) add("Place", place);
  const details = first.get(DETAILS) ? tags(block, first.get(DETAILS)[0], little) : new Map();
  for (const [tag, value] of [...details, ...first]) if (NAMED[tag] && typeof value === "string") add(NAMED[tag], value);
  return Array.from(found, ([what, values]) => [what, values.join(", ")]);
}

/** The block that begins with "Exif", among the segments of a JPEG. */
function exif(view) {
  if (view.getUint16(0) !== 0xffd8) return null;
  for (let at = 2; at + 10 < view.byteLength && view.getUint8(at) === 0xff; at += 2 + view.getUint16(at + 2)) {
    if (view.getUint8(at + 1) === 0xe1 && view.getUint32(at + 4) === 0x45786966) return new DataView(view.buffer, at + 10);
    if (view.getUint8(at + 1) === 0xda) return null;
  }
  return null;
}

function tags(block, start, little) {
  const found = new Map();
  const many = block.getUint16(start, little);
  for (let i = 0; i < many; i++) {
    const entry = start + 2 + 12 * i;
    const [type, count] = [block.getUint16(entry + 2, little), block.getUint32(entry + 4, little)];
    const size = SIZES[type] * count;
    if (!(size <= 4096)) continue;
    const at = size <= 4 ? entry + 8 : block.getUint32(entry + 8, little);
    found.set(block.getUint16(entry, little), value(block, type, count, at, little));
  }
  return found;
}

function value(block, type, count, at, little) {
  if (type === 2) {
    const bytes = new Uint8Array(block.buffer, block.byteOffset + at, count);
    return new TextDecoder().decode(bytes).replace(/[\p{C}]+/gu, " ").trim().slice(0, 80);
  }
  return Array.from({ length: count }, (_, i) => {
    if (type === 3) return block.getUint16(at + 2 * i, little);
    if (type === 5 || type === 10) return block.getUint32(at + 8 * i, little) / block.getUint32(at + 8 * i + 4, little);
    return SIZES[type] === 4 ? block.getUint32(at + 4 * i, little) : block.getUint8(at + i);
  });
}

/** Degrees with four digits: about ten metres. */
function where(gps) {
  const degrees = (parts) => parts[0] + parts[1] / 60 + parts[2] / 3600;
  if (!gps.get(2) || !gps.get(4)) return gps.size ? "noted" : "";
  return `${degrees(gps.get(2)).toFixed(4)} ${gps.get(1) || "N"}, ${degrees(gps.get(4)).toFixed(4)} ${gps.get(3) || "E"}`;
}
