/**
 * Sends what one range has of one account to the account's other stamp (docs/design/geo-shipping.md "Shipping"): all rows first, then every commit.
 *
 *     follower begun ──► RangeSeeder ──► RangeSender ──► the range moves, the account's role changes, or the log is lost
 *
 * Its state is the follower's: cursor and note are in the range's metadata stream, so that a new owner goes on.
 */
import { type Failure, FailureError, fromHex, type Outcome, ok, toHex } from "@stamp/base";
import { type AccountRole, RangeSeeding, RangeSyncTime, type RowVersion, ShippingRate, seededSoFar } from "@stamp/geo";
import { accountKeys, hasBytes, type ShippedTable, shippedNames } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { sleep, type World } from "@stamp/ports";
import { type RangePartition, RangeSeeder, RangeSender, type SeedLink, type ShippingLink } from "@stamp/range-partition";
import { aheadOf } from "./copy-ahead.ts";
import { BlobLink, dataBytesOf } from "./data/blob-link.ts";
import type { ByteGates } from "./data/byte-gate.ts";
import type { PlacesBudget } from "./data/copied-places.ts";
import type { FreshBytes } from "./data/fresh-bytes.ts";
import { GeoLink, type TransportToStamp } from "./geo-link.ts";
import { type Note, noteOf } from "./note.ts";
import { acceptedBytes, estimatedBytes, keysWithin, later, type RangeWork, type ShippingFacts } from "./range-work.ts";
import type { ShippingTotals } from "./shipping-figures.ts";

export interface ShippingOptions {
  readonly transportTo: TransportToStamp;
  /** Returns the feature level of this stamp. */
  readonly level: () => number;
  /** Bound of what the scans of one range send in a second, in bytes. */
  readonly seedBytesPerSecondMax: number;
  /** Bound of the rows of commits of one range that are sent in a second, and of the bytes of their blobs, in bytes each; undefined: none. */
  readonly shipBytesPerSecondMax?: number | undefined;
  /** Gates that bound the blob bytes which this server holds while they are copied. */
  readonly gates: ByteGates;
  /** Bounds the places of bytes that this server remembers. */
  readonly places: PlacesBudget;
  /** Bytes that this server has just appended. */
  readonly fresh?: FreshBytes | undefined;
  readonly totals: ShippingTotals;
}

const recordNoteEveryMs = 5_000;
const completePollMs = 500;

export class RangeShipping implements RangeWork {
  readonly account: string;
  readonly #world: World;
  readonly #range: Range;
  readonly #partition: RangePartition;
  readonly role: AccountRole;
  readonly #options: ShippingOptions;
  readonly #stop = new AbortController();
  readonly #link: ShippingLink & SeedLink;
  /** Link for bytes of blobs; undefined: the rows of the range refer to none. */
  #blobs: BlobLink | undefined;
  #seeder: RangeSeeder | undefined;
  /** Knows where the log was when all rows were seeded. */
  readonly #seeding: RangeSeeding;
  readonly #syncTime = new RangeSyncTime();
  readonly #rate = new ShippingRate();
  /** Size of what the range had committed before, in bytes. */
  readonly #bytesBefore: number;
  readonly #beganMs: number;
  /** Every row before this key is seeded, here or by an earlier owner. */
  #seededTo: Uint8Array;
  #sender: RangeSender | undefined;
  #state: ShippingFacts["state"] = "seeding";
  #failure = "";
  #notedMs: number;
  /** Lineage of the other stamp under which the rows are seeded. */
  #copyLineage: number;
  /** True if the copy may lack rows that were acknowledged: the other stamp's metadata store was put back since, or has rows that were never shipped. */
  #isDoubtful = false;
  /** Lineage above which the log begins a new one when nothing is sent any more; undefined: it goes on in its own. */
  #above: number | undefined;
  /** Resolves when nothing is sent any more. */
  readonly ended: Promise<void>;

