/**
 * Sends all rows of one range to another stamp, before the commits behind a follower's cursor are shipped (docs/design/geo-shipping.md "Seeding"):
 * PartitionName after PartitionName, each as it was at one moment.
 *
 *     snapshot ──► rows from `from` on ──► part (whole PartitionNames) ──► link.seed ──► acknowledged ──► next part
 *                                     └──► pieces of one that is larger than a part, all of one snapshot
 *
 * Invariants:
 * - The follower was begun before the first part is read: the log has every commit that a part lacks.
 * - No commit of the range is shipped before the scan has ended: a PartitionName that is seeded is a state of it, and stays one.
 * - A part counts when the receiver has synced it (rule `geoScanIsSynced`).
 * - A part is bounded by the bytes that its rows refer to as well, so that a failure costs no more than those of one part are.
 */
import { compareBytes, equalBytes, type Outcome, prefixEnd, present, toHex } from "@stamp/base";
import { RangeSeeding, type SeedingProgress } from "@stamp/geo";
import type { KeyBounds } from "@stamp/lsm";
import { jittered, sleep, type World } from "@stamp/ports";
import type { LogFollowers } from "../followers/log-followers.ts";
import type { Row, ScanRange } from "../scan-range.ts";
import type { RowScan } from "../tables.ts";
import type { Snapshot } from "../types.ts";
import type { SeedPart } from "./apply-seed.ts";
import { type ShippedFences, shippedTicketMax } from "./shipped-fences.ts";

/** The range at the primary. */
export interface ScannedRange {
  readonly followers: Pick<LogFollowers, "lastTicket" | "lastSequence">;
  readonly fences: Pick<ShippedFences, "lead">;
  snapshot(): Snapshot;
  scan(range: ScanRange, snapshot?: Snapshot): RowScan;
}

/** Calls that bring parts of a seed to the receiver. */
export interface SeedLink {
  /** Resolves well when the part is durable at the receiver. */
  seed(part: SeedPart, options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<Outcome<unknown>>;
}

export interface SeederOptions {
  /** Role epoch of the account, which the receiver checks. */
  readonly epoch: number;
  /** Keys to be seeded; `high` is not empty. */
  readonly keys: KeyBounds;
  /** Returns the bytes that begin all keys of the row's PartitionName; undefined: the row is not shipped. */
  readonly nameOf: (key: Uint8Array) => Uint8Array | undefined;
  /** Bound of a part, in bytes. A larger row goes alone. */
  readonly partBytesMax?: number;
  readonly partRowsMax?: number;
  /** Returns the number of bytes that a row refers to. */
  readonly dataBytesOf?: (value: Uint8Array) => number;
  /** Bound of the bytes to which the rows of a part refer. A PartitionName that refers to more goes alone. */
  readonly partDataBytesMax?: number;
  /** Bound of what is sent in a second, in bytes. */
  readonly bytesPerSecondMax?: number;
  /** Called when every row before this key is seeded. */
  readonly onProgress?: (upTo: Uint8Array) => void;
}

const partBytesDefault = 1024 * 1024;
const partRowsDefault = 1_000;
const partDataBytesDefault = 64 * 1024 * 1024;
const seedTimeoutMs = 20_000;
const backoffStartMs = 50;
const backoffMaxMs = 5_000;
/** Pieces of one PartitionName are sent again as often, from one snapshot. After that it is read anew. */
const pieceAttemptsMax = 8;

interface Found {
  readonly part: SeedPart;
  readonly bytes: number;
}

export class RangeSeeder {
  readonly #world: World;
  readonly #range: ScannedRange;
  readonly #link: SeedLink;
  readonly #options: SeederOptions;
  readonly #seeding: RangeSeeding;
  #backoffMs = backoffStartMs;

  constructor(world: World, range: ScannedRange, link: SeedLink, options: SeederOptions) {
    this.#world = world;
    this.#range = range;
    this.#link = link;
    this.#options = options;
    this.#seeding = new RangeSeeding(world.rules);
  }

  /** Returns the progress; `totalBytes`: estimated size of all scanned rows. */
  progress(totalBytes: number): SeedingProgress {
    return this.#seeding.progress(totalBytes);
  }

  /** True if the receiver's copy is complete when the log is acknowledged to `cursor`. */
  ended(cursor: number): boolean {
    return this.#seeding.ended(cursor);
  }

