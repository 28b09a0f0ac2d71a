/* The release, run here: onnxruntime compiled to WebAssembly, no graphics card, nothing sent anywhere. */

import { RUNTIME } from "./built.js";
import { fresh, keyed } from "./noise.js";
import * as ort from "./vendor/ort.wasm.min.mjs";
import { verifyGraph } from "./verifier.js";

/** Threads share memory, which a browser allows only to a page that no other origin can look into: the collector's headers see to that. */
export const threads = () => (globalThis.crossOriginIsolated ? Math.min(Math.max(navigator.hardwareConcurrency || 1, 1), MOST) : 1);
const MOST = 4;

const here = (name) => new URL(`./vendor/${name}`, import.meta.url).href;
let ready;

/** Fetch the runtime once; the browser refuses it unless its hash is the one that was built in. */
export function load() {
  ready ??= fetch(here("ort-wasm-simd-threaded.wasm"), { integrity: RUNTIME })
    .then((answer) => answer.arrayBuffer())
    .catch(() => {
      ready = undefined;
      throw new Error("What runs the release cannot be fetched, or is not the file that this page was built with. Load the page again.");
    })
    .then((binary) => {
      ort.env.wasm.numThreads = threads();
      ort.env.wasm.proxy = false;
      ort.env.wasm.wasmPaths = { mjs: here("ort-wasm-simd-threaded.mjs") };
      ort.env.wasm.wasmBinary = binary;
      ort.env.logLevel = "error";
    });
  return ready;
}

/** Graphs that were looked through, by their session. */
const looked = new WeakMap();

/** Before every run: whether it would take too much memory or time with inputs of these sizes. */
function check(session, feeds) {
  looked.get(session).cost(Object.fromEntries(Object.entries(feeds).map(([name, { dims }]) => [name, [...dims]])));
  return feeds;
}

async function open(graph) {
  await load();
  const verified = verifyGraph(graph);
  let session;
  try {
    session = await ort.InferenceSession.create(graph, { executionProviders: ["wasm"] });
  } catch {
    throw new Error("The graph of the campaign's release cannot be run in this browser. Try  privet share  instead.");
  }
  looked.set(session, verified);
  return session;
}

const count = (shape) => shape.reduce((product, size) => product * size, 1);

const TYPES = new Map([[Uint8Array, "uint8"], [Float32Array, "float32"], [BigInt64Array, "int64"]]);

/** A release: a record in, released numbers out. One run at a time, because a session takes no more. */
export class Release {
  /** `secret` is what its noise is drawn with: the campaign's key, the SHA-256 of the graph and the campaign's name. Without it, noise is fresh. */
  static async open(graph, card, secret = null) {
    const session = await open(graph);
    if (session.inputNames.some((name) => name !== "x" && name !== "noise") || !session.outputNames.includes("z"))
      throw new Error("The graph of the campaign's release takes something that this page does not know.");
    return new Release(session, card, secret);
  }

  constructor(session, card, secret = null) {
    this.session = session;
    this.card = card;
    this.secret = secret;
    this.turn = Promise.resolve();
  }

  /** Released numbers of one record: bytes of a picture, word codes, or a row. Noise is given in tests alone. */
  run(x, noise = this.noise(x)) {
    const sized = (shape) => [1, ...shape.map((size) => size ?? x.length)];
    const feeds = { x: new ort.Tensor(TYPES.get(x.constructor), x, sized(this.card.input.shape)) };
    if (noise) feeds.noise = new ort.Tensor("float32", noise, sized(this.card.noise.shape));
    this.turn = this.turn.catch(() => {}).then(async () => (await this.session.run(check(this.session, feeds), ["z"])).z.data);
    return this.turn;
  }

  /** The shape of what comes of `x`: of a text, as long as it. */
  shape(x) {
    return this.card.output.shape.map((size) => size ?? x.length);
  }

  noise(x) {
    if (!this.card.noise) return null;
    const { law, shape } = this.card.noise;
    const [many, own] = [count(shape.map((size) => size ?? x.length)), this.card.input.shape.map((size) => size ?? x.length)];
    return this.secret ? keyed(law, many, this.secret, { dtype: TYPES.get(x.constructor), shape: own, x }) : fresh(law, many);
  }
}

/** What somebody who has the released numbers could make of them: a picture of floats in [-1, 1], if the campaign brings a decoder. */
export class Decoder {
  static async open(graph, card) {
    return new Decoder(await open(graph), card);
  }

  constructor(session, card) {
    this.session = session;
    this.card = card;
  }

  async run(z) {
    const feeds = { [this.session.inputNames[0]]: new ort.Tensor("float32", z, [1, ...this.card.output.shape]) };
    return (await this.session.run(check(this.session, feeds)))[this.session.outputNames[0]].data;
  }
}
