/**
 * Gives ranges of one fragment, for repair and decoding: read from its own file, or computed from the same range of others (stripe-read.ts).
 * Sources are chosen anew for each stripe. If a stripe has too many bad chunks, its chunks are read one by one, so whatever the code can still
 * decode is decoded: a fragment with a bad chunk helps with its good ones.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import { Kernel } from "@stamp/erasure";
import { fragmentChunkBytes } from "@stamp/extent";
import { ExtentFragments, toWire } from "@stamp/wire";
import { repairIo } from "../disk/disk-queue.ts";
import type { Node } from "../node.ts";
import { type CodedDescription, type FragmentAt, wantedOf } from "./fragment-requests.ts";
import { fragmentSourceOf, LateLimit, type Source, type StripeFound, StripeRead } from "./stripe-read.ts";

/** Bytes of each fragment that are worked on at a time. */
export const stripeBytes: number = 256 * 1024;
const readTimeoutMs = 5_000;

/** Returns bytes of a fragment's content, verified by its node, and again here if they came from another one. */
export async function readFragmentAt(
  node: Node,
  coded: CodedDescription,
  { index, version, address }: FragmentAt,
  offsetBytes: number,
  lengthBytes: number,
  signal?: AbortSignal,
): Promise<Outcome<Uint8Array>> {
  const { extentId, profile, sealedLengthBytes, contentChecksum } = coded.extent;
  const wanted = wantedOf(coded, index);
  if (address === node.address) return node.fragments.read({ extentId, version, index }, offsetBytes, lengthBytes, repairIo, wanted);
  const name = { extentId: toWire(extentId), version: toWire(version), index };
  const range = { offsetBytes: toWire(offsetBytes), lengthBytes, background: true };
  const ofExtent = { profile, sealedLengthBytes: toWire(sealedLengthBytes), checksum: contentChecksum };
  const { creation = 0, fragmentChecksum } = wanted;
  const of = { ...ofExtent, creation: toWire(creation), ...(fragmentChecksum === undefined ? {} : { fragmentChecksum }) };
  const client = node.world.transport.client(address, ExtentFragments);
  const options = { timeoutMs: readTimeoutMs, ...(signal === undefined ? {} : { signal }) };
  const answer = await client.readFragment({ ...name, ...range, ...of }, options);
  if (!answer.ok) return answer;
  const { payload, payloadChecksum } = answer.value;
  if (payload.length !== lengthBytes)
    return refused("unavailable", "extentStale", `${address} gave ${payload.length} of ${lengthBytes} bytes of fragment ${index}`);
  // A node of an earlier release gives none.
  if (payloadChecksum === undefined || payloadChecksum === node.world.digest.crc32c(payload)) return ok(payload);
  return refused("unavailable", "extentStale", `bytes of fragment ${index} at ${offsetBytes} from ${address} are not what it sent`);
}

export class FragmentSources {
  readonly #node: Node;
  readonly #coded: CodedDescription;
  readonly #wanted: number;
  readonly #sources: readonly Source[];
  readonly #kernel: () => Kernel;
  readonly #late = new LateLimit();
  #step = 0;
  bytesRead = 0;

  /** `sources`: those to be read first in front, at most one of each index. `kernel` gives lanes for all fragments; nobody else uses it between two awaits. */
  constructor(
    node: Node,
    coded: CodedDescription,
    wanted: number,
    sources: readonly FragmentAt[],
    kernel: () => Kernel = kernelOnce(coded),
  ) {
    this.#node = node;
    this.#coded = coded;
    this.#wanted = wanted;
    this.#sources = sources.map(fragmentSourceOf);
    this.#kernel = kernel;
  }

  /** Returns the wanted fragment's bytes of this range, at most `stripeBytes`; offset and length are multiples of 64. */
  async bytes(offsetBytes: number, lengthBytes: number): Promise<Outcome<Uint8Array>> {
    const whole = await this.#range(offsetBytes, lengthBytes);
    if (whole.ok || whole.failure.reason !== "damaged") return whole.ok ? whole : this.#notComputed(offsetBytes, whole.failure.message);
    const bytes = new Uint8Array(lengthBytes);
    for (let at = offsetBytes; at < offsetBytes + lengthBytes; ) {
      const end = Math.min(offsetBytes + lengthBytes, (Math.floor(at / fragmentChunkBytes) + 1) * fragmentChunkBytes);
      const chunk = await this.#range(at, end - at);
      if (!chunk.ok) return this.#notComputed(at, chunk.failure.message);
      bytes.set(chunk.value, at - offsetBytes);
      at = end;
    }
    return ok(bytes);
  }

  #notComputed(at: number, why: string): Outcome<never> {
    const left = this.#sources.filter(({ gone }) => !gone).length;
    const message = `fragment ${this.#wanted} of extent ${this.#coded.extent.extentId} can't be computed at ${at} from ${left} others: ${why}`;
    return refused("unavailable", "extentStale", message);
  }

  /** Reads a range. Refuses with `damaged` if bad chunks leave it undetermined. */
  async #range(offsetBytes: number, lengthBytes: number): Promise<Outcome<Uint8Array>> {
    const { clock } = this.#node.world;
    this.#step += 1;
    const found = await new StripeRead({
      clock,
      profile: this.#coded.profile,
      wanted: this.#wanted,
      sources: this.#sources,
      step: this.#step,
      late: this.#late,
      read: async ({ at }, signal) => {
        const answer = await readFragmentAt(this.#node, this.#coded, at, offsetBytes, lengthBytes, signal);
        if (answer.ok) this.bytesRead += lengthBytes;
        return answer;
      },
    }).run();
    if ("kind" in found) return ok(this.#computed(found, lengthBytes));
    const why = found.last?.failure.message ?? "no source is left";
    return found.isDamaged ? refused("dataLoss", "damaged", why) : refused("unavailable", "extentStale", why);
  }

  #computed(found: StripeFound, lengthBytes: number): Uint8Array {
    if (found.kind === "bytes") return found.bytes;
    const kernel = this.#kernel();
    for (const source of found.plan.sources) kernel.lane(source).set(found.bytesOf.get(source) as Uint8Array);
    kernel.run(found.plan, (index) => index, lengthBytes);
    return kernel.lane(this.#wanted).slice(0, lengthBytes);
  }
}

/** Returns a function that makes the kernel at its first use: most jobs only read. */
export function kernelOnce({ profile }: CodedDescription): () => Kernel {
  let kernel: Kernel | undefined;
  return () => {
    kernel ??= new Kernel(profile.fragments, stripeBytes);
    return kernel;
  };
}

/** Work in steps that take turns with the copies of repair, and rest while clients use the node. */
export class PacedSteps {
  readonly #node: Node;
  readonly #startedMs: number;
  #operations: number;
  #doneBytes = 0;

  constructor(node: Node) {
    this.#node = node;
    this.#startedMs = node.world.clock.monotonicMs();
    this.#operations = node.clientOperations;
  }

  async step<T>(bytes: number, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const { copyTurns, world } = this.#node;
    let answer: Outcome<T> | undefined;
    await copyTurns.alone(
      async () => {
        answer = await work();
      },
      (stepMs) => {
        this.#doneBytes += bytes;
        const isBusy = this.#node.clientOperations > this.#operations;
        this.#operations = this.#node.clientOperations;
        const elapsedMs = world.clock.monotonicMs() - this.#startedMs;
        return isBusy ? { stepMs, elapsedMs, copiedBytes: this.#doneBytes } : undefined;
      },
    );
    return answer as Outcome<T>;
  }
}
