/* How large the result of an operator is, worked out from the sizes of what it is given; the same as release/graph_sizes.py. Nothing is
   computed but sizes, and what a graph declares about its own sizes is not looked at. */

import { RULES } from "./graph_rules.js";
import { knownValues } from "./graph_values.js";
import { LARGEST, LIMITS, Refused, TYPES, clamp, product } from "./graph_wire.js";

const [INT64, BOOL, UINT8] = [7, 9, 2];
export const OPERATORS = new Map(Object.entries(RULES.operators));
const tensor = (kind, shape, values = null, constant = null) => ({ kind, shape, values, constant });
const range = (many) => Array.from({ length: many }, (_, k) => k);
const same = (one, other) => one.length === other.length && one.every((size, k) => size === other[k]);

/** An operator with what it is given: `inputs` has null where one is left out, `attributes` is a map. */
export class Node {
  constructor(kind, inputs, outputs, attributes) {
    Object.assign(this, { kind, inputs, outputs, attributes });
  }
  given(place) {
    return this.inputs[place] ?? null;
  }
  take(place) {
    const found = this.given(place);
    if (found === null) throw new Refused("arity", this.kind);
    return found;
  }
  setting(name, otherwise) {
    return this.attributes.has(name) ? this.attributes.get(name) : otherwise;
  }
  /** The values of an input that says how large something is. */
  numbers(place) {
    const { kind, values } = this.take(place);
    if (kind !== 6 && kind !== INT64) throw new Refused("wrong_type", this.kind);
    if (values === null) throw new Refused("data_sized", this.kind);
    return values.map(Math.trunc);
  }
  misfit(wrong) {
    if (wrong) throw new Refused("shape", this.kind);
  }
  /** An axis counted from the front. */
  axis(value, rank) {
    this.misfit(!(-rank <= value && value < rank));
    return value < 0 ? value + rank : value;
  }
  present() {
    if (!this.inputs.length || this.inputs.includes(null)) throw new Refused("arity", this.kind);
    return this.inputs;
  }
}

/** What an operator of the list makes of what it is given; Refused where that does not fit. */
export function result(node) {
  const about = OPERATORS.get(node.kind);
  const kinds = new Set(node.inputs.filter((one) => one !== null).map((one) => one.kind));
  if (about.alike && kinds.size > 1) throw new Refused("wrong_type", node.kind);
  const { tensors, work } = TABLE[about.rule](node);
  const checked = tensors.map((one) => {
    checkComputed(one.shape, node.kind);
    const values = one.values === null && tensors.length === 1 ? knownValues(node.kind, node.inputs, node.attributes, one.shape) : one.values;
    return { ...one, values: keep(one, values) };
  });
  return { tensors: checked, work: work + checked.reduce((all, one) => all + product(one.shape), 0) };
}

/** Refused where a result has sizes that no tensor may have. */
export function checkComputed(shape, kind) {
  if (shape.length > LIMITS.rank) throw new Refused("rank", kind);
  if (shape.some((size) => size < 0)) throw new Refused("negative_size", kind);
  if (shape.includes(0)) throw new Refused("zero_size", kind);
  if (product(shape) > LIMITS.tensor_numbers) throw new Refused("too_large", kind);
}

/** Values that are few enough and exact: the runtime counts modulo 2**32 or 2**64, so that what grew too large is not known. */
function keep(one, values) {
  const size = product(one.shape);
  if (values === null || values.length !== size || size > LIMITS.known_numbers) return null;
  const most = [2, 3, 4, 5, 6, 12].includes(one.kind) ? 2 ** 31 - 1 : LARGEST;
  return values.every((value) => Math.abs(value) <= most) ? values : null;
}

/** The size that tensors of these sizes are brought to. */
function broadcast(node, shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return range(rank).map((k) => {
    const wanted = new Set(shapes.map((shape) => shape[shape.length - rank + k] ?? 1));
    wanted.delete(1);
    node.misfit(wanted.size > 1);
    return wanted.size ? [...wanted][0] : 1;
  });
}

const many = (tensors, work = 0) => ({ tensors, work });
/** One result of this size, of the first input's type unless another is named. */
const as = (node, shape, work = 0, kind = null) => many([tensor(kind ?? node.take(0).kind, shape)], work);

