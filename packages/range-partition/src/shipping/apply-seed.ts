/**
 * Applies at the receiver a part of a scan: all rows that the primary had between two keys at one moment (docs/design/geo-shipping.md "Seeding").
 * Rows of this stamp between the keys that the primary did not have are deleted.
 *
 *     whole PartitionNames ──► replaced, each with its marker: one transaction
 *     piece of a large one ──► replaced up to its end, behind the piece before: seed mark ──► last piece: marker
 *
 * Invariants:
 * - A PartitionName is replaced only by a later state of it: the version of its marker, and of its seed mark, is below that of the part
 *   (rule `geoRowVersionsRise`).
 * - A piece is applied only behind all pieces before it, which were of the same moment.
 * - While a PartitionName has a seed mark, no commit is applied to it (rule `geoSeedingHoldsCommits`, apply-shipped.ts).
 */
import {
  compareBytes,
  equalBytes,
  type Failed,
  FailureError,
  type Outcome,
  ok,
  prefixEnd,
  present,
  refused,
  startsWith,
  toHex,
} from "@stamp/base";
import { appliesRow, compareVersions, type RowVersion } from "@stamp/geo";
import type { World } from "@stamp/ports";
import type { Row, ScanRange } from "../scan-range.ts";
import type { RowScan } from "../tables.ts";
import type { DecidedWrites, RowWrite, Transaction } from "../types.ts";
import { type ApplyOptions, assertAdmitted, ledAbove, type OnHeld, type ShippedRange } from "./apply-shipped.ts";
import { decodeMarker, encodeMarker, isMarkerKey, markerKey, versionToDetails } from "./marker.ts";
import { decodeSeedMark, encodeSeedMark, type SeedMark, seedMarkKey } from "./seed-mark.ts";

/** All rows of the primary between two keys, at one moment. */
export interface SeedPart {
  /** Role epoch of the primary that seeds. */
  readonly epoch: number;
  /** Number of the operation that began the copy; undefined or 0: not known. */
  readonly paired?: number;
  /** Lineage of the primary's log; undefined or 0: it has lost nothing. */
  readonly lineage?: number;
  /** Sequence of the primary's range at that moment. */
  readonly sequence: number;
  /** Every ticket that the rows were written with is at or below this one. */
  readonly lastTicket: number;
  /** First key, inclusive: the begin of a PartitionName, or a key between two; for a piece the end of the one before. */
  readonly low: Uint8Array;
  /** Key at which the part ends, exclusive; of the same form as `low`. */
  readonly high: Uint8Array;
  /** Rows in the order of their keys. */
  readonly rows: readonly Row[];
  /** The part is a piece of one PartitionName. The first piece begins at `name`. */
  readonly piece?: { readonly name: Uint8Array; readonly isLast: boolean } | undefined;
}

/** The range at the receiver. */
export interface SeededRange extends ShippedRange {
  scan(range: ScanRange): RowScan;
}

export interface SeedOptions extends ApplyOptions {
  /** Returns the bytes that begin all keys of the row's PartitionName; undefined: the row belongs to none. */
  readonly nameOf: (key: Uint8Array) => Uint8Array | undefined;
}

/** Stored rows that one transaction looks at to find the PartitionNames between the keys. */
const storedRowsMax = 2_000;
/** Rows that one transaction deletes. */
const deletedMax = 2_000;

/** Result of one transaction. */
interface Step {
  /** False if rows that the primary lacks are left: another transaction deletes more of them. */
  readonly done: boolean;
  readonly refusal?: Failed;
}

const bad = (message: string): Failed => refused("invalidArgument", "badRequest", message);

function malformed({ low, high, rows, piece }: SeedPart, nameOf: SeedOptions["nameOf"]): Failed | undefined {
  if (compareBytes(low, high) >= 0) return bad("a part of a scan without keys");
  let last: Uint8Array | undefined;
  for (const [key] of rows) {
    if (last !== undefined && compareBytes(last, key) >= 0) return bad("rows of a scan are not in key order");
    last = key;
    if (compareBytes(key, low) < 0 || compareBytes(key, high) >= 0 || isMarkerKey(key))
      return bad("a row of a scan lies outside of its part");
    if (piece === undefined ? nameOf(key) === undefined : !startsWith(key, piece.name))
      return bad("a row of a scan lies outside of its PartitionName");
  }
  // The last piece ends with its PartitionName, whatever `high` is. What an earlier one leaves out up to `high` is deleted.
  if (piece !== undefined && (piece.name.length === 0 || !startsWith(low, piece.name) || !(piece.isLast || startsWith(high, piece.name))))
    return bad("a piece lies outside of its PartitionName");
  return undefined;
}

