/* Whether the graph of a release may run here: a release is a stranger's program. The same as release/graph_verifier.py, from the same
   rules, with the same reasons. The file is parsed and never run; before a run, the size of every tensor is worked out, and a run that would
   need too much memory or time is refused before anything is allocated. */

import { RULES } from "./graph_rules.js";
import { Node, OPERATORS, constantTensor, result } from "./graph_sizes.js";
import { LIMITS, Refused, TYPES, checkSizes, product, readMessage, readTensor } from "./graph_wire.js";

const TRIED = [[1, 7], [3, 12]];
const ATTRIBUTES = { f: 1, i: 2, s: 3, t: 4, floats: 6, ints: 7 };
const DOMAINS = new Map(Object.entries(RULES.domains));
const REFUSED = new Map(Object.entries(RULES.refused_operators));

/** The graph, if it may run; `cost` says what a run on inputs of some sizes takes. Refused, with a sentence and a code, where it may not. */
export function verifyGraph(content) {
  return new Verified(new Uint8Array(content));
}

class Verified {
  constructor(content) {
    if (content.length > LIMITS.file_bytes) throw new Refused("file_size");
    const model = readMessage(content, "Model");
    const graph = model.graph;
    if (graph === null) throw new Refused("no_graph");
    this.opset = checkVersions(model);
    const most = { node: "nodes", initializer: "tensors", value_info: "values", input: "inputs", output: "outputs" };
    for (const [name, limit] of Object.entries(most)) if (graph[name].length > LIMITS[limit]) throw new Refused("too_many", name);
    this.steps = graph.node.map((node) => this.step(node));
    this.constants = new Map();
    for (const message of graph.initializer) {
      const name = message.name ?? "";
      if (this.constants.has(name)) throw new Refused("duplicate_name", name);
      this.constants.set(name, constantTensor(readTensor(message)));
    }
    this.inputs = graph.input.map((value) => port(value, "input"));
    this.outputs = graph.output.map((value) => port(value, "output"));
    this.checkNames();
    this.run(new Map()); // what depends on no input, which the runtime computes when it loads a graph
    for (const [rows, places] of TRIED) this.try(rows, places);
  }

  step(node) {
    const kind = node.op_type ?? "";
    if (!DOMAINS.has(node.domain ?? "")) throw new Refused("domain", kind);
    if (REFUSED.has(kind)) throw new Refused(REFUSED.get(kind), kind);
    const about = OPERATORS.get(kind);
    if (!about) throw new Refused("operator", kind);
    if (this.opset < (about.since ?? 0)) throw new Refused("version", kind);
    const [fewest, most] = about.inputs;
    if (node.input.length < fewest || node.input.length > most) throw new Refused("arity", kind);
    if (!node.output.length || node.output.length > (about.outputs ?? 1)) throw new Refused("arity", kind);
    return { kind, inputs: node.input, outputs: node.output, attributes: attributesOf(kind, about, node.attribute) };
  }

  /** Every value is made once, before it is taken; this also excludes cycles. */
  checkNames() {
    if (!this.outputs.length || !this.steps.length) throw new Refused("no_graph");
    const known = new Set();
    for (const name of [...this.constants.keys(), ...this.inputs.map((one) => one.name)]) {
      if (known.has(name) || !name) throw new Refused("duplicate_name", name);
      known.add(name);
    }
    for (const { inputs, outputs } of this.steps) {
      for (const name of inputs) if (name && !known.has(name)) throw new Refused("order", name);
      for (const name of outputs) {
        if (known.has(name)) throw new Refused("duplicate_name", name);
        if (name) known.add(name);
      }
    }
    const names = this.outputs.map((one) => one.name);
    if (new Set(names).size < names.length) throw new Refused("duplicate_name");
    for (const name of names) if (!known.has(name)) throw new Refused("order", name);
  }

  /** Look at a run with some sizes for the free axes. Which sizes fit each other is known only when the graph is run, where it has more free
      axes than the records' number. */
  try(rows, places) {
    const free = this.inputs.some(({ shape }) => shape.slice(1).some((size) => typeof size !== "number"));
    try {
      this.cost(Object.fromEntries(this.inputs.map(({ name, shape }) => [name, shape.map((size, k) => (typeof size === "number" ? size : k ? places : rows))])));
    } catch (error) {
      if (error.code !== "shape" || !free) throw error;
    }
  }