/** The scale of quantised numbers, which must be positive constants. */
function scaleOf(node) {
  const scale = node.take(1);
  if (scale.constant === null || ![1, 10, 11].includes(scale.kind)) throw new Refused("quantisation", node.kind);
  if (!scale.constant.numbers.every((value) => value > 0 && value < Infinity)) throw new Refused("quantisation", node.kind);
  const zero = node.given(2);
  if (zero !== null && (zero.constant === null || !same(zero.shape, scale.shape))) throw new Refused("quantisation", node.kind);
  if (scale.shape.length === 1 && scale.shape[0] > 1) {
    const shape = node.take(0).shape;
    node.misfit(shape[node.axis(node.setting("axis", 1), shape.length)] !== scale.shape[0]);
  }
  node.misfit(scale.shape.length > 1);
  return scale;
}

/** Where the window of a convolution or a pool goes. */
function windowOf(node, kernel) {
  const rank = kernel.length;
  const strides = node.setting("strides", Array(rank).fill(1));
  const dilations = node.setting("dilations", Array(rank).fill(1));
  const pads = node.setting("pads", Array(2 * rank).fill(0));
  node.misfit(strides.length !== rank || dilations.length !== rank || pads.length !== 2 * rank);
  node.misfit(Math.min(...kernel, ...strides, ...dilations, 1) < 1 || Math.min(...pads, 0) < 0);
  return { kernel, strides, dilations, before: pads.slice(0, rank), after: pads.slice(rank) };
}

/** The sizes of what a window gives that slides over these sizes. */
function slid(node, sizes, { kernel, strides, dilations, before, after }) {
  const padding = node.setting("auto_pad", "NOTSET");
  return sizes.map((size, k) => {
    const reach = (kernel[k] - 1) * dilations[k] + 1;
    if (padding === "SAME_UPPER" || padding === "SAME_LOWER") return Math.ceil(size / strides[k]);
    node.misfit(!["NOTSET", "VALID", ""].includes(padding));
    const padded = padding === "VALID" ? size : size + before[k] + after[k];
    node.misfit(padded < reach);
    // Runtimes differ in what they do with a window that hangs over the end.
    node.misfit(Boolean(node.setting("ceil_mode", 0)) && (padded - reach) % strides[k] !== 0);
    return Math.floor((padded - reach) / strides[k]) + 1;
  });
}

/** The axes that an operator names, as a setting or as its second input; null where it names none. */
function axesOf(node, rank) {
  const axes = node.setting("axes", null) ?? (node.given(1) === null ? null : node.numbers(1));
  if (axes === null) return null;
  const counted = axes.map((axis) => node.axis(axis, rank));
  node.misfit(new Set(counted).size < counted.length);
  return counted;
}

/** How many places of an axis a slice takes, as ONNX counts them. */
function sliced(size, start, end, step) {
  const [low, high] = step > 0 ? [0, size] : [-1, size - 1];
  const [first, last] = [start, end].map((value) => Math.max(low, Math.min(value < 0 ? value + size : value, high)));
  return Math.max(0, Math.ceil((last - first) / step));
}

/** A tensor that is part of the graph; its numbers are known where they are few. */
export function constantTensor(constant) {
  let values = null;
  if (constant.numbers.length <= LIMITS.known_numbers) {
    values = Array.from(constant.numbers);
    if (![1, 10, 11].includes(constant.kind)) values = values.map(clamp);
    if (values.some((value) => Math.abs(value) > LARGEST)) values = null;
  }
  return tensor(constant.kind, constant.shape, values, constant);
}

function conv(node) {
  const [shape, weights] = [node.take(0).shape, node.take(1).shape];
  node.misfit(shape.length < 3 || weights.length !== shape.length);
  const [groups, kernel] = [node.setting("group", 1), weights.slice(2)];
  node.misfit(groups < 1 || shape[1] !== weights[1] * groups || weights[0] % groups !== 0);
  node.misfit(!same(node.setting("kernel_shape", kernel), kernel));
  const sizes = slid(node, shape.slice(2), windowOf(node, kernel));
  // The runtime lays out every window of a record before it multiplies.
  checkComputed([shape[1], ...kernel, product(sizes)], node.kind);
  const made = [shape[0], weights[0], ...sizes];
  return as(node, made, product(made) * weights[1] * product(kernel));
}