/** Resolves when the part is durable, or was applied before. A part that is older than what is here counts as applied. */
export async function applySeed(world: World, range: SeededRange, part: SeedPart, options: SeedOptions): Promise<Outcome<void>> {
  const refusal = malformed(part, options.nameOf);
  if (refusal !== undefined) return refusal;
  const untilMs = world.clock.monotonicMs() + options.timeoutMs;
  const led = await ledAbove(range, part.lastTicket, options);
  if (!led.ok) return led;
  const leftMs = (): number => Math.max(1, untilMs - world.clock.monotonicMs());
  /** Looks when the transaction is decided: a fence waits for those that were decided before. */
  const fenced = (): DecidedWrites<Step> | undefined => {
    const fence = world.rules.on("geoPromotionFences") ? range.fences.refuses(part.low, part.epoch) : undefined;
    const refusal = fence ?? range.fences.refusesCopy(part.low, part.paired ?? 0);
    return refusal && { writes: [], result: { done: true, refusal } };
  };
  const run = async (
    locks: readonly Uint8Array[],
    step: (transaction: Transaction) => Promise<DecidedWrites<Step>>,
  ): Promise<Outcome<void>> => {
    for (;;) {
      const decide = async (transaction: Transaction): Promise<DecidedWrites<Step>> => {
        const decided = fenced() ?? (await step(transaction));
        await assertAdmitted(transaction, decided.writes, options.admits);
        return decided;
      };
      const ran = await range.transact(locks, decide, { timeoutMs: leftMs() });
      if (!ran.ok) return ran;
      if (ran.value.refusal !== undefined) return ran.value.refusal;
      if (ran.value.done) return ok();
    }
  };
  const { piece } = part;
  // A lead keeps tickets apart: those of the range need not rise.
  const ticketed = options.ticketsOf === undefined ? part : { ...part, lastTicket: 0 };
  if (piece !== undefined) return run([piece.name], (transaction) => applyPiece(world, transaction, ticketed, piece, options.onHeld));
  try {
    for (let from = part.low; compareBytes(from, part.high) < 0; ) {
      const { names, to } = await namesBetween(range, part, from, options.nameOf);
      const own = groupsOf(part.rows, from, to, options.nameOf);
      for (const name of names) if (!own.has(name.key)) own.set(name.key, { name: name.name, rows: [] });
      const groups = [...own.values()].sort((a, b) => compareBytes(a.name, b.name));
      const locks = groups.map(({ name }) => name);
      const applied =
        groups.length === 0 ? ok() : await run(locks, (transaction) => applyWhole(world, transaction, ticketed, groups, options.onHeld));
      if (!applied.ok) return applied;
      from = to;
    }
    return ok();
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

interface Group {
  readonly name: Uint8Array;
  readonly rows: Row[];
}

/** Returns the rows between two keys by PartitionName. */
function groupsOf(rows: readonly Row[], from: Uint8Array, to: Uint8Array, nameOf: SeedOptions["nameOf"]): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    if (compareBytes(row[0], from) < 0 || compareBytes(row[0], to) >= 0) continue;
    const name = present(nameOf(row[0]), "the PartitionName of a row");
    const text = toHex(name);
    const group = groups.get(text) ?? { name, rows: [] };
    groups.set(text, group);
    group.rows.push(row);
  }
  return groups;
}

/** Returns PartitionNames that have rows or a seed mark here from a key on, and the key up to which they are all. */
async function namesBetween(range: SeededRange, { high }: SeedPart, from: Uint8Array, nameOf: SeedOptions["nameOf"]) {
  const names: { readonly key: string; readonly name: Uint8Array }[] = [];
  let count = 0;
  let last: Uint8Array | undefined;
  for await (const [key] of range.scan({ gte: from, lt: high, background: true, hidden: true })) {
    count++;
    if (last !== undefined && startsWith(key, last)) continue;
    if (count > storedRowsMax) return { names, to: present(nameOf(key), "the PartitionName of a stored row") };
    last = nameOf(key);
    if (last !== undefined) names.push({ key: toHex(last), name: last });
  }
  return { names, to: high };
}

interface HeldSeed {
  readonly marker: RowVersion | undefined;
  readonly mark: SeedMark | undefined;
}

async function heldOf(transaction: Transaction, name: Uint8Array): Promise<HeldSeed> {
  const [marker, mark] = [await transaction.get(markerKey(name)), await transaction.get(seedMarkKey(name))];
  return { marker: marker && intact(decodeMarker(marker)), mark: mark && intact(decodeSeedMark(mark)) };
}

function intact<T>(decoded: Outcome<T>): T {
  if (!decoded.ok) throw new FailureError(decoded.failure);
  return decoded.value;
}

