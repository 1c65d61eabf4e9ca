/**
 * Reads the same range of several fragments, from this node and others, for repair, verification and decoding. A source that refuses, is late
 * or is damaged is left for the rest of the job, and the next ones take its place.
 */
import { type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import { Kernel, type Plan, type Profile, repairPlan } from "@stamp/erasure";
import { ExtentFragments, toWire } from "@stamp/wire";
import { repairIo } from "../disk/disk-queue.ts";
import type { Node } from "../node.ts";
import type { FragmentAt } from "./fragment-requests.ts";

/** Bytes of each fragment that are worked on at a time. */
export const stripeBytes: number = 256 * 1024;
const readTimeoutMs = 5_000;

/** Returns bytes of a fragment's content, verified by its node. */
export async function readFragmentAt(
  node: Node,
  extentId: ExtentId,
  { index, version, address }: FragmentAt,
  offsetBytes: number,
  lengthBytes: number,
): Promise<Outcome<Uint8Array>> {
  if (address === node.address) return node.fragments.read({ extentId, version, index }, offsetBytes, lengthBytes, repairIo);
  const request = { extentId: toWire(extentId), version: toWire(version), index, offsetBytes: toWire(offsetBytes), lengthBytes };
  const client = node.world.transport.client(address, ExtentFragments);
  const answer = await client.readFragment({ ...request, background: true }, { timeoutMs: readTimeoutMs });
  if (!answer.ok) return answer;
  const { payload } = answer.value;
  return payload.length === lengthBytes
    ? ok(payload)
    : refused("unavailable", "extentStale", `${address} gave ${payload.length} of ${lengthBytes} bytes of fragment ${index}`);
}

export class FragmentSources {
  readonly #node: Node;
  readonly #extentId: ExtentId;
  readonly #profile: Profile;
  readonly #wanted: readonly number[];
  #left: FragmentAt[];
  #plan: Plan | undefined;
  readonly #kernel: Kernel;
  /** Why the last source was left. */
  #why = "no source was given";
  bytesRead = 0;

  /** `sources`: those to be read first in front. `wanted`: indices of the fragments that are computed. */
  constructor(node: Node, extentId: ExtentId, profile: Profile, wanted: readonly number[], sources: readonly FragmentAt[]) {
    this.#node = node;
    this.#extentId = extentId;
    this.#profile = profile;
    this.#wanted = wanted;
    this.#left = sources.filter(({ index }) => !wanted.includes(index));
    this.#kernel = new Kernel(profile.fragments, stripeBytes);
    this.#choose();
  }

  #choose(): void {
    const available = this.#left.map(({ index }) => index);
    this.#plan = repairPlan(this.#profile, this.#wanted, available);
  }

  /** Returns the wanted fragments' bytes of this range, at most `stripeBytes` and a multiple of 64. The kernel's memory holds them until the next call. */
  async compute(offsetBytes: number, lengthBytes: number): Promise<Outcome<readonly Uint8Array[]>> {
    for (;;) {
      const plan = this.#plan;
      if (plan === undefined) {
        const message = `fragments ${this.#wanted.join(", ")} of extent ${this.#extentId} can't be computed from ${this.#left.length} others: ${this.#why}`;
        return refused("unavailable", "extentStale", message);
      }
      const read = await Promise.all(plan.sources.map((index) => this.#read(index, offsetBytes, lengthBytes)));
      if (read.includes(false)) {
        this.#choose();
        continue;
      }
      this.#kernel.run(plan, (index) => index, lengthBytes);
      return ok(this.#wanted.map((index) => this.#kernel.lane(index).subarray(0, lengthBytes)));
    }
  }

  /** False: the source is left. */
  async #read(index: number, offsetBytes: number, lengthBytes: number): Promise<boolean> {
    const source = this.#left.find((each) => each.index === index) as FragmentAt;
    const answer = await readFragmentAt(this.#node, this.#extentId, source, offsetBytes, lengthBytes);
    if (!answer.ok) {
      this.#why = `fragment ${index}: ${answer.failure.message}`;
      this.#left = this.#left.filter((each) => each !== source);
      return false;
    }
    this.#kernel.lane(index).set(answer.value);
    this.bytesRead += lengthBytes;
    return true;
  }
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