function convTranspose(node) {
  const [shape, weights] = [node.take(0).shape, node.take(1).shape];
  node.misfit(shape.length < 3 || weights.length !== shape.length);
  const [groups, kernel] = [node.setting("group", 1), weights.slice(2)];
  node.misfit(groups < 1 || shape[1] !== weights[0] || weights[0] % groups !== 0);
  node.misfit(!same(node.setting("kernel_shape", kernel), kernel));
  node.misfit(!["NOTSET", ""].includes(node.setting("auto_pad", "NOTSET")));
  const [window, more] = [windowOf(node, kernel), node.setting("output_padding", Array(kernel.length).fill(0))];
  node.misfit(more.length !== kernel.length || Math.min(...more, 0) < 0);
  const sizes = shape
    .slice(2)
    .map((size, k) => window.strides[k] * (size - 1) + more[k] + (kernel[k] - 1) * window.dilations[k] + 1 - window.before[k] - window.after[k]);
  checkComputed([weights[1] * groups, ...kernel, product(shape.slice(2))], node.kind);
  return as(node, [shape[0], weights[1] * groups, ...sizes], product(shape) * weights[1] * product(kernel));
}

function matmul(node) {
  const [first, second] = [node.take(0).shape, node.take(1).shape];
  node.misfit(!first.length || !second.length);
  const left = first.length === 1 ? [1, ...first] : first;
  const right = second.length === 1 ? [...second, 1] : second;
  node.misfit(left.at(-1) !== right.at(-2));
  let shape = [...broadcast(node, [left.slice(0, -2), right.slice(0, -2)]), left.at(-2), right.at(-1)];
  const work = product(shape) * left.at(-1);
  if (first.length === 1) shape = [...shape.slice(0, -2), shape.at(-1)];
  return as(node, second.length === 1 ? shape.slice(0, -1) : shape, work);
}

function gemm(node) {
  const [first, second] = [node.take(0).shape, node.take(1).shape];
  node.misfit(first.length !== 2 || second.length !== 2);
  const [rows, inner] = node.setting("transA", 0) ? [...first].reverse() : first;
  const [other, columns] = node.setting("transB", 0) ? [...second].reverse() : second;
  node.misfit(inner !== other);
  const added = node.given(2);
  node.misfit(added !== null && !same(broadcast(node, [added.shape, [rows, columns]]), [rows, columns]));
  return as(node, [rows, columns], rows * columns * inner);
}

function reshape(node) {
  const shape = node.take(0).shape;
  let sizes = node.numbers(1);
  if (!node.setting("allowzero", 0)) {
    node.misfit(sizes.some((size, k) => size === 0 && k >= shape.length));
    sizes = sizes.map((size, k) => (size === 0 ? shape[k] : size));
  }
  const rest = product(sizes.filter((size) => size !== -1));
  const free = sizes.filter((size) => size === -1).length;
  node.misfit(free > 1 || sizes.some((size) => size < -1));
  if (free) {
    node.misfit(rest === 0 || product(shape) % rest !== 0);
    sizes = sizes.map((size) => (size === -1 ? product(shape) / rest : size));
  }
  node.misfit(product(sizes) !== product(shape));
  return as(node, sizes);
}

function split(node) {
  const { shape, kind } = node.take(0);
  const axis = node.axis(node.setting("axis", 0), shape.length);
  let parts = node.setting("split", null) ?? (node.given(1) === null ? null : node.numbers(1));
  if (parts === null) {
    const size = Math.ceil(shape[axis] / node.outputs);
    parts = [...Array(node.outputs - 1).fill(size), shape[axis] - size * (node.outputs - 1)];
  }
  node.misfit(parts.length !== node.outputs || parts.reduce((all, part) => all + part, 0) !== shape[axis] || Math.min(...parts) < 1);
  return many(parts.map((part) => tensor(kind, shape.with(axis, part))));
}

function slice(node) {
  const shape = [...node.take(0).shape];
  const [starts, ends] = [node.numbers(1), node.numbers(2)];
  const named = node.given(3) === null ? range(starts.length) : node.numbers(3);
  const steps = node.given(4) === null ? starts.map(() => 1) : node.numbers(4);
  node.misfit([ends, named, steps].some((list) => list.length !== starts.length) || steps.includes(0));
  const axes = named.map((axis) => node.axis(axis, shape.length));
  node.misfit(new Set(axes).size < axes.length);
  axes.forEach((axis, k) => (shape[axis] = sliced(shape[axis], starts[k], ends[k], steps[k])));
  return as(node, shape);
}