  /** What a run on inputs of these sizes takes, and the sizes of what it gives. */
  cost(shapes) {
    const given = new Map();
    for (const { name, kind } of this.inputs) {
      if (!Object.hasOwn(shapes, name)) throw new Refused("inputs", name);
      checkSizes(shapes[name], name);
      given.set(name, { kind, shape: shapes[name], values: null, constant: null });
    }
    return this.run(given);
  }

  /** Go through the graph with the sizes of all tensors; what depends on an input that is not given is left out. */
  run(given) {
    const tensors = new Map([...this.constants, ...given]);
    let [numbers, work] = [0, 0];
    for (const { shape } of tensors.values()) numbers += product(shape);
    for (const { kind, inputs, outputs, attributes } of this.steps) {
      if (inputs.some((name) => name && !tensors.has(name))) continue;
      const made = result(new Node(kind, inputs.map((name) => (name ? tensors.get(name) : null)), outputs.length, attributes));
      work += made.work;
      outputs.forEach((name, k) => {
        numbers += product(made.tensors[k].shape);
        if (name) tensors.set(name, made.tensors[k]);
      });
      if (numbers > LIMITS.total_numbers) throw new Refused("memory", kind);
      if (work > LIMITS.work) throw new Refused("work", kind);
    }
    const outputs = {};
    for (const { name, kind } of this.outputs) {
      if (!tensors.has(name)) continue;
      if (tensors.get(name).kind !== kind) throw new Refused("wrong_type", name);
      outputs[name] = tensors.get(name).shape;
    }
    return { numbers, work, outputs };
  }
}

/** The version of ONNX's own operators; Refused where it or the file's is not known. */
function checkVersions(model) {
  const [low, high] = LIMITS.ir_version;
  const ir = model.ir_version ?? 0;
  if (ir < low || ir > high) throw new Refused("version", "ir_version");
  const sets = model.opset_import.filter(({ domain }) => DOMAINS.has(domain ?? ""));
  if (sets.length !== 1) throw new Refused("version", "opset_import");
  const version = sets[0].version ?? 0;
  const [from, to] = DOMAINS.get(sets[0].domain ?? "");
  if (version < from || version > to) throw new Refused("version", `opset ${version}`);
  return version;
}

const filled = (value) => value !== null && !(Array.isArray(value) && !value.length);

/** The settings of an operator, which must be ones that it has. */
function attributesOf(kind, about, messages) {
  if (messages.length > LIMITS.attributes) throw new Refused("too_many", kind);
  const [settings, forms] = [new Map(), new Map(Object.entries(about.attributes ?? {}))];
  for (const message of messages) {
    const name = message.name ?? "";
    const form = forms.get(name);
    const wrong = () => new Refused("attribute", `${kind} ${name}`);
    if (!form || settings.has(name) || message.type !== ATTRIBUTES[form]) throw wrong();
    if (Object.keys(ATTRIBUTES).some((other) => other !== form && filled(message[other]))) throw wrong();
    let value = message[form];
    if (form === "t" && value !== null) value = readTensor(value);
    // A number or a text that is left out is 0 or empty.
    value ??= { i: 0, f: 0, s: "" }[form] ?? null;
    if (value === null) throw wrong();
    settings.set(name, value);
  }
  return settings;
}

function port(value, field) {
  const name = value.name ?? "";
  const about = value.type?.tensor_type ?? null;
  if (about === null || !name) throw new Refused("inputs", name);
  const kind = about.elem_type ?? 0;
  if (kind === 8) throw new Refused("string_tensor", name);
  if (!TYPES.has(String(kind))) throw new Refused("element_type", name);
  if (about.shape === null && field === "input") throw new Refused("inputs", name);
  const shape = (about.shape?.dim ?? []).map(({ dim_value: fixed, dim_param: free }) => {
    if (fixed !== null && free !== null) throw new Refused("repeated_field", name);
    if (fixed !== null && fixed < 0) throw new Refused("negative_size", name);
    if (fixed === 0) throw new Refused("zero_size", name);
    return fixed ?? free;
  });
  if (shape.length > LIMITS.rank) throw new Refused("rank", name);
  return { name, kind, shape };
}
