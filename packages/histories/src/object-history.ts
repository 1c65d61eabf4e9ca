/** Observations of clients, and the judgement over them. */
import { Prng } from "@stamp/base";
import type { BlobAnswer, BlobCall, RecordedOperation } from "@stamp/linearizability";
import { checkBlob } from "@stamp/linearizability";
import { BrokenPromise } from "./stage.ts";

/** Returns the bytes of a write: its number and length, then what the number gives. No two writes have the same. */
export function contentOf(write: number, lengthBytes: number): Uint8Array {
  const bytes = new Prng(write * 7919 + 13).bytes(Math.max(12, lengthBytes));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, write);
  view.setUint32(4, bytes.length);
  view.setUint32(8, 0xb10b5eed);
  return bytes;
}

/** Returns the write that made these bytes. Throws if no write did, or if bytes are missing. */
export function writeOf(bytes: Uint8Array, what: string): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 12 || view.getUint32(8) !== 0xb10b5eed) throw new BrokenPromise(`${what}: ${bytes.length} bytes that nobody wrote`);
  const write = view.getUint32(0);
  const expected = contentOf(write, view.getUint32(4));
  if (expected.length !== bytes.length)
    throw new BrokenPromise(`${what}: ${bytes.length} bytes of write ${write}, which has ${expected.length}`);
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== expected[i]) throw new BrokenPromise(`${what}: byte ${i} of write ${write} is not what was written`);
  }
  return write;
}

export class BlobHistory {
  readonly #containers = new Map<string, RecordedOperation<BlobCall>[]>();
  readonly #blobs = new Map<string, RecordedOperation<BlobCall>[]>();
  /** Names whose search was given up, in words. */
  readonly undecided: string[] = [];

  readonly #containersAtStart: boolean;

  constructor(names: ReadonlyMap<string, readonly string[]>, containersAtStart = false) {
    this.#containersAtStart = containersAtStart;
    for (const [container, blobs] of names) {
      this.#containers.set(container, []);
      for (const blob of blobs) this.#blobs.set(`${container}/${blob}`, []);
    }
  }

  container(container: string, operation: RecordedOperation<BlobCall>): void {
    this.#containers.get(container)?.push(operation);
  }

  blob(container: string, blob: string, operation: RecordedOperation<BlobCall>): void {
    this.#blobs.get(`${container}/${blob}`)?.push(operation);
  }

  /** Returns the breach, or undefined. */
  check(): string | undefined {
    for (const [name, operations] of this.#blobs) {
      const [container = ""] = name.split("/", 1);
      const history = [...(this.#containers.get(container) ?? []), ...operations];
      const verdict = checkBlob(history, this.#containersAtStart);
      if (verdict.kind === "violation") return `${name}: ${verdict.why}`;
      if (verdict.kind === "unknown") this.undecided.push(`${name}: ${verdict.why}`);
    }
    return undefined;
  }
}

export const isBlobAnswer = (answer: { readonly kind: string }): answer is BlobAnswer => answer.kind !== "notDone";