function pad(node) {
  const [shape, pads] = [[...node.take(0).shape], node.numbers(1)];
  const named = node.given(3) === null ? range(shape.length) : node.numbers(3);
  const axes = named.map((axis) => node.axis(axis, shape.length));
  node.misfit(pads.length !== 2 * axes.length || new Set(axes).size < axes.length);
  axes.forEach((axis, k) => (shape[axis] += pads[k] + pads[k + axes.length]));
  return as(node, shape);
}

function resize(node) {
  const shape = node.take(0).shape;
  node.misfit(node.setting("keep_aspect_ratio_policy", "stretch") !== "stretch");
  let made;
  if (node.given(3) !== null) made = node.numbers(3);
  else {
    const scales = node.given(2)?.values ?? null;
    if (scales === null) throw new Refused("data_sized", node.kind);
    node.misfit(scales.length !== shape.length);
    made = shape.map((size, k) => Math.floor(size * scales[k]));
  }
  node.misfit(made.length !== shape.length);
  return as(node, made, 16 * product(made));
}

function constant(node) {
  const named = [...node.attributes.keys()].filter((name) => name.startsWith("value"));
  if (named.length !== 1) throw new Refused("attribute", node.kind);
  const value = node.attributes.get(named[0]);
  if (named[0] === "value") return many([constantTensor(value)]);
  const kind = named[0].includes("int") ? INT64 : 1;
  return many([named[0].endsWith("s") ? tensor(kind, [value.length], value) : tensor(kind, [], [value])]);
}

function constantOfShape(node) {
  const [sizes, fill] = [node.numbers(0), node.setting("value", null)];
  if (fill !== null && fill.numbers.length !== 1) throw new Refused("attribute", node.kind);
  checkComputed(sizes, node.kind);
  const [kind, number] = fill === null ? [1, 0] : [fill.kind, fill.numbers[0]];
  return many([tensor(kind, sizes, product(sizes) <= LIMITS.known_numbers ? Array(product(sizes)).fill(number) : null)]);
}

function rangeOf(node) {
  const [start, limit, step] = [0, 1, 2].map((place) => node.take(place).values);
  if (start === null || limit === null || step === null) throw new Refused("data_sized", node.kind);
  node.misfit([start, limit, step].some((values) => values.length !== 1) || step[0] === 0);
  return as(node, [Math.max(0, Math.ceil((limit[0] - start[0]) / step[0]))]);
}

function recurrent(node) {
  const [{ kind, shape }, weights] = [node.take(0), node.take(1).shape];
  node.misfit(shape.length !== 3 || weights.length !== 3);
  const gates = { LSTM: 4, GRU: 3, RNN: 1 }[node.kind];
  const ways = node.setting("direction", "forward") === "bidirectional" ? 2 : 1;
  const hidden = node.setting("hidden_size", 0);
  node.misfit(hidden < 1 || !same(weights, [ways, gates * hidden, shape[2]]));
  node.misfit(!same(node.take(2).shape, [ways, gates * hidden, hidden]));
  const batchFirst = node.setting("layout", 0);
  const [steps, rows] = batchFirst ? [shape[1], shape[0]] : [shape[0], shape[1]];
  const all = batchFirst ? [rows, steps, ways, hidden] : [steps, ways, rows, hidden];
  const last = batchFirst ? [rows, ways, hidden] : [ways, rows, hidden];
  node.misfit(node.outputs > (node.kind === "LSTM" ? 3 : 2));
  const work = steps * rows * ways * gates * hidden * (shape[2] + hidden);
  return many([all, last, last].slice(0, node.outputs).map((size) => tensor(kind, size)), work);
}

