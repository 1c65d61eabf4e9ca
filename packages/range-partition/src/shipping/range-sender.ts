/**
 * Sends the commits of one range to another stamp (docs/design/geo-shipping.md "Shipping"): reads them behind the durable cursor
 * of a follower, divides them by PartitionName, keeps a window of bytes on its way, and moves the cursor on when the
 * receiver has acknowledged.
 *
 *     LogFollowers.commitsFor ──► ShippingWindow ──► link.ship (one batch of a PartitionName at once) ──► cursor
 *
 * Invariants:
 * - A batch whose outcome is not known is sent again, for as long as it takes, before anything later of its PartitionName.
 * - The cursor is what the receiver has acknowledged (rule `geoCursorAcknowledged`).
 */
import { type Failure, FailureError, type Outcome, present, toHex, WakeUp } from "@stamp/base";
import { type LaneBatch, type LanePart, ShippingWindow, type WindowLimits } from "@stamp/geo";
import type { World } from "@stamp/ports";
import { jittered, SlowLog, sleep } from "@stamp/ports";
import type { LogFollowers } from "../followers/log-followers.ts";
import type { LoggedCommit } from "../followers/recent-commits.ts";
import type { RowWrite } from "../types.ts";
import type { Shipment } from "./apply-shipped.ts";
import { isMarkerKey } from "./marker.ts";
import { shippedTicketMax } from "./shipped-fences.ts";

/** Calls that bring batches to the receiver. */
export interface ShippingLink {
  /** Resolves well when the shipment is durable at the receiver. */
  ship(shipment: Shipment, options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<Outcome<unknown>>;
}

export interface SenderOptions {
  /** Name of the follower whose cursor this sender moves. */
  readonly follower: string;
  /** Role epoch of the account, which the receiver checks. */
  readonly epoch: number;
  /** Returns the bytes that begin all keys of the row's PartitionName; undefined: the row is not shipped. */
  readonly nameOf: (key: Uint8Array) => Uint8Array | undefined;
  /** Returns the lead of a PartitionName's tickets (shipped-fences.ts); undefined: there is none. */
  readonly leadOf?: (name: Uint8Array) => number;
  readonly limits?: Partial<WindowLimits>;
  /** Bound of the rows that are sent in a second, in bytes; undefined: none. */
  readonly bytesPerSecondMax?: number | undefined;
  /** Runs once if the sender can't go on. The rows have to be scanned if the log was lost. */
  readonly onEnd: (failure: Failure) => void;
}

const limitDefaults: WindowLimits = { windowBytesMax: 8 * 1024 * 1024, batchBytesMax: 1024 * 1024, batchesMax: 32 };
const shipTimeoutMs = 10_000;
const backoffStartMs = 50;
const backoffMaxMs = 5_000;
/** Least time between two records of a cursor that has moved, in milliseconds. */
const recordEveryMs = 10_000;

const sizeOf = (writes: readonly RowWrite[]): number =>
  writes.reduce((sum, write) => sum + write.key.length + (write.kind === "put" ? write.value.length : 0), 0);

interface LaneRows {
  readonly name: Uint8Array;
  readonly commit: LoggedCommit;
}

export class RangeSender {
  readonly #world: World;
  readonly #followers: LogFollowers;
  readonly #link: ShippingLink;
  readonly #options: SenderOptions;
  readonly #window: ShippingWindow<LaneRows>;
  readonly #stop = new AbortController();
  readonly #slow: SlowLog;
  /** Lanes whose last batch failed, and how long each waits now, in milliseconds. */
  readonly #backoffMs = new Map<string, number>();
  #recordedMs: number;
  /** End of the time that batches at a bounded rate have taken, by the monotonic clock. */
  #pacedUntilMs = 0;
  readonly #room = new WakeUp();
  /** Resolves when the sender has stopped and nothing is on its way. */
  readonly ended: Promise<void>;
  readonly #shipping = new Set<Promise<void>>();

  /** Throws if there is no such follower. */
  constructor(world: World, followers: LogFollowers, link: ShippingLink, options: SenderOptions) {
    const { acknowledged } = present(followers.status(options.follower), "the follower of a sender");
    this.#world = world;
    this.#followers = followers;
    this.#link = link;
    this.#options = options;
    this.#slow = new SlowLog(world);
    this.#window = new ShippingWindow(acknowledged, { ...limitDefaults, ...options.limits });
    this.#recordedMs = world.clock.monotonicMs();
    this.ended = this.#run(acknowledged);
  }

  /** Size of the rows that are on their way or wait in memory, in bytes. */
  get bytes(): number {
    return this.#window.bytes;
  }

