/**
 * Sends what one range has of one account to the account's other stamp (docs/design/geo.md "Shipping"): all rows first, then every commit.
 *
 *     follower begun ──► RangeSeeder ──► RangeSender ──► the range moves, the account's role changes, or the log is lost
 *
 * Its state is the follower's: cursor and note are in the range's metadata stream, so that a new owner goes on.
 */
import { compareBytes, type Failure, FailureError, fromHex, type Outcome, ok, toHex } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { accountKeys, type ShippedTable, shippedNames } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { type RangePartition, RangeSeeder, RangeSender } from "@stamp/range-partition";
import { GeoLink, type TransportToStamp } from "./geo-link.ts";

export interface ShippingOptions {
  readonly transportTo: TransportToStamp;
  /** Bound of what the scans of one range send in a second, in bytes. */
  readonly seedBytesPerSecondMax: number;
}

/** Note of a follower. */
interface Note {
  /** Role epoch under which the rows were seeded. */
  readonly epoch: number;
  /** Hexadecimal: every row before this key is seeded. Undefined: all are. */
  readonly upTo?: string | undefined;
}

/** State for people and for the manager. */
export interface ShippingFacts {
  readonly account: string;
  readonly rangeId: string;
  readonly table: string;
  readonly epoch: number;
  readonly state: "seeding" | "shipping" | "ended";
  /** Commits that are not acknowledged. */
  readonly pending: number;
  /** Size of the log that is kept for them, in bytes, without the extent that is written to. */
  readonly backlogBytes: number;
  readonly seededBytes: number;
  /** Why the last call failed; empty: it did not. */
  readonly failure: string;
}

const recordNoteEveryMs = 5_000;

export class RangeShipping {
  readonly account: string;
  readonly #world: World;
  readonly #range: Range;
  readonly #partition: RangePartition;
  readonly #role: AccountRole;
  readonly #options: ShippingOptions;
  readonly #stop = new AbortController();
  #seeder: RangeSeeder | undefined;
  #sender: RangeSender | undefined;
  #state: ShippingFacts["state"] = "seeding";
  #failure = "";
  #notedMs: number;
  /** Resolves when nothing is sent any more. */
  readonly ended: Promise<void>;

