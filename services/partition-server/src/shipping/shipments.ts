/**
 * Rows from another stamp, at the range that has their keys: conversion of the messages, and the checks that the range is here and has the
 * keys. What is applied, and in which order, is decided by `applyShipped` and `applySeed` of @stamp/range-partition.
 *
 * Invariants:
 * - A row is applied only if its key is of its PartitionName, if the account's primary can have shipped it (word-of-primary.ts), and if it is
 *   admitted (data/admission.ts).
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { compareBytes, type Failed, neededLevels, type Outcome, ok, refused } from "@stamp/base";
import { type AccountRole, compareVersions, type RowVersion } from "@stamp/geo";
import { accountKeys, decodeKey, encodeKey, hasBytes, isShippedTable, type MayWrite, partitionStart } from "@stamp/objects";
import { holdsKey } from "@stamp/partition-map";
import type { CallContext, World } from "@stamp/ports";
import { type AdmitsRows, applySeed, applyShipped, type RangePartition, type Row, type RowWrite } from "@stamp/range-partition";
import {
  type ApplyScannedRequest,
  type ApplyShippedRequest,
  type DataHandle as DataHandleMessage,
  type EndRemovalRequest,
  type FenceShippedRequest,
  fromWire,
  type ScannedPart,
  type ShippedRow,
  type ShippedVersionSchema,
  toWire,
} from "@stamp/wire";
import type { Holdings, ServingRange } from "../ranges/holdings.ts";
import { admittedRows, keysAdmitted } from "./data/admission.ts";
import { type DataHandle, type HandleKey, Vouchers } from "./data/data-handles.ts";
import { rowBytesOf, type ShippingTotals } from "./shipping-figures.ts";
import { notOfPrimary, type ShippedWord } from "./word-of-primary.ts";

const bad = (message: string) => refused("invalidArgument", "badRequest", message);
const elsewhere = (rangeId: string) =>
  refused("failedPrecondition", "wrongPartition", `${rangeId} does not hold all keys of what was shipped`);

/** Version that made a commit, or a part, old; absent: nothing was left out. */
interface Held {
  readonly held?: MessageInitShape<typeof ShippedVersionSchema>;
}

class HighestHeld {
  #version: RowVersion | undefined;