  /** `copyLineage`: lineage that the other stamp told last; 0: not known. */
  constructor(
    world: World,
    range: Range,
    partition: RangePartition,
    account: string,
    role: AccountRole,
    options: ShippingOptions,
    copyLineage = 0,
  ) {
    this.#copyLineage = copyLineage;
    this.#world = world;
    this.#range = range;
    this.#partition = partition;
    this.account = account;
    this.role = role;
    this.#options = options;
    this.#beganMs = world.clock.monotonicMs();
    this.#notedMs = this.#beganMs;
    this.#seeding = new RangeSeeding(world.rules);
    this.#bytesBefore = acceptedBytes(partition);
    this.#link = this.#makeLink();
    this.#seededTo = this.#own.low;
    this.ended = this.#run().finally(() => {
      this.#state = "ended";
      this.#blobs?.end();
    });
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

  get facts(): ShippingFacts {
    const { followers, stats } = this.#partition;
    const { acknowledged = 0, pending = 0 } = followers.status(this.account) ?? {};
    const bytes = acceptedBytes(this.#partition) - this.#bytesBefore;
    const { sequence: position, overBeforeMs: timeMs, overBeforeMonotonicMs: monotonicMs } = stats;
    this.#syncTime.noted({ position, timeMs, monotonicMs, bytes });
    const isShipping = this.#state === "shipping" && followers.status(this.account) !== undefined;
    const lastSyncMs = isShipping ? this.#syncTime.at(acknowledged) : undefined;
    const backlogBytes = followers.backlogBytes(this.account);
    const pendingBytes = this.#syncTime.pendingBytes(bytes);
    const shipped = { shippedCommits: acknowledged, shippedBytes: bytes - pendingBytes };
    const written = { writtenCommits: acknowledged + pending, writtenBytes: bytes };
    if (isShipping) this.#rate.noted({ ...written, ...shipped }, this.#world.clock.monotonicMs());
    return {
      ...this.#seedingFacts(),
      complete: isShipping && !this.#isDoubtful && this.#seeding.ended(acknowledged),
      lastSyncMs: this.#isDoubtful ? undefined : lastSyncMs,
      lineage: this.#partition.lineage.log,
      copyLineage: this.#copyLineage,
      passedMonotonicMs: isShipping ? this.#syncTime.passedMonotonicMs : undefined,
      pendingBytes: pending === 0 ? 0 : Math.max(backlogBytes, pendingBytes),
      rates: isShipping ? this.#rate.perSecond : undefined,
      account: this.account,
      rangeId: this.#range.rangeId,
      table: this.#range.table,
      epoch: this.role.epoch,
      state: this.#isDoubtful ? "seeding" : this.#state,
      pending,
      backlogBytes,
      sentWhole: this.#blobs?.sentWhole ?? 0,
      failure: this.#failure,
    };
  }

  get #own(): { readonly low: Uint8Array; readonly high: Uint8Array } {
    return keysWithin(this.#range, this.account);
  }

  #seedingFacts(): Pick<ShippingFacts, "seededBytes" | "seedBytes" | "seedBytesPerSecond"> {
    const { low, high } = this.#own;
    const seedBytes = estimatedBytes(this.#partition, low, high);
    if (this.#state !== "seeding") return { seedBytes, seededBytes: seedBytes, seedBytesPerSecond: 0 };
    const elapsedMs = Math.max(1, this.#world.clock.monotonicMs() - this.#beganMs);
    const sentBytes = (this.#seeder?.progress(0).acknowledgedBytes ?? 0) + (this.#blobs?.copiedBytes ?? 0);
    const seededBytes = seededSoFar(estimatedBytes(this.#partition, low, this.#seededTo), sentBytes, seedBytes);
    return { seedBytes, seededBytes, seedBytesPerSecond: (1_000 * sentBytes) / elapsedMs };
  }

  /** Sends nothing more; what is on its way may arrive. The follower keeps its place in the log. */
  stop(): void {
    this.#stop.abort();
    this.#sender?.stop();
  }

  /** Releases the log that is kept for the other stamp: the range is seeded again. */
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
      if (this.#isDoubtful) await this.#beginAnew();
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      this.#failed(error.failure);
    }
  }

  #failed(failure: Failure): void {
    this.#failure = failure.message;
    this.#world.logger.info("shipping of a range ended", { range: this.#range.rangeId, account: this.account, ...failure });
  }

  /** Continues the follower as its note says, or begins it anew. */
  async #begin(): Promise<Outcome<Note>> {
    const { followers } = this.#partition;
    const status = followers.status(this.account);
    const note = status === undefined ? undefined : noteOf(status.note);
    const isSame = note?.epoch === this.role.epoch && note.paired === this.role.paired;
    if (note !== undefined && isSame && (note.copyLineage ?? 0) >= this.#copyLineage) {
      this.#copyLineage = note.copyLineage ?? 0;
      if (note.upTo === undefined) this.#seeding.scanned(note.end ?? followers.lastSequence);
      return ok(note);
    }
    // Under another role epoch the receiver had another primary, and another copy is empty, or was put back since: everything is scanned.
    if (status !== undefined) {
      const ended = await followers.end(this.account);
      if (!ended.ok) return ended;
    }
    const first: Note = { ...this.#copy, upTo: "" };
    const begun = await followers.begin(this.account, accountKeys(this.account), JSON.stringify(first));
    return begun.ok ? ok(first) : begun;
  }

  get #copy(): Pick<Note, "epoch" | "paired" | "copyLineage"> {
    const { epoch, paired } = this.role;
    return { epoch, paired, ...(this.#copyLineage > 0 && { copyLineage: this.#copyLineage }) };
  }

  /** Has the range seeded again: after its metadata store was put back, the other stamp may lack rows that it acknowledged. */
  heardCopyLineage(lineage: number): void {
    if (lineage <= this.#copyLineage || this.#isDoubtful || !this.#world.rules.on("logsHaveLineages")) return;
    const { rangeId } = this.#range;
    this.#world.logger.warn("the metadata store of the other stamp was put back: a range is seeded again", {
      rangeId,
      account: this.account,
      lineage,
    });
    this.#isDoubtful = true;
    this.stop();
  }

  /** Refuses a version of the copy that the range's log never had: the range is seeded again under a new lineage. */
  #notAhead(held: RowVersion): Outcome<void> {
    const ahead = aheadOf(this.#world, this.#partition, held, { epoch: this.role.epoch, level: this.#options.level() });
    if (ahead === undefined) return ok();
    const { account } = this;
    if (!this.#isDoubtful)
      this.#world.logger.error("another stamp has rows that this primary never shipped", { account, ...ahead.failure.failure });
    this.#isDoubtful = true;
    this.#above = ahead.above;
    if (ahead.above !== undefined) this.stop();
    return ahead.failure;
  }

  /** Lets the follower go first: with the new lineage alone, a later owner would count as shipped what the copy had left out. */
  async #beginAnew(): Promise<void> {
    const ended = await this.#partition.followers.end(this.account);
    const begun = ended.ok && this.#above !== undefined ? await this.#partition.beginLineage(this.#above) : ended;
    if (!begun.ok) this.#failed(begun.failure);
  }

  async #seed(from: Uint8Array): Promise<void> {
    this.#seededTo = later(this.#seededTo, from);
    const seeder = new RangeSeeder(this.#world, this.#partition, this.#link, {
      epoch: this.role.epoch,
      keys: this.#own,
      nameOf: shippedNames(this.account),
      ...(hasBytes(this.#range.table) && { dataBytesOf }),
      bytesPerSecondMax: this.#options.seedBytesPerSecondMax,
      onProgress: (upTo) => this.#noteProgress(upTo),
    });
    this.#seeder = seeder;
    await seeder.run(from, this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    const end = this.#partition.followers.lastSequence;
    const noted = await this.#note({ ...this.#copy, end });
    if (!noted.ok) throw new FailureError(noted.failure);
    this.#seeding.scanned(end);
  }

  #noteProgress(upTo: Uint8Array): void {
    this.#seededTo = upTo;
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - this.#notedMs < recordNoteEveryMs) return;
    this.#notedMs = nowMs;
    void this.#note({ ...this.#copy, upTo: toHex(upTo) });
  }

  /** Writes the follower's note, only if there is a follower: `begin` would make one behind commits that were never shipped. */
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
    const sender = new RangeSender(this.#world, followers, this.#link, {
      follower: this.account,
      epoch: this.role.epoch,
      nameOf: shippedNames(this.account),
      leadOf: (name) => this.#partition.fences.lead(name),
      bytesPerSecondMax: this.#options.shipBytesPerSecondMax,
      onEnd: (failure) => {
        this.#failed(failure);
        lost = failure.code === "dataLoss";
      },
    });
    this.#sender = sender;
    if (this.#stop.signal.aborted) sender.stop();
    const sent = new AbortController();
    await Promise.all([sender.ended.finally(() => sent.abort()), this.#noteComplete(sent.signal)]);
    // The log has lost a commit: everything is scanned.
    if (lost) await followers.end(this.account);
  }

  /**
   * Takes the end out of the note when the copy is complete: the notes of two ranges are the same then, and they may be merged. Ends with
   * `sent`, which the end of the sender aborts: the copy does not become complete without a sender.
   */
  async #noteComplete(sent: AbortSignal): Promise<void> {
    const { followers } = this.#partition;
    for (let status = followers.status(this.account); status !== undefined; status = followers.status(this.account)) {
      if (sent.aborted || this.#stop.signal.aborted || followers.isOver) return;
      if (noteOf(status.note)?.end === undefined) return;
      if (this.#seeding.ended(status.acknowledged)) await this.#note(this.#copy);
      else await sleep(this.#world.clock, completePollMs, sent);
    }
  }

  #makeLink(): ShippingLink & SeedLink {
    const { peer = "", peerDoors: doors = [], epoch, paired } = this.role;
    const table = this.#range.table as ShippedTable;
    const link = new GeoLink({
      account: this.account,
      table,
      epoch,
      paired,
      peer,
      doors,
      transportTo: this.#options.transportTo,
      level: this.#options.level,
      lineage: this.#partition.lineage.log,
      copyLineage: () => this.#copyLineage,
      notAhead: (held) => this.#notAhead(held),
      totals: this.#options.totals,
      onAnswer: (answer) => this.#heard(answer),
    });
    if (!hasBytes(table)) return link;
    const { gates, places, fresh, seedBytesPerSecondMax, shipBytesPerSecondMax } = this.#options;
    const gate = gates.to(peer);
    const nameOf = shippedNames(this.account);
    const bounds = { gate, places, fresh, seedBytesPerSecondMax, shipBytesPerSecondMax };
    this.#blobs = new BlobLink(this.#world, this.#partition, link, { ...bounds, epoch, nameOf });
    return this.#blobs;
  }

  #heard(answer: Outcome<unknown>): void {
    this.#failure = answer.ok ? "" : answer.failure.message;
  }
}
