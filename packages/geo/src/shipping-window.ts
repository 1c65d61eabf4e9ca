/**
 * The sender's side of one range: which commits are on their way to the other stamp (docs/design/geo-shipping.md "Shipping").
 * Commits come in order and are divided by PartitionName into lanes. Each lane has one batch on its way at most, so that
 * its commits arrive in order; lanes go in parallel. What is acknowledged is a position of the range's log.
 *
 *     add(1: a) add(2: b) add(3: a) ──► lane a: 1 3 ──► take() ──► delivered(a) ──► acknowledged = 1
 *                                  └──► lane b: 2   ──► take() ──► delivered(b) ──► acknowledged = 3
 *
 * Invariants:
 * - A batch begins with the oldest commit of its lane that was not delivered.
 * - Every commit up to `acknowledged` was delivered in each of its lanes.
 */
import { assert, present } from "@stamp/base";

/** Part of one commit that belongs to one PartitionName. */
export interface LanePart<T> {
  /** PartitionName, as a text that no other one has. */
  readonly lane: string;
  /** Size of the rows, in bytes. */
  readonly bytes: number;
  readonly rows: T;
}

export interface LaneBatch<T> {
  readonly lane: string;
  /** Commits of the batch, oldest first. */
  readonly parts: readonly { readonly sequence: number; readonly rows: T }[];
}

export interface WindowLimits {
  /** Bound of the bytes that wait or are on their way. A larger commit goes alone. */
  readonly windowBytesMax: number;
  /** Bound of one batch, in bytes. A larger commit goes alone. */
  readonly batchBytesMax: number;
  /** Bound of the batches that are on their way at once. */
  readonly batchesMax: number;
}

interface Part<T> {
  readonly sequence: number;
  readonly bytes: number;
  readonly rows: T;
}

interface Lane<T> {
  /** Parts that are not delivered yet, oldest first. */
  parts: Part<T>[];
  /** Number of parts, from the first on, that are on their way. */
  onTheirWay: number;
}

export class ShippingWindow<T> {
  readonly #limits: WindowLimits;
  readonly #lanes = new Map<string, Lane<T>>();
  /** Lanes with parts to send and none on its way, in the order of their turns. */
  readonly #ready = new Set<string>();
  /** Commits in order, each with the number of lanes that have not delivered it. */
  #commits: { readonly sequence: number; left: number }[] = [];
  readonly #bySequence = new Map<number, { readonly sequence: number; left: number }>();
  #added: number;
  #bytes = 0;
  #batches = 0;

  /** `from`: position up to which every commit is acknowledged. */
  constructor(from: number, limits: WindowLimits) {
    this.#limits = limits;
    this.#added = from;
  }

  /** True if another commit may be added. */
  get hasRoom(): boolean {
    return this.#bytes < this.#limits.windowBytesMax;
  }

  /** Size of everything that was added and not delivered, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of commits that are kept until they are delivered. */
  get count(): number {
    return this.#commits.length;
  }

  /** True if everything that was added was delivered. */
  get isEmpty(): boolean {
    return this.#commits.length === 0;
  }

  /** Every commit up to this sequence is acknowledged. */
  get acknowledged(): number {
    const oldest = this.#commits[0];
    return oldest === undefined ? this.#added : oldest.sequence - 1;
  }

  /** Adds the next commit. Without parts there is nothing to deliver. */
  add(sequence: number, parts: readonly LanePart<T>[]): void {
    assert(sequence === this.#added + 1, "commits are added in order, without a gap");
    this.#added = sequence;
    // It is acknowledged with the commit before it. Kept while that one is on its way, the commits of a busy neighbour would have no bound.
    if (parts.length === 0) return;
    const commit = { sequence, left: parts.length };
    this.#commits.push(commit);
    this.#bySequence.set(sequence, commit);
    for (const { lane: name, bytes, rows } of parts) {
      const lane = this.#lanes.get(name) ?? { parts: [], onTheirWay: 0 };
      this.#lanes.set(name, lane);
      lane.parts.push({ sequence, bytes, rows });
      this.#bytes += bytes;
      if (lane.onTheirWay === 0) this.#ready.add(name);
    }
    this.#forgetDelivered();
  }

  /** Returns the next batch to send; undefined if no lane has one, or enough are on their way. */
  take(): LaneBatch<T> | undefined {
    const [name] = this.#ready;
    if (name === undefined || this.#batches >= this.#limits.batchesMax) return undefined;
    this.#ready.delete(name);
    const lane = present(this.#lanes.get(name), "a ready lane");
    let bytes = 0;
    for (const part of lane.parts) {
      if (lane.onTheirWay > 0 && bytes + part.bytes > this.#limits.batchBytesMax) break;
      bytes += part.bytes;
      lane.onTheirWay++;
    }
    this.#batches++;
    return { lane: name, parts: lane.parts.slice(0, lane.onTheirWay).map(({ sequence, rows }) => ({ sequence, rows })) };
  }

  /** Notes that the receiver has the lane's batch, durably. */
  delivered(name: string): void {
    const lane = this.#ended(name);
    const delivered = lane.parts.slice(0, lane.onTheirWay);
    lane.parts = lane.parts.slice(lane.onTheirWay);
    lane.onTheirWay = 0;
    for (const { sequence, bytes } of delivered) {
      this.#bytes -= bytes;
      present(this.#bySequence.get(sequence), "a commit of the window").left--;
    }
    if (lane.parts.length > 0) this.#ready.add(name);
    else this.#lanes.delete(name);
    this.#forgetDelivered();
  }

  /** Notes that the outcome of the lane's batch is not known: it is sent again, with the commits that came meanwhile. */
  failed(name: string): void {
    this.#ended(name).onTheirWay = 0;
    this.#ready.add(name);
  }

  #ended(name: string): Lane<T> {
    const lane = present(this.#lanes.get(name), "a lane");
    assert(lane.onTheirWay > 0, "a batch of the lane was on its way");
    this.#batches--;
    return lane;
  }

  #forgetDelivered(): void {
    let count = 0;
    while (this.#commits[count]?.left === 0) this.#bySequence.delete(present(this.#commits[count++], "a commit").sequence);
    if (count > 0) this.#commits = this.#commits.slice(count);
  }
}