  constructor(world: World, range: Range, partition: RangePartition, account: string, role: AccountRole, options: ShippingOptions) {
    this.#world = world;
    this.#range = range;
    this.#partition = partition;
    this.account = account;
    this.#role = role;
    this.#options = options;
    this.#notedMs = world.clock.monotonicMs();
    this.ended = this.#run().finally(() => {
      this.#state = "ended";
    });
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

  get facts(): ShippingFacts {
    const { followers } = this.#partition;
    return {
      account: this.account,
      rangeId: this.#range.rangeId,
      table: this.#range.table,
      epoch: this.#role.epoch,
      state: this.#state,
      pending: followers.status(this.account)?.pending ?? 0,
      backlogBytes: followers.backlogBytes(this.account),
      seededBytes: this.#seeder?.progress(0).acknowledgedBytes ?? 0,
      failure: this.#failure,
    };
  }

  /** Sends nothing more; what is on its way may arrive. The follower keeps its place in the log. */
  stop(): void {
    this.#stop.abort();
    this.#sender?.stop();
  }

  /** Lets the log go that is kept for the other stamp: the range is seeded again. */
  async letGo(): Promise<void> {
    this.#world.logger.warn("the log is not kept any longer for another stamp: the range is seeded again", {
      range: this.#range.rangeId,
      account: this.account,
      backlogBytes: this.#partition.followers.backlogBytes(this.account),
    });
    this.stop();
    await this.#partition.followers.end(this.account);
  }

  async #run(): Promise<void> {
    try {
      const began = await this.#begin();
      if (!began.ok) return this.#failed(began.failure);
      if (began.value.upTo !== undefined) await this.#seed(fromHex(began.value.upTo) ?? accountKeys(this.account).low);
      if (!this.#stop.signal.aborted) await this.#ship();
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      this.#failed(error.failure);
    }
  }

  #failed(failure: Failure): void {
    this.#failure = failure.message;
    this.#world.logger.info("shipping of a range ended", { range: this.#range.rangeId, account: this.account, ...failure });
  }

  /** Takes the follower up where its note says, or begins it anew. */
  async #begin(): Promise<Outcome<Note>> {
    const { followers } = this.#partition;
    const status = followers.status(this.account);
    const note = status === undefined ? undefined : noteOf(status.note);
    if (note?.epoch === this.#role.epoch) return ok(note);
    // Under another role epoch the receiver had another primary: everything is scanned.
    if (status !== undefined) {
      const ended = await followers.end(this.account);
      if (!ended.ok) return ended;
    }
    const first: Note = { epoch: this.#role.epoch, upTo: "" };
    const begun = await followers.begin(this.account, accountKeys(this.account), JSON.stringify(first));
    return begun.ok ? ok(first) : begun;
  }

  async #seed(from: Uint8Array): Promise<void> {
    const keys = accountKeys(this.account);
    const { low, high } = this.#range;
    const own = { low: later(keys.low, low), high: high.length === 0 ? keys.high : earlier(keys.high, high) };
    const seeder = new RangeSeeder(this.#world, this.#partition, this.#link(), {
      epoch: this.#role.epoch,
      keys: own,
      nameOf: shippedNames(this.account),
      bytesPerSecondMax: this.#options.seedBytesPerSecondMax,
      onProgress: (upTo) => this.#noteProgress(upTo),
    });
    this.#seeder = seeder;
    await seeder.run(from, this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    const noted = await this.#note({ epoch: this.#role.epoch });
    if (!noted.ok) throw new FailureError(noted.failure);
  }

  #noteProgress(upTo: Uint8Array): void {
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - this.#notedMs < recordNoteEveryMs) return;
    this.#notedMs = nowMs;
    void this.#note({ epoch: this.#role.epoch, upTo: toHex(upTo) });
  }

  /** Only while there is a follower: `begin` would make one, behind commits that were never shipped. */
  async #note(note: Note): Promise<Outcome<void>> {
    const { followers } = this.#partition;
    if (followers.status(this.account) === undefined) return ok();
    return followers.begin(this.account, accountKeys(this.account), JSON.stringify(note));
  }

  async #ship(): Promise<void> {
    const { followers } = this.#partition;
    if (followers.status(this.account) === undefined) return;
    this.#state = "shipping";
    let lost = false;
    const sender = new RangeSender(this.#world, followers, this.#link(), {
      follower: this.account,
      epoch: this.#role.epoch,
      nameOf: shippedNames(this.account),
      onEnd: (failure) => {
        this.#failed(failure);
        lost = failure.code === "dataLoss";
      },
    });
    this.#sender = sender;
    if (this.#stop.signal.aborted) sender.stop();
    await sender.ended;
    // The log has lost a commit: everything is scanned.
    if (lost) await followers.end(this.account);
  }

  #link(): GeoLink {
    const { peer = "", peerDoors: doors = [] } = this.#role;
    const table = this.#range.table as ShippedTable;
    return new GeoLink({
      account: this.account,
      table,
      peer,
      doors,
      transportTo: this.#options.transportTo,
      onAnswer: (answer) => this.#heard(answer),
    });
  }

  #heard(answer: Outcome<unknown>): void {
    this.#failure = answer.ok ? "" : answer.failure.message;
  }
}

const later = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) < 0 ? b : a);
const earlier = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) < 0 ? a : b);

/** Undefined if the text is no note. */
function noteOf(text: string): Note | undefined {
  try {
    const { epoch, upTo } = JSON.parse(text) as Partial<Note>;
    return typeof epoch === "number" && (upTo === undefined || typeof upTo === "string") ? { epoch, upTo } : undefined;
  } catch {
    return undefined;
  }
}