  /** Sends nothing more. What is on its way may still arrive. */
  stop(): void {
    this.#stop.abort();
    this.#room.notify();
  }

  async #run(from: number): Promise<void> {
    const { follower, onEnd } = this.#options;
    let sent = from;
    try {
      while (!this.#stop.signal.aborted && this.#followers.status(follower) !== undefined) {
        for await (const commit of this.#followers.commitsFor(follower, sent)) {
          while (!this.#window.hasRoom && !this.#stop.signal.aborted) await this.#room.next;
          if (this.#stop.signal.aborted) break;
          this.#window.add(commit.sequence, this.#parts(commit));
          sent = commit.sequence;
          this.#followers.sent(follower, sent);
          this.#acknowledge();
          this.#send();
        }
        await this.#followers.whenBehind(sent, this.#stop.signal);
        if (this.#followers.isOver) break;
      }
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      onEnd(error.failure);
    }
    this.#stop.abort();
    await Promise.all(this.#shipping);
  }

  /** Divides a commit by PartitionName. */
  #parts({ sequence, lastTicket, writes }: LoggedCommit): LanePart<LaneRows>[] {
    const byName = new Map<string, { readonly name: Uint8Array; readonly writes: RowWrite[] }>();
    for (const write of writes) {
      const name = isMarkerKey(write.key) ? undefined : this.#options.nameOf(write.key);
      if (name === undefined) continue;
      const lane = toHex(name);
      const part = byName.get(lane) ?? { name, writes: [] };
      byName.set(lane, part);
      part.writes.push(write);
    }
    return [...byName].map(([lane, { name, writes: own }]) => {
      const ticket = Math.min(lastTicket + (this.#options.leadOf?.(name) ?? 0), shippedTicketMax);
      return { lane, bytes: sizeOf(own), rows: { name, commit: { sequence, lastTicket: ticket, writes: own } } };
    });
  }

  #send(): void {
    for (let batch = this.#take(); batch !== undefined; batch = this.#take()) {
      const shipping = this.#ship(batch).finally(() => this.#shipping.delete(shipping));
      this.#shipping.add(shipping);
    }
  }

  #take(): LaneBatch<LaneRows> | undefined {
    return this.#stop.signal.aborted ? undefined : this.#window.take();
  }

  async #ship({ lane, parts }: LaneBatch<LaneRows>): Promise<void> {
    const { clock, random } = this.#world;
    const { signal } = this.#stop;
    const { name } = present(parts[0], "a part of a batch").rows;
    const shipment = { epoch: this.#options.epoch, name, commits: parts.map(({ rows }) => rows.commit) };
    await this.#paced(parts.reduce((sum, { rows }) => sum + sizeOf(rows.commit.writes), 0));
    if (signal.aborted) return;
    const sinceMs = clock.monotonicMs();
    const outcome = await this.#link.ship(shipment, { timeoutMs: shipTimeoutMs, signal });
    if (signal.aborted) return;
    this.#slow.ended("a batch of commits took long on its way to the other stamp", sinceMs, () => ({
      follower: this.#options.follower,
      commits: parts.length,
      backoffMs: this.#backoffMs.get(lane) ?? 0,
      outcome: outcome.ok ? "done" : outcome.failure.reason,
    }));
    if (outcome.ok) {
      this.#backoffMs.delete(lane);
      this.#window.delivered(lane);
      this.#acknowledge();
      this.#room.notify();
    } else {
      const waitMs = this.#backoffMs.get(lane) ?? backoffStartMs;
      this.#backoffMs.set(lane, Math.min(2 * waitMs, backoffMaxMs));
      await sleep(clock, jittered(random, waitMs), signal);
      if (signal.aborted) return;
      this.#window.failed(lane);
    }
    this.#send();
  }

  /** Waits for the turn of these bytes at the bounded rate. */
  async #paced(bytes: number): Promise<void> {
    const { bytesPerSecondMax } = this.#options;
    if (bytesPerSecondMax === undefined) return;
    const { clock } = this.#world;
    const nowMs = clock.monotonicMs();
    const beginMs = Math.max(nowMs, this.#pacedUntilMs);
    this.#pacedUntilMs = beginMs + (bytes / bytesPerSecondMax) * 1_000;
    if (beginMs > nowMs) await sleep(clock, beginMs - nowMs, this.#stop.signal);
  }

  #acknowledge(): void {
    const { follower } = this.#options;
    this.#followers.acknowledged(follower, this.#window.acknowledged);
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - this.#recordedMs < recordEveryMs) return;
    this.#recordedMs = nowMs;
    void this.#followers.record();
  }
}