  /** Sends every row from a key on. Resolves at the end of the scan, or when the signal says so. Throws FailureError if the range can't be read. */
  async run(from: Uint8Array, signal: AbortSignal): Promise<void> {
    const { keys } = this.#options;
    let low = compareBytes(from, keys.low) > 0 ? from : keys.low;
    while (compareBytes(low, keys.high) < 0) {
      const snapshot = this.#range.snapshot();
      try {
        low = await this.#next(low, snapshot, signal);
      } finally {
        snapshot.close();
      }
      if (signal.aborted) return;
      this.#options.onProgress?.(low);
    }
    this.#seeding.scanned(this.#range.followers.lastSequence);
  }

  /** Sends one part, or all pieces of one PartitionName. Returns the key up to which everything is acknowledged. */
  async #next(low: Uint8Array, snapshot: Snapshot, signal: AbortSignal): Promise<Uint8Array> {
    const lastTicket = Math.min(this.#range.followers.lastTicket + this.#range.fences.lead(low), shippedTicketMax);
    const first = await this.#read(low, snapshot, lastTicket);
    const { piece } = first.part;
    let bytes = 0;
    for (let next = first; ; next = await this.#read(next.part.high, snapshot, lastTicket, piece?.name)) {
      if (!(await this.#send(next, signal, piece === undefined ? 1 : pieceAttemptsMax))) return low;
      bytes += next.bytes;
      if (next.part.piece?.isLast === false) continue;
      const last = toHex(next.part.high);
      this.#seeding.sent(last, bytes);
      this.#seeding.applied(last);
      this.#seeding.acknowledged(last);
      return next.part.high;
    }
  }

  /** Returns the next part from a key on; `name`: the next piece of this PartitionName. */
  async #read(low: Uint8Array, snapshot: Snapshot, lastTicket: number, name?: Uint8Array): Promise<Found> {
    const { epoch, keys, nameOf, dataBytesOf = () => 0 } = this.#options;
    const { partBytesMax = partBytesDefault, partRowsMax = partRowsDefault, partDataBytesMax = partDataBytesDefault } = this.#options;
    const high = name === undefined ? keys.high : present(prefixEnd(name), "the end of a PartitionName");
    const rows: Row[] = [];
    /** Number and size of the rows before the last PartitionName. */
    let whole = { rows: 0, bytes: 0 };
    let current: Uint8Array | undefined;
    let bytes = 0;
    let dataBytes = 0;
    const found = (to: Uint8Array, size: number, piece?: SeedPart["piece"]): Found => {
      return { part: { epoch, sequence: snapshot.sequence, lastTicket, low, high: to, rows, ...(piece && { piece }) }, bytes: size };
    };
    for await (const row of this.#range.scan({ gte: low, lt: high, background: true }, snapshot)) {
      const own = nameOf(row[0]);
      if (own === undefined) continue;
      if (current === undefined || !equalBytes(own, current)) whole = { rows: rows.length, bytes };
      current = own;
      const size = row[0].length + row[1].length;
      dataBytes += dataBytesOf(row[1]);
      const isDataFull = dataBytes > partDataBytesMax && (whole.rows > 0 || name !== undefined);
      const isFull = rows.length > 0 && (isDataFull || bytes + size > partBytesMax || rows.length >= partRowsMax);
      if (isFull && whole.rows > 0 && name === undefined) {
        rows.length = whole.rows;
        return found(own, whole.bytes);
      }
      if (isFull && name === undefined && !equalBytes(low, own)) {
        // The first piece begins where its PartitionName does. What lies before it is a part of its own, without rows.
        rows.length = 0;
        return found(own, 0);
      }
      if (isFull) return found(row[0], bytes, { name: own, isLast: false });
      rows.push(row);
      bytes += size;
    }
    return found(high, bytes, name && { name, isLast: true });
  }

  /** Sends a part; false: it was not acknowledged, and its rows have to be read anew. */
  async #send({ part, bytes }: Found, signal: AbortSignal, attemptsMax: number): Promise<boolean> {
    const { clock, random } = this.#world;
    const beganMs = clock.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      const sent = await this.#link.seed(part, { timeoutMs: seedTimeoutMs, signal });
      if (sent.ok) break;
      if (!signal.aborted) await sleep(clock, jittered(random, this.#backoffMs), signal);
      this.#backoffMs = Math.min(2 * this.#backoffMs, backoffMaxMs);
      if (signal.aborted || attempt >= attemptsMax || sent.failure.reason === "conflict") return false;
    }
    this.#backoffMs = backoffStartMs;
    const { bytesPerSecondMax } = this.#options;
    const restMs = bytesPerSecondMax === undefined ? 0 : (bytes / bytesPerSecondMax) * 1_000 - (clock.monotonicMs() - beganMs);
    if (restMs > 0) await sleep(clock, restMs, signal);
    return true;
  }
}
