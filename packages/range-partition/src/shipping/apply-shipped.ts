/**
 * Applies at the receiver what another stamp has shipped of one PartitionName (docs/design/geo-shipping.md "Shipping"). Shipped
 * rows are taken as they are: keys, values, ETags and times do not change.
 *
 *     batch of commits ──► marker of the PartitionName ──► commits above its version ──► one transaction, with the marker
 *
 * The marker is a hidden row: its key is the bytes with which the keys of the PartitionName begin, and one byte that no
 * row has there. So it goes with its rows through every split, and no scan gives it.
 *
 * Invariants:
 * - A commit is applied only if its version is above that of the PartitionName (rule `geoRowVersionsRise`): the rows are
 *   what the first commits of the PartitionName made.
 * - Nothing is applied of a role epoch that a promotion here has ended (rule `geoPromotionFences`, shipped-fences.ts), or that was shipped to a
 *   copy that was removed since.
 * - No commit is applied to a PartitionName whose seeding has begun and not ended (rule `geoSeedingHoldsCommits`).
 * - Nothing is applied of an earlier lineage of the primary's log than the rows have (rule `logsHaveLineages`): its commits may be others, and the
 *   shipment is refused instead of counted as applied.
 * - Rows are applied only if they are admitted (`AdmitsRows`): asked inside of the transaction, so that no collector gives back the bytes
 *   that a row begins to refer to.
 * - Rows and marker change in one transaction, which is durable when the batch is answered (rule
 *   `geoAcknowledgedIsSynced`).
 * - What is left out as old is told with the version that made it old: the sender knows whether its log ever had that one.
 * - A ticket that the account gets here later is above all that the shipped commits used: ETags and incarnations stay unique
 *   when the account is promoted here. Tickets of other accounts of the range do not change (shipped-fences.ts).
 */
import { type Failed, FailureError, type Outcome, ok, refused, toHex } from "@stamp/base";
import { appliesRow, isOfEarlierLineage, type RowVersion } from "@stamp/geo";
import type { World } from "@stamp/ports";
import type { LoggedCommit } from "../followers/recent-commits.ts";
import type { Row } from "../scan-range.ts";
import type { DecidedWrites, RowWrite, Transaction, TransactOptions } from "../types.ts";
import { decodeMarker, encodeMarker, isMarkerKey, markerKey, versionToDetails } from "./marker.ts";
import { decodeSeedMark, seedMarkKey } from "./seed-mark.ts";
import { type ShippedFences, shippedTicketMax } from "./shipped-fences.ts";

/** Consecutive commits of one PartitionName. */
export interface Shipment {
  /** Role epoch of the primary that ships. */
  readonly epoch: number;
  /** Number of the operation that began the copy; undefined or 0: not known. */
  readonly paired?: number;
  /** Lineage of the primary's log; undefined or 0: it has lost nothing. */
  readonly lineage?: number;
  /** Bytes with which the keys of the PartitionName begin. */
  readonly name: Uint8Array;
  /** Oldest first; only writes to keys of the PartitionName. */
  readonly commits: readonly LoggedCommit[];
}

/** The range at the receiver. */
export interface ShippedRange {
  readonly fences: Pick<ShippedFences, "refuses" | "refusesCopy" | "leadAbove">;
  transact<T>(
    lockKey: Uint8Array | readonly Uint8Array[],
    decide: (transaction: Transaction) => Promise<DecidedWrites<T>>,
    options: TransactOptions,
  ): Promise<Outcome<T>>;
}

/**
 * Decides about rows of another stamp, inside of the transaction that would write them. `stored` reads the rows that they replace, and those
 * that the transaction deletes.
 */
export type AdmitsRows = (rows: readonly Row[], stored: () => Promise<readonly Row[]>) => Promise<Outcome<void>>;

/** Takes the present version of a PartitionName whose shipped rows were left out as old. */
export type OnHeld = (held: RowVersion) => void;

/** Throws FailureError if the rows are not admitted. Markers and seed marks are no rows. */
export async function assertAdmitted(
  transaction: Pick<Transaction, "get">,
  writes: readonly RowWrite[],
  admits: AdmitsRows | undefined,
): Promise<void> {
  const ofRows = writes.filter(({ key }) => !isMarkerKey(key));
  const rows = ofRows.flatMap((write): Row[] => (write.kind === "put" ? [[write.key, write.value]] : []));
  if (admits === undefined || rows.length === 0) return;
  const stored = async (): Promise<readonly Row[]> => {
    const keys = new Map(ofRows.map(({ key }) => [toHex(key), key]));
    const found = await Promise.all([...keys.values()].map(async (key) => ({ key, value: await transaction.get(key) })));
    return found.flatMap(({ key, value }): Row[] => (value === undefined ? [] : [[key, value]]));
  };
  const admitted = await admits(rows, stored);
  if (!admitted.ok) throw new FailureError(admitted.failure);
}

