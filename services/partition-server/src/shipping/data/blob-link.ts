/**
 * The way of rows of blobs to another stamp: their bytes go first, then the rows with the places that the bytes have there.
 *
 *     commits ──► DataCopier ──► rows with places of the other stamp ──► GeoLink.ship
 *         └── bytes are gone here ──► the whole PartitionName, as it is now, by RangeSeeder
 *
 * Invariant: a commit counts as delivered if the other stamp has applied it, or a later state of its PartitionName. Bytes of a logged commit
 * may have been collected: the blob was overwritten or deleted since, so that the later state has no need of them.
 */
import { FailureError, type Outcome, ok, prefixEnd, present, refused, toHex } from "@stamp/base";
import { placesOfRow } from "@stamp/objects";
import type { World } from "@stamp/ports";
import {
  type RangePartition,
  RangeSeeder,
  type Row,
  type SeedLink,
  type SeedPart,
  type Shipment,
  type ShippingLink,
} from "@stamp/range-partition";
import type { ByteGate } from "./byte-gate.ts";
import type { PlacesBudget } from "./copied-places.ts";
import { type CopiedBatch, DataCopier, type DataLink, rowAtPeer } from "./data-copier.ts";
import type { DataHandle } from "./data-handles.ts";
import type { FreshBytes } from "./fresh-bytes.ts";
import type { PinHold } from "./pin-hold.ts";

type CallLimits = { readonly timeoutMs: number; readonly signal: AbortSignal };

/** Rows of one PartitionName. */
interface Named {
  readonly name: Uint8Array;
  readonly rows: readonly Row[];
}

/** Rows with places of the other stamp, the extents of their bytes, and the handles that vouch for them. */
interface SeededRows extends Pick<CopiedBatch, "extentIds" | "handles"> {
  readonly rows: readonly Row[];
}

/** Handles that are sent with rows that have places of the other stamp. */
export interface HandlesBesideRows {
  readonly handles?: readonly DataHandle[];
}

/** Calls that send rows with places of the other stamp. */
export interface RowsLink {
  ship(shipment: Shipment & HandlesBesideRows, limits: CallLimits): Promise<Outcome<unknown>>;
  seed(part: SeedPart & HandlesBesideRows, limits: CallLimits): Promise<Outcome<unknown>>;
}

/**
 * Handles that go with rows, about 33 bytes each: a message has room for 16 MiB. Only a commit of a block list with 200,000 places that were shipped
 * one by one has more, and the staged blocks that it commits have these bytes at the other stamp.
 */
const handlesMax = 200_000;

/** Refusals that are remembered: more than batches are on their way at once. */
const refusedMax = 1_000;

/** PartitionNames of a part whose bytes are copied at the same time. */
const namesAtOnce = 16;

export interface BlobLinkOptions {
  readonly gate: ByteGate;
  /** Bounds the places that all links of a server remember. */
  readonly places: PlacesBudget;
  /** Bytes that need not be read from extents. */
  readonly fresh?: FreshBytes | undefined;
  /** Role epoch of the account. */
  readonly epoch: number;
  /** Returns the bytes that begin all keys of the row's PartitionName; undefined: the row is not shipped. */
  readonly nameOf: (key: Uint8Array) => Uint8Array | undefined;
  /** Bound of what a scan sends in a second, in bytes. */
  readonly seedBytesPerSecondMax: number;
  /** Bound of the bytes of commits that are sent in a second; undefined: none. */
  readonly shipBytesPerSecondMax?: number | undefined;
}

export class BlobLink implements ShippingLink, SeedLink {
  readonly #world: World;
  readonly #partition: RangePartition;
  readonly #rows: RowsLink;
  readonly #options: BlobLinkOptions;
  readonly #copier: DataCopier;
  /** PartitionNames whose rows were refused last for their places, in hexadecimal. */
  readonly #refused = new Set<string>();
  /** PartitionNames that were sent whole because bytes of a commit were gone. */
  sentWhole = 0;

  constructor(world: World, partition: RangePartition, link: RowsLink & DataLink, options: BlobLinkOptions) {
    this.#world = world;
    this.#partition = partition;
    this.#rows = link;
    this.#options = options;
    this.#copier = new DataCopier(world, partition.data, link, { gate: options.gate, places: options.places, fresh: options.fresh });
  }

  /** Bytes that were written at the other stamp. */
  get copiedBytes(): number {
    return this.#copier.copiedBytes;
  }

  /** Lets go what is remembered: nothing is sent any more. */
  end(): void {
    this.#copier.end();
  }

  ship(shipment: Shipment, limits: CallLimits): Promise<Outcome<unknown>> {
    // Most rows refer to no bytes: small blobs have their content in the row.
    if (!refersToBytes(shipment)) return this.#rows.ship(shipment, limits);
    return this.#holding((hold) => this.#ship(shipment, hold, limits));
  }

  seed(part: SeedPart, limits: CallLimits): Promise<Outcome<unknown>> {
    return this.#holding((hold) => this.#seed(part, hold, limits));
  }