  readonly note = (held: RowVersion): void => {
    if (this.#version === undefined || compareVersions(held, this.#version) > 0) this.#version = held;
  };

  get onWire(): Held {
    if (this.#version === undefined) return {};
    const { epoch, lineage = 0, number } = this.#version;
    return { held: { epoch: toWire(epoch), lineage: toWire(lineage), sequence: toWire(number) } };
  }
}

export class Shipments {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #totals: ShippingTotals;
  /** Vouches for bytes that are written here. */
  readonly handles: HandleKey;
  readonly #mayWrite: MayWrite;
  /** Role of an account at this stamp, as the partition manager said last; undefined: this server has heard none. */
  readonly #roleOf: (account: string) => AccountRole | undefined;

  constructor(
    world: World,
    holdings: Holdings,
    totals: ShippingTotals,
    handles: HandleKey,
    { mayWrite, roleOf }: { readonly mayWrite: MayWrite; readonly roleOf: (account: string) => AccountRole | undefined },
  ) {
    this.#world = world;
    this.#holdings = holdings;
    this.#totals = totals;
    this.handles = handles;
    this.#mayWrite = mayWrite;
    this.#roleOf = roleOf;
  }

  async applyShipped(
    { rangeId, rangeVersion, ...given }: ApplyShippedRequest,
    context: CallContext,
  ): Promise<Outcome<{ applied: number } & Held>> {
    const shipment = given.placed ?? given.shipment;
    if (shipment === undefined) return bad("a shipment without rows");
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held: serving, partition } = found.value;
    const { name } = shipment;
    if (!holdsKey(serving.range, name)) return elsewhere(rangeId);
    const restored = restoredSince(partition, shipment.copyLineage);
    if (restored !== undefined) return restored;
    const keys = keysAdmitted(
      name,
      shipment.commits.flatMap(({ rows }) => rows.map(({ key }) => key)),
    );
    if (!keys.ok) return keys;
    const commits = shipment.commits.map(({ sequence, lastTicket, rows }) => ({
      sequence: fromWire(sequence),
      lastTicket: fromWire(lastTicket),
      writes: rows.map(writeOf),
    }));
    const said = { ...wordOf(shipment), low: name, sequences: commits.map(({ sequence }) => sequence) };
    const options = this.#options(serving, partition, said, shipment.handles, context);
    if (!options.ok) return options;
    const held = new HighestHeld();
    const applied = await applyShipped(
      this.#world,
      partition,
      { ...wordOf(shipment), name, commits },
      { ...options.value, onHeld: held.note },
    );
    if (!applied.ok) return applied;
    this.#totals.appliedCommits += applied.value;
    this.#totals.skippedCommits += commits.length - applied.value;
    if (applied.value > 0) for (const { rows } of shipment.commits.slice(-applied.value)) this.#totals.appliedRowBytes += rowBytesOf(rows);
    return ok({ applied: applied.value, ...held.onWire });
  }

  async applyScanned({ rangeId, rangeVersion, ...given }: ApplyScannedRequest, context: CallContext): Promise<Outcome<Held>> {
    const part = given.placed ?? given.part;
    if (part === undefined) return bad("a part of a scan without rows");
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held: serving, partition } = found.value;
    const { low, high } = serving.range;
    if (compareBytes(part.lowKey, low) < 0 || (high.length > 0 && compareBytes(part.highKey, high) > 0)) return elsewhere(rangeId);
    const rows = rowsOf(part);
    if (rows === undefined) return bad("a deletion in a part of a scan");
    const { lastTicket, lowKey, highKey, pieceOf, lastPiece } = part;
    const sequence = fromWire(part.sequence);
    const keys = partKeysAdmitted(pieceOf, rows);
    if (!keys.ok) return keys;
    const said = { ...wordOf(part), low: lowKey, high: highKey, sequences: [sequence] };
    const options = this.#options(serving, partition, said, part.handles, context);
    if (!options.ok) return options;
    const seeded = {
      ...wordOf(part),
      sequence,
      lastTicket: fromWire(lastTicket),
      low: lowKey,
      high: highKey,
      rows,
      piece: pieceOf.length === 0 ? undefined : { name: pieceOf, isLast: lastPiece },
    };
    const held = new HighestHeld();
    const applied = await applySeed(this.#world, partition, seeded, { nameOf: partitionStart, ...options.value, onHeld: held.note });
    if (!applied.ok) return applied;
    this.#totals.appliedRowBytes += rowBytesOf(part.rows);
    return ok(held.onWire);
  }

  async fence({ rangeId, rangeVersion, account, epoch }: FenceShippedRequest): Promise<Outcome<object>> {
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const fenced = await found.value.partition.fences.raise(accountKeys(account).low, fromWire(epoch));
    if (!fenced.ok) return fenced;
    // The primary before renewed its leases, and this server heard of none of that.
    found.value.held.leases.restart(this.#world.clock.monotonicMs());
    return ok({});
  }

  /** Ends earlier removals of an account that comes back: they delete nothing more in the range. */
  async endRemoval({ rangeId, rangeVersion, account, tenure }: EndRemovalRequest): Promise<Outcome<object>> {
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const ended = await found.value.partition.fences.raiseTenure(accountKeys(account).low, fromWire(tenure));
    return ended.ok ? ok({}) : ended;
  }

  #found(rangeId: string, rangeVersion: number): Outcome<{ readonly held: ServingRange; readonly partition: RangePartition }> {
    const held = this.#holdings.serving(rangeId, rangeVersion);
    if (!held.ok) return held;
    const partition = held.value.engine.partition;
    return partition === undefined
      ? refused("unimplemented", "unknownMethod", `${rangeId} takes nothing from other stamps`)
      : ok({ held: held.value, partition });
  }

  #options(
    { range }: ServingRange,
    partition: RangePartition,
    said: Omit<ShippedWord, "account" | "table" | "mayBeOlder">,
    sent: readonly DataHandleMessage[],
    { deadlineMs }: CallContext,
  ) {
    const { rules, clock } = this.#world;
    if (!isShippedTable(range.table)) return bad(`rows of table ${range.table} are not shipped`);
    // Below the level, the front-end or the sender may be of a release that knows no handles.
    const isVouched = this.#mayWrite(neededLevels.vouchedShipments);
    if (isVouched === undefined) return refused("unavailable", "notReady", "the feature level of this stamp is not known yet");
    const vouchers = isVouched && rules.on("geoPlacesVouched") ? new Vouchers(this.handles, sent.map(handleOf)) : undefined;
    const isChecked = hasBytes(range.table) && rules.on("geoPlacesChecked");
    const about = { table: range.table, isChecked, vouchers };
    const admits: AdmitsRows = (rows, stored) => admittedRows(this.#world, partition, rows, stored, about);
    const account = decodeKey(said.low, 1);
    const [[name] = []] = account.ok ? account.value : [];
    if (!account.ok || typeof name !== "string") return bad("keys of no account");
    const refusal = notOfPrimary(this.#world, this.#roleOf(name), { ...said, account: name, table: range.table, mayBeOlder: !isVouched });
    if (refusal !== undefined) return refusal;
    const ticketsOf = isVouched && rules.on("geoTicketsApart") ? encodeKey(account.value) : undefined;
    return ok({ timeoutMs: Math.max(1, deadlineMs - clock.monotonicMs()), admits, ticketsOf });
  }
}

/**
 * Refuses commits for rows that a restore of this stamp's metadata store took back since they were seeded: those between would be missing. Parts of a
 * scan are whole, and taken.
 */
function restoredSince({ lineage }: RangePartition, seededUnder: bigint | undefined): Failed | undefined {
  if (seededUnder === undefined || lineage.store <= fromWire(seededUnder)) return undefined;
  const message = `the metadata store of this stamp was put back (lineage ${lineage.store}) since the rows were seeded: the primary seeds them again`;
  return refused("failedPrecondition", "staleLineage", message);
}

/** Returns role epoch, operation that began the copy, and lineage of the primary's log. */
const wordOf = ({ epoch, paired, lineage }: { readonly epoch: bigint; readonly paired: bigint; readonly lineage: bigint }) => ({
  epoch: fromWire(epoch),
  paired: fromWire(paired),
  lineage: fromWire(lineage),
});

const handleOf = ({ extentId, offsetBytes, lengthBytes, mac }: DataHandleMessage): DataHandle => ({
  place: { extentId: fromWire(extentId), offsetBytes: fromWire(offsetBytes), lengthBytes },
  mac,
});

// Copied: the bytes of a message lie in the buffer of its connection.
const writeOf = ({ key, value }: ShippedRow): RowWrite => (value === undefined ? { kind: "delete", key } : { kind: "put", key, value });

/** Returns undefined if a row has no value. */
function rowsOf({ rows }: ScannedPart): Row[] | undefined {
  const found: Row[] = [];
  for (const { key, value } of rows) {
    if (value === undefined) return undefined;
    found.push([key.slice(), value.slice()]);
  }
  return found;
}

/** Returns the keys that a part may have: those of several PartitionNames, or of one for a piece. */
function partKeysAdmitted(pieceOf: Uint8Array, rows: readonly Row[]): Outcome<void> {
  if (pieceOf.length > 0)
    return keysAdmitted(
      pieceOf,
      rows.map(([key]) => key),
    );
  for (const [key] of rows) {
    const own = keysAdmitted(partitionStart(key) ?? key, [key]);
    if (!own.ok) return own;
  }
  return ok();
}