export interface ApplyOptions {
  readonly timeoutMs: number;
  readonly admits?: AdmitsRows | undefined;
  readonly onHeld?: OnHeld;
  /**
   * Bytes with which all keys of the account begin: tickets of its shipped rows count for it alone (rule `geoTicketsApart`). Undefined: a release that
   * knows no leads may come back, so the tickets of the whole range rise.
   */
  readonly ticketsOf?: Uint8Array | undefined;
}

/** Refuses a ticket that no range gives. Else resolves when every ticket that the account gets from now on is above it. */
export async function ledAbove(
  { fences }: Pick<ShippedRange, "fences">,
  ticket: number,
  { ticketsOf }: Pick<ApplyOptions, "ticketsOf">,
): Promise<Outcome<void>> {
  if (ticket > shippedTicketMax) return refused("invalidArgument", "badRequest", `ticket ${ticket} was shipped, which no range gives`);
  return ticketsOf === undefined ? ok() : fences.leadAbove(ticketsOf, ticket);
}

/** Returns the refusal of a shipment while its PartitionName is being seeded: the sender is an earlier owner of the range. */
const seeding = (mark: Uint8Array): Failed => {
  const decoded = decodeSeedMark(mark);
  const details = decoded.ok ? versionToDetails(decoded.value.version) : {};
  return refused("aborted", "conflict", "the PartitionName is being seeded", details);
};

const startsWith = (key: Uint8Array, name: Uint8Array): boolean => name.every((byte, at) => key[at] === byte);

function malformed({ name, commits }: Shipment): Failed | undefined {
  const bad = (message: string): Failed => refused("invalidArgument", "badRequest", message);
  if (name.length === 0) return bad("a shipment without a PartitionName");
  let last = 0;
  for (const { sequence, writes } of commits) {
    if (sequence <= last) return bad(`commit ${sequence} is shipped behind commit ${last}`);
    last = sequence;
    if (writes.some(({ key }) => !startsWith(key, name) || isMarkerKey(key)))
      return bad(`commit ${sequence} writes outside of its PartitionName`);
  }
  return undefined;
}

const earlierLineage = (held: RowVersion): Failed => {
  const message = `the rows were seeded from a later lineage (${held.lineage}) of the primary's log: its metadata store was put back, or its log lost its end`;
  return refused("failedPrecondition", "staleLineage", message, versionToDetails(held));
};

/** Applies shipped commits. Returns, when they are durable, the number of new ones. */
export async function applyShipped(world: World, range: ShippedRange, shipment: Shipment, options: ApplyOptions): Promise<Outcome<number>> {
  const refusal = malformed(shipment);
  if (refusal !== undefined) return refusal;
  const { epoch, paired = 0, lineage = 0, name, commits } = shipment;
  const ticket = commits.reduce((most, { lastTicket }) => Math.max(most, lastTicket), 0);
  const led = await ledAbove(range, ticket, options);
  if (!led.ok) return led;
  const key = markerKey(name);
  return range.transact(
    name,
    async (transaction) => {
      const fenced = world.rules.on("geoPromotionFences") ? range.fences.refuses(name, epoch) : undefined;
      const refusal = fenced ?? range.fences.refusesCopy(name, paired);
      if (refusal !== undefined) throw new FailureError(refusal.failure);
      const mark = await transaction.get(seedMarkKey(name));
      if (mark !== undefined && world.rules.on("geoSeedingHoldsCommits")) throw new FailureError(seeding(mark).failure);
      const stored = await transaction.get(key);
      const marker = stored && decodeMarker(stored);
      if (marker && !marker.ok) throw new FailureError(marker.failure);
      let held = marker?.value;
      if (held !== undefined && isOfEarlierLineage({ epoch, lineage, number: 0 }, held))
        throw new FailureError(earlierLineage(held).failure);
      let applied = 0;
      const writes: RowWrite[] = [];
      for (const commit of commits) {
        const version = { epoch, lineage, number: commit.sequence };
        if (!appliesRow(version, { held, floor: undefined }, world.rules)) {
          if (held !== undefined) options.onHeld?.(held);
          continue;
        }
        held = version;
        if (options.ticketsOf === undefined) transaction.raiseTicket(commit.lastTicket);
        writes.push(...commit.writes);
        applied++;
      }
      await assertAdmitted(transaction, writes, options.admits);
      if (applied > 0 && held !== undefined) writes.push({ kind: "put", key, value: encodeMarker(held) });
      return { writes, result: applied };
    },
    options,
  );
}