  /** Runs work; the other stamp keeps the copied bytes until it ends. */
  async #holding<T>(work: (hold: PinHold) => Promise<T>): Promise<T> {
    const hold = this.#copier.hold();
    try {
      return await work(hold);
    } finally {
      await hold.end();
    }
  }

  async #ship(shipment: Shipment, hold: PinHold, limits: CallLimits): Promise<Outcome<unknown>> {
    const values = shipment.commits.flatMap(({ writes }) => writes.flatMap((write) => (write.kind === "put" ? [write.value] : [])));
    const copied = await this.#copier.copy(shipment.name, values, {
      signal: limits.signal,
      hold,
      bytesPerSecondMax: this.#options.shipBytesPerSecondMax,
    });
    if ("gone" in copied) return this.#sendWhole(shipment.name, limits.signal);
    if (!copied.ok) return copied;
    const batch = copied.value;
    const commits = shipment.commits.map((commit) => ({
      ...commit,
      writes: commit.writes.map((write) => (write.kind === "put" ? { ...write, value: rowAtPeer(write.value, batch) } : write)),
    }));
    return this.#sent(
      shipment.name,
      batch.extentIds,
      hold,
      await this.#rows.ship({ ...shipment, commits, handles: sentHandles(batch.handles) }, limits),
    );
  }

  async #seed(part: SeedPart, hold: PinHold, limits: CallLimits): Promise<Outcome<unknown>> {
    const groups = this.#byName(part);
    const extentIds = new Set<number>();
    const handles = new Set<DataHandle>();
    const rows: Row[] = [];
    for (let at = 0; at < groups.length; at += namesAtOnce) {
      const some = groups.slice(at, at + namesAtOnce);
      const copied = await Promise.all(some.map((group) => this.#seeded(group, part.piece !== undefined, hold, limits.signal)));
      for (const one of copied) {
        if (!one.ok) return one;
        rows.push(...one.value.rows);
        for (const extentId of one.value.extentIds) extentIds.add(extentId);
        for (const handle of one.value.handles) handles.add(handle);
      }
    }
    if (hold.failure !== undefined) return hold.failure;
    const seeded = this.#sent(part.low, extentIds, hold, await this.#rows.seed({ ...part, rows, handles: sentHandles(handles) }, limits));
    if (seeded.ok && part.piece?.isLast === true) this.#copier.endPieces(part.piece.name);
    return seeded;
  }

  #byName({ rows, piece }: SeedPart): readonly Named[] {
    if (piece !== undefined) return [{ name: piece.name, rows }];
    const groups = new Map<string, { readonly name: Uint8Array; readonly rows: Row[] }>();
    for (const row of rows) {
      const name = present(this.#options.nameOf(row[0]), "the PartitionName of a row");
      const id = toHex(name);
      const group = groups.get(id) ?? { name, rows: [] };
      groups.set(id, group);
      group.rows.push(row);
    }
    return [...groups.values()];
  }

  async #seeded({ name, rows }: Named, isPiece: boolean, hold: PinHold, signal: AbortSignal): Promise<Outcome<SeededRows>> {
    const bytesPerSecondMax = this.#options.seedBytesPerSecondMax;
    const values = rows.map(([, value]) => value);
    const copied = await this.#copier.copy(name, values, { signal, hold, isPiece, bytesPerSecondMax });
    if ("gone" in copied) return refused("aborted", "conflict", `bytes in extent ${copied.gone.extentId} are gone: the rows are read anew`);
    if (!copied.ok) return copied;
    const { value: batch } = copied;
    const { extentIds, handles } = batch;
    return ok({ rows: rows.map(([key, value]) => [key, rowAtPeer(value, batch)] as const), extentIds, handles });
  }

  /** Notes an answer; `from`: key at which the rows begin. */
  #sent(from: Uint8Array, extentIds: ReadonlySet<number>, { doubtful }: PinHold, answer: Outcome<unknown>): Outcome<unknown> {
    const id = toHex(from);
    if (answer.ok || answer.failure.reason !== "badPlace") {
      this.#refused.delete(id);
      return answer;
    }
    // If the bytes are not doubtful, or were sent again and are refused all the same, no handle of theirs is good any more.
    this.#copier.forget(doubtful.size > 0 && !this.#refused.has(id) ? doubtful : extentIds);
    if (this.#refused.size >= refusedMax) this.#refused.clear();
    this.#refused.add(id);
    return answer;
  }

  /** Sends the present rows of a PartitionName, which include all its commits read from the log. */
  async #sendWhole(name: Uint8Array, signal: AbortSignal): Promise<Outcome<unknown>> {
    const { epoch, nameOf, seedBytesPerSecondMax } = this.#options;
    const keys = { low: name, high: present(prefixEnd(name), "the end of a PartitionName") };
    const options = { epoch, keys, nameOf, dataBytesOf, bytesPerSecondMax: seedBytesPerSecondMax };
    const seeder = new RangeSeeder(this.#world, this.#partition, this, options);
    this.sentWhole++;
    try {
      await seeder.run(name, signal);
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      return { ok: false, failure: error.failure };
    }
    return signal.aborted ? refused("cancelled", "cancelled", "nothing is shipped any more") : ok();
  }
}

const sentHandles = (handles: ReadonlySet<DataHandle>): readonly DataHandle[] => [...handles].slice(-handlesMax);

/** True if a row of the shipment refers to bytes, or is unreadable, which fails when it is copied. */
const refersToBytes = ({ commits }: Shipment): boolean =>
  commits.some(({ writes }) =>
    writes.some((write) => {
      const places = write.kind === "put" ? placesOfRow(write.value) : ok([]);
      return !places.ok || places.value.length > 0;
    }),
  );

/** Returns the size of the bytes that a row refers to. A row that can't be read fails when it is copied. */
export function dataBytesOf(row: Uint8Array): number {
  const places = placesOfRow(row);
  return places.ok ? places.value.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0) : 0;
}
