/**
 * Deletes what a range has of an account that was removed from the stamp, a page in one transaction
 * (docs/design/geo-shipping.md "Removal"). Hidden rows go, too: markers, seed marks and report rows.
 *
 * Invariants (docs/design/model/geo-removal.pml):
 * - Nothing is deleted if the range knows a later tenure of the account: asked inside of the transaction (rule `geoRemovalEnds`).
 * - Pages go in key order, so that the marker of a PartitionName goes with its first rows, or before them: what is left of
 *   it is older than every state that a later copy brings.
 */
import { FailureError, type Outcome, ok, refused, toHex } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { Row, ScanRange } from "../scan-range.ts";
import type { ShippedFences } from "../shipping/shipped-fences.ts";
import type { DecidedWrites, RowWrite, Transaction, TransactOptions } from "../types.ts";

export interface RemovedRange {
  readonly fences: Pick<ShippedFences, "tenure">;
  scan(range: ScanRange): AsyncIterable<Row>;
  transact<T>(
    lockKey: readonly Uint8Array[],
    decide: (transaction: Transaction) => Promise<DecidedWrites<T>>,
    options: TransactOptions,
  ): Promise<Outcome<T>>;
}

export interface RemovalOptions {
  /** Bytes with which the keys of the account begin. */
  readonly prefix: Uint8Array;
  /** Tenure that the removal began. */
  readonly tenure: number;
  /** Returns the bytes that begin all keys of the row's PartitionName; undefined: the row belongs to none. */
  readonly nameOf: (key: Uint8Array) => Uint8Array | undefined;
}

export interface RemovedPage {
  readonly rows: number;
  /** Key at which the next page begins; undefined: nothing is left between the keys. */
  readonly next: Uint8Array | undefined;
}

const pageRowsMax = 500;
const pageBytesMax = 1024 * 1024;
const timeoutMs = 30_000;

/**
 * Refused with staleRoleEpoch if a later tenure has begun. A range that is lost or closed meanwhile, or rows that can't be read,
 * are a refusal, too.
 */
export async function removePage(
  world: World,
  range: RemovedRange,
  keys: { readonly low: Uint8Array; readonly high: Uint8Array },
  options: RemovalOptions,
): Promise<Outcome<RemovedPage>> {
  return refusing(() => pageRemoved(world, range, keys, options));
}

/** True if the range has a row between the keys, hidden ones included. Refused as `removePage`. */
export function hasRowsBetween(range: Pick<RemovedRange, "scan">, low: Uint8Array, high: Uint8Array): Promise<Outcome<boolean>> {
  return refusing(async () => {
    for await (const _row of range.scan({ gte: low, lt: high, background: true, hidden: true })) return ok(true);
    return ok(false);
  });
}

/** Runs a scan, and returns as an outcome what it throws. */
async function refusing<T>(run: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

async function pageRemoved(
  world: World,
  range: RemovedRange,
  { low, high }: { readonly low: Uint8Array; readonly high: Uint8Array },
  { prefix, tenure, nameOf }: RemovalOptions,
): Promise<Outcome<RemovedPage>> {
  const locks = new Map<string, Uint8Array>();
  let [rows, bytes] = [0, 0];
  let end: Uint8Array | undefined;
  for await (const [key, value] of range.scan({ gte: low, lt: high, background: true, hidden: true })) {
    if (rows >= pageRowsMax || bytes >= pageBytesMax) {
      end = key;
      break;
    }
    rows++;
    bytes += key.length + value.length;
    const name = nameOf(key) ?? key;
    locks.set(toHex(name), name);
  }
  if (rows === 0) return ok({ rows: 0, next: undefined });
  const removed = await range.transact(
    [...locks.values()],
    async (transaction) => {
      if (range.fences.tenure(prefix) > tenure && world.rules.on("geoRemovalEnds")) throw new FailureError(later.failure);
      const writes: RowWrite[] = [];
      for await (const [key] of transaction.scan({ gte: low, lt: end ?? high, background: true, hidden: true }))
        writes.push({ kind: "delete", key });
      return { writes, result: writes.length };
    },
    { timeoutMs },
  );
  return removed.ok ? ok({ rows: removed.value, next: end }) : removed;
}

const later = refused("failedPrecondition", "staleRoleEpoch", "the account has come back to this stamp");