function einsum(node) {
  const equation = node.setting("equation", "").replaceAll(" ", "");
  const at = equation.indexOf("->");
  const [taken, given] = at < 0 ? [equation, ""] : [equation.slice(0, at), equation.slice(at + 2)];
  const [terms, tensors] = [taken.split(","), node.present()];
  node.misfit(at < 0 || terms.length !== tensors.length || new Set(given).size < given.length);
  node.misfit(!/^[A-Za-z,\->]*$/.test(equation));
  const sizes = new Map();
  terms.forEach((term, k) => {
    node.misfit(term.length !== tensors[k].shape.length);
    [...term].forEach((letter, axis) => {
      if (!sizes.has(letter)) sizes.set(letter, tensors[k].shape[axis]);
      node.misfit(sizes.get(letter) !== tensors[k].shape[axis]);
    });
  });
  node.misfit([...given].some((letter) => !sizes.has(letter)));
  return as(node, [...given].map((letter) => sizes.get(letter)), product([...sizes.values()]));
}

const TABLE = {
  same(node) {
    if (node.setting("training_mode", 0)) throw new Refused("training", node.kind);
    return as(node, node.take(0).shape);
  },
  test: (node) => as(node, node.take(0).shape, 0, BOOL),
  broadcast: (node) => as(node, broadcast(node, node.present().map((one) => one.shape))),
  compare: (node) => as(node, broadcast(node, node.present().map((one) => one.shape)), 0, BOOL),
  where(node) {
    const [asked, yes, no] = node.present();
    if (asked.kind !== BOOL || yes.kind !== no.kind) throw new Refused("wrong_type", node.kind);
    return as(node, broadcast(node, [asked.shape, yes.shape, no.shape]), 0, yes.kind);
  },
  quantize(node) {
    scaleOf(node);
    return as(node, node.take(0).shape, 0, node.given(2)?.kind ?? (node.setting("output_dtype", 0) || UINT8));
  },
  dequantize(node) {
    const [scale, zero] = [scaleOf(node), node.given(2)];
    if (zero !== null && zero.kind !== node.take(0).kind) throw new Refused("quantisation", node.kind);
    return as(node, node.take(0).shape, 0, scale.kind);
  },
  matmul,
  gemm,
  conv,
  conv_transpose: convTranspose,
  pool(node) {
    const [shape, kernel] = [node.take(0).shape, node.setting("kernel_shape", [])];
    node.misfit(shape.length < 3 || kernel.length !== shape.length - 2);
    const made = [...shape.slice(0, 2), ...slid(node, shape.slice(2), windowOf(node, kernel))];
    return as(node, made, product(made) * product(kernel));
  },
  global_pool(node) {
    const shape = node.take(0).shape;
    node.misfit(shape.length < 3);
    return as(node, shape.map((size, k) => (k < 2 ? size : 1)), product(shape));
  },
  reduce(node) {
    const shape = node.take(0).shape;
    let axes = axesOf(node, shape.length);
    if (!axes?.length) axes = node.setting("noop_with_empty_axes", 0) ? [] : range(shape.length);
    const left = node.setting("keepdims", 1) ? shape.map((size, k) => (axes.includes(k) ? 1 : size)) : shape.filter((_, k) => !axes.includes(k));
    return as(node, left, product(shape));
  },
  arg(node) {
    const shape = node.take(0).shape;
    const axis = node.axis(node.setting("axis", 0), shape.length);
    return as(node, [...shape.slice(0, axis), ...(node.setting("keepdims", 1) ? [1] : []), ...shape.slice(axis + 1)], product(shape), INT64);
  },
  reshape,
  flatten(node) {
    const shape = node.take(0).shape;
    const named = node.setting("axis", 1);
    const axis = named === shape.length ? named : node.axis(named, shape.length);
    return as(node, [product(shape.slice(0, axis)), product(shape.slice(axis))]);
  },
  squeeze(node) {
    const shape = node.take(0).shape;
    const axes = axesOf(node, shape.length) ?? range(shape.length).filter((k) => shape[k] === 1);
    node.misfit(axes.some((axis) => shape[axis] !== 1));
    return as(node, shape.filter((_, k) => !axes.includes(k)));
  },
  unsqueeze(node) {
    const shape = [...node.take(0).shape];
    const count = (node.setting("axes", null) ?? node.numbers(1)).length;
    for (const axis of axesOf(node, shape.length + count).sort((a, b) => a - b)) shape.splice(axis, 0, 1);
    return as(node, shape);
  },
  transpose(node) {
    const shape = node.take(0).shape;
    const order = node.setting("perm", range(shape.length).reverse());
    node.misfit(!same([...order].sort((a, b) => a - b), range(shape.length)));
    return as(node, order.map((axis) => shape[axis]));
  },
  concat(node) {
    const shapes = node.present().map((one) => one.shape);
    const rank = shapes[0].length;
    const axis = node.axis(node.setting("axis", 0), rank);
    node.misfit(shapes.some((shape) => shape.length !== rank));
    for (const k of range(rank)) node.misfit(k !== axis && shapes.some((shape) => shape[k] !== shapes[0][k]));
    return as(node, shapes[0].with(axis, shapes.reduce((all, shape) => all + shape[axis], 0)));
  },
  split,
  slice,
  gather(node) {
    const [shape, places] = [node.take(0).shape, node.take(1).shape];
    const axis = node.axis(node.setting("axis", 0), shape.length);
    return as(node, [...shape.slice(0, axis), ...places, ...shape.slice(axis + 1)]);
  },
  gather_nd(node) {
    const [shape, places] = [node.take(0).shape, node.take(1).shape];
    const batch = node.setting("batch_dims", 0);
    node.misfit(!places.length || !(0 <= batch && batch < Math.min(places.length, shape.length)));
    node.misfit(batch + places.at(-1) > shape.length || !same(shape.slice(0, batch), places.slice(0, batch)));
    return as(node, [...places.slice(0, -1), ...shape.slice(batch + places.at(-1))]);
  },
  gather_elements(node) {
    node.misfit(node.take(0).shape.length !== node.take(1).shape.length);
    return as(node, node.take(1).shape);
  },
  expand(node) {
    const sizes = node.numbers(1);
    checkComputed(sizes, node.kind);
    return as(node, broadcast(node, [node.take(0).shape, sizes]));
  },
  tile(node) {
    const [shape, repeats] = [node.take(0).shape, node.numbers(1)];
    node.misfit(repeats.length !== shape.length);
    return as(node, shape.map((size, k) => size * repeats[k]));
  },
  pad,
  resize,
  constant,
  constant_of_shape: constantOfShape,
  shape(node) {
    const shape = node.take(0).shape;
    const ends = [node.setting("start", 0), node.setting("end", shape.length)];
    const part = shape.slice(...ends.map((end) => Math.max(0, Math.min(shape.length, end < 0 ? end + shape.length : end))));
    return many([tensor(INT64, [part.length], part)]);
  },
  size: (node) => many([tensor(INT64, [], [product(node.take(0).shape)])]),
  range: rangeOf,
  cast(node) {
    const kind = node.setting("to", 0);
    if (kind === 8) throw new Refused("string_tensor", node.kind);
    if (!TYPES.has(String(kind))) throw new Refused("element_type", node.kind);
    return as(node, node.take(0).shape, 0, kind);
  },
  cast_like: (node) => as(node, node.take(0).shape, 0, node.take(1).kind),
  one_hot(node) {
    const [shape, depth] = [node.take(0).shape, node.numbers(1)];
    node.misfit(depth.length !== 1);
    const axis = node.axis(node.setting("axis", -1), shape.length + 1);
    return as(node, [...shape.slice(0, axis), depth[0], ...shape.slice(axis)], 0, node.take(2).kind);
  },
  recurrent,
  depth_to_space(node) {
    const [shape, block] = [node.take(0).shape, node.setting("blocksize", 0)];
    node.misfit(shape.length !== 4 || block < 1 || shape[1] % Math.max(1, block * block) !== 0);
    return as(node, [shape[0], shape[1] / block ** 2, shape[2] * block, shape[3] * block]);
  },
  space_to_depth(node) {
    const [shape, block] = [node.take(0).shape, node.setting("blocksize", 0)];
    node.misfit(shape.length !== 4 || block < 1 || shape.slice(2).some((size) => size % Math.max(1, block)));
    return as(node, [shape[0], shape[1] * block ** 2, shape[2] / block, shape[3] / block]);
  },
  top_k(node) {
    const [{ kind, shape }, most] = [node.take(0), node.numbers(1)];
    const axis = node.axis(node.setting("axis", -1), shape.length);
    node.misfit(most.length !== 1 || most[0] > shape[axis]);
    const sizes = shape.with(axis, most[0]);
    return many([tensor(kind, sizes), tensor(INT64, sizes)].slice(0, node.outputs), product(shape));
  },
  einsum,
};