async function applyWhole(
  world: World,
  transaction: Transaction,
  part: SeedPart,
  groups: readonly Group[],
  onHeld: OnHeld | undefined,
): Promise<DecidedWrites<Step>> {
  const version = { epoch: part.epoch, lineage: part.lineage, number: part.sequence };
  const writes: RowWrite[] = [];
  for (const { name, rows } of groups) {
    const { marker, mark } = await heldOf(transaction, name);
    const isOld = mark !== undefined && compareVersions(mark.version, version) > 0;
    if (isOld || !appliesRow(version, { held: marker, floor: undefined }, world.rules)) {
      for (const held of [mark?.version, marker]) if (held !== undefined) onHeld?.(held);
      continue;
    }
    const changes = await replaced(transaction, name, present(prefixEnd(name), "the end of a PartitionName"), rows);
    if (!changes.done) return begun(name, { version, upTo: name }, changes.writes);
    // Nothing was here, and nothing is at the primary.
    if (rows.length === 0 && changes.writes.length === 0 && mark === undefined) continue;
    writes.push(...changes.writes, { kind: "put", key: markerKey(name), value: encodeMarker(version) });
    if (mark !== undefined) writes.push({ kind: "delete", key: seedMarkKey(name) });
  }
  if (writes.length > 0) transaction.raiseTicket(part.lastTicket);
  return { writes, result: { done: true } };
}

/** Returns the writes that begin a seeding in pieces: the rows that the primary lacks are too many for one transaction. */
const begun = (name: Uint8Array, mark: SeedMark, writes: readonly RowWrite[]): DecidedWrites<Step> => ({
  writes: [...writes, { kind: "put", key: seedMarkKey(name), value: encodeSeedMark(mark) }],
  result: { done: false },
});

async function applyPiece(
  world: World,
  transaction: Transaction,
  { epoch, lineage, sequence, lastTicket, low, high, rows }: SeedPart,
  { name, isLast }: NonNullable<SeedPart["piece"]>,
  onHeld: OnHeld | undefined,
): Promise<DecidedWrites<Step>> {
  const version = { epoch, lineage, number: sequence };
  const { marker, mark } = await heldOf(transaction, name);
  const over = (refusal?: Failed): DecidedWrites<Step> => ({ writes: [], result: { done: true, ...(refusal && { refusal }) } });
  if (!appliesRow(version, { held: marker, floor: undefined }, world.rules)) {
    if (marker !== undefined) onHeld?.(marker);
    return over();
  }
  const order = mark === undefined ? -1 : compareVersions(mark.version, version);
  if (order > 0) {
    const details = mark === undefined ? {} : versionToDetails(mark.version);
    return over(refused("aborted", "conflict", "a later seeding of the PartitionName has begun", details));
  }
  const upTo = order === 0 ? mark?.upTo : undefined;
  if (upTo !== undefined && compareBytes(upTo, high) >= 0) return over();
  if (upTo === undefined ? !equalBytes(low, name) : !equalBytes(low, upTo)) {
    return over(refused("aborted", "conflict", "the pieces before this one are not here: the PartitionName is seeded from its beginning"));
  }
  const changes = await replaced(transaction, low, isLast ? present(prefixEnd(name), "the end of a PartitionName") : high, rows);
  if (!changes.done) return begun(name, { version, upTo: low }, changes.writes);
  transaction.raiseTicket(lastTicket);
  const ending: RowWrite[] = isLast
    ? [
        { kind: "delete", key: seedMarkKey(name) },
        { kind: "put", key: markerKey(name), value: encodeMarker(version) },
      ]
    : [{ kind: "put", key: seedMarkKey(name), value: encodeSeedMark({ version, upTo: high }) }];
  return { writes: [...changes.writes, ...ending], result: { done: true } };
}

interface Changes {
  readonly writes: readonly RowWrite[];
  /** False: rows that the primary lacks are left, and the writes delete some of them. */
  readonly done: boolean;
}

/** Returns the writes after which exactly these rows lie between two keys. */
async function replaced(transaction: Transaction, low: Uint8Array, high: Uint8Array, rows: readonly Row[]): Promise<Changes> {
  const wanted = new Map(rows.map((row) => [toHex(row[0]), row]));
  const deletes: RowWrite[] = [];
  for await (const [key, value] of transaction.scan({ gte: low, lt: high, background: true })) {
    const text = toHex(key);
    const row = wanted.get(text);
    if (row === undefined) deletes.push({ kind: "delete", key });
    else if (equalBytes(row[1], value)) wanted.delete(text);
    if (deletes.length >= deletedMax) return { writes: deletes, done: false };
  }
  const puts = [...wanted.values()].map(([key, value]): RowWrite => ({ kind: "put", key, value }));
  return { writes: [...deletes, ...puts], done: true };
}
