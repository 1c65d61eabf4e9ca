/**
 * Computes fragments at the speed of memory. A kernel owns the memory it works in: the caller reads files straight into its lanes, runs a plan, and
 * writes its outputs from there, so no byte is copied between JavaScript and WebAssembly. One lane holds the same part of one fragment.
 *
 * Memory: pointers of sources, pointers of outputs, tables of products, then the lanes. It never shrinks; make one kernel for each worker.
 */
import { assert, fromHex } from "@stamp/base";
import { multiply } from "./field.ts";
import { kernelBinary } from "./kernel-binary.ts";
import type { CodingPlan } from "./plan.ts";
import { combine } from "./reference.ts";

/** Lanes are multiples of this many bytes, and so is what a plan is run over. */
export const laneUnit = 64;
/** Largest number of sources or outputs of a plan. */
const fragmentsMax = 32;
/** Largest number of outputs of one call of the module. */
const outputsMax = 4;
const pageBytes = 64 * 1024;
const outputsAt = fragmentsMax * 4;
const tablesAt = outputsAt + fragmentsMax * 4;
/** Bytes of one lane that are computed at a time, so that all sources stay in the processor's cache between two calls of the module. */
const blockBytes = 8 * 1024;

type Call = (sources: number, count: number, tables: number, outputs: number, length: number) => void;

export class Kernel {
  readonly laneBytes: number;
  readonly #lanes: number;
  /** True if the WebAssembly runs; false if this engine could not compile it and plain TypeScript computes. */
  readonly fast: boolean;
  readonly #memory: Uint8Array<ArrayBuffer>;
  readonly #words: Uint32Array<ArrayBuffer>;
  readonly #calls: readonly Call[];

  /** Makes a kernel with `lanes` lanes of `laneBytes` bytes. `plain: true` leaves WebAssembly out. */
  constructor(lanes: number, laneBytes: number, options: { readonly plain?: boolean } = {}) {
    assert(laneBytes > 0 && laneBytes % laneUnit === 0, `a lane is a multiple of ${laneUnit} bytes`);
    this.laneBytes = laneBytes;
    this.#lanes = lanes;
    const bytes = pageBytes + lanes * laneBytes;
    const instance = options.plain === true ? undefined : instantiate();
    this.fast = instance !== undefined;
    this.#calls = ["add", ...Array.from({ length: outputsMax }, (_, i) => `combine${i + 1}`)].map(
      (name) => instance?.exports[name] as Call,
    );
    const memory = instance?.exports.memory as WebAssembly.Memory | undefined;
    memory?.grow(Math.ceil(bytes / pageBytes) - 1);
    this.#memory = new Uint8Array(memory?.buffer ?? new ArrayBuffer(bytes));
    this.#words = new Uint32Array(this.#memory.buffer, 0, tablesAt / 4);
  }

  /** Returns the bytes of a lane. The kernel owns them; they stay valid for its life. */
  lane(index: number): Uint8Array<ArrayBuffer> {
    assert(Number.isInteger(index) && index >= 0 && index < this.#lanes, "there is such a lane");
    const at = pageBytes + index * this.laneBytes;
    return this.#memory.subarray(at, at + this.laneBytes);
  }

  /**
   * Computes the outputs of `plan` from its sources. `laneOf` says in which lane a fragment lies, for sources and outputs; no two of them share one.
   * Only the first `bytes` bytes of each lane are read and written.
   */
  run(plan: CodingPlan, laneOf: (fragment: number) => number, bytes: number = this.laneBytes): void {
    assert(bytes > 0 && bytes <= this.laneBytes && bytes % laneUnit === 0, `a run takes a multiple of ${laneUnit} bytes, at most a lane`);
    assert(
      plan.sources.length > 0 && plan.sources.length <= fragmentsMax && plan.outputs.length <= fragmentsMax,
      "the plan fits the tables",
    );
    const sources = plan.sources.map(laneOf);
    const outputs = plan.outputs.map(laneOf);
    for (const each of [...sources, ...outputs]) this.lane(each);
    assert(new Set([...sources, ...outputs]).size === sources.length + outputs.length, "each fragment has a lane of its own");
    if (!this.fast) {
      const part = (index: number): Uint8Array => this.lane(index).subarray(0, bytes);
      combine(plan.coefficients, sources.map(part), outputs.map(part));
      return;
    }
    const steps = stepsOf(plan.coefficients);
    for (let at = 0; at < bytes; at += blockBytes) {
      const length = Math.min(blockBytes, bytes - at);
      for (const step of steps) this.#step(step, sources, outputs, at, length);
    }
  }

  #step(step: Step, sources: readonly number[], outputs: readonly number[], at: number, length: number): void {
    const words = this.#words;
    step.sources.forEach((source, i) => {
      words[i] = pageBytes + (sources[source] as number) * this.laneBytes + at;
    });
    step.outputs.forEach((output, i) => {
      words[outputsAt / 4 + i] = pageBytes + (outputs[output] as number) * this.laneBytes + at;
    });
    if (step.tables !== undefined) this.#memory.set(step.tables, tablesAt);
    const call = this.#calls[step.tables === undefined ? 0 : step.outputs.length] as Call;
    call(0, step.sources.length, tablesAt, outputsAt, length);
  }
}

/** One call of the module. Numbers are places in the plan's lists. */
interface Step {
  readonly sources: readonly number[];
  readonly outputs: readonly number[];
  /** Tables with the products of each source and output; undefined: all coefficients are 1. */
  readonly tables: Uint8Array | undefined;
}

/** Cuts a plan into calls: a sum of sources without factors is an `add` of its own, the others are computed up to four at a time. */
function stepsOf(coefficients: readonly Uint8Array[]): Step[] {
  const steps: Step[] = [];
  const others: number[] = [];
  coefficients.forEach((row, output) => {
    const sources = [...row.keys()].filter((i) => row[i] !== 0);
    if (sources.length > 0 && sources.every((i) => row[i] === 1)) steps.push({ sources, outputs: [output], tables: undefined });
    else others.push(output);
  });
  for (let first = 0; first < others.length; first += outputsMax) {
    const outputs = others.slice(first, first + outputsMax);
    const rows = outputs.map((output) => coefficients[output] as Uint8Array);
    const sources = [...(rows[0] as Uint8Array).keys()];
    steps.push({ sources, outputs, tables: tablesOf(rows, sources.length) });
  }
  return steps;
}

function tablesOf(rows: readonly Uint8Array[], sources: number): Uint8Array {
  const tables = new Uint8Array(sources * rows.length * 32);
  let at = 0;
  for (let i = 0; i < sources; i++) {
    for (const row of rows) {
      for (let half = 0; half < 16; half++) {
        tables[at + half] = multiply(row[i] as number, half);
        tables[at + 16 + half] = multiply(row[i] as number, half << 4);
      }
      at += 32;
    }
  }
  return tables;
}

let compiled: WebAssembly.Module | undefined | "failed";

function instantiate(): WebAssembly.Instance | undefined {
  if (compiled === undefined) {
    try {
      compiled = new WebAssembly.Module(fromHex(kernelBinary) as Uint8Array<ArrayBuffer>);
    } catch {
      // An engine without relaxed SIMD: slower, but the same bytes.
      compiled = "failed";
    }
  }
  return compiled === "failed" ? undefined : new WebAssembly.Instance(compiled, {});
}
