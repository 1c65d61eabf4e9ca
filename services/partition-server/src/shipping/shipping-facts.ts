/**
 * Says for the ranges of this server how much they have sent of an account that has a second stamp.
 *
 * Invariant: a range says something only while this server may answer for it. Where it has rows that are never sent, it says
 * so.
 */
import { compareBytes, type Outcome } from "@stamp/base";
import { accountKeys, holdsAccount, isCopiedTable, isShippedTable } from "@stamp/objects";
import { isMarkerKey, type RangePartition } from "@stamp/range-partition";
import { toWire } from "@stamp/wire";
import type { Held, Holdings } from "../ranges/holdings.ts";
import { partitionBehind } from "../ranges/range-engine.ts";
import type { AskedShipping, Facts } from "./range-shipping.ts";
import type { Shipper } from "./shipper.ts";

/** `mayAnswer`: false for a range whose lease may have ended. */
export async function shippingFacts(holdings: Holdings, shipper: Shipper, asked: AskedShipping, mayAnswer: (held: Held) => Outcome<void>) {
  const told = [];
  for (const held of holdings.all) {
    const { range, engine, state } = held;
    const partition = engine && partitionBehind(engine);
    if (state !== "serving" || partition === undefined || !isCopiedTable(range.table) || !holdsAccount(range, asked.account)) continue;
    const shipped = isShippedTable(range.table) ? shipper.factsOf(range, asked) : await factsOfUnshipped(held, partition, asked.account);
    if (shipped !== undefined && mayAnswer(held).ok) told.push(toWireFacts(held, shipped));
  }
  return told;
}

/** A range of a table whose rows are not sent: complete while it has no row of the account. */
async function factsOfUnshipped({ range }: Held, partition: RangePartition, account: string): Promise<Facts> {
  const keys = accountKeys(account);
  const { overBeforeMs } = partition.stats;
  let isEmpty = true;
  for await (const [key] of partition.scan({ gte: laterKey(keys.low, range.low), lt: keys.high, background: true })) {
    if (isMarkerKey(key)) continue;
    isEmpty = false;
    break;
  }
  return {
    state: isEmpty ? "shipping" : "unshipped",
    complete: isEmpty,
    pending: 0,
    backlogBytes: 0,
    pendingBytes: 0,
    lastSyncMs: isEmpty ? overBeforeMs - 1 : undefined,
    seededBytes: 0,
    seedBytes: 0,
    seedBytesPerSecond: 0,
    failure: "",
  };
}

const laterKey = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) < 0 ? b : a);

function toWireFacts({ range }: Held, facts: Facts) {
  return {
    rangeId: range.rangeId,
    ownerEpoch: toWire(range.ownerEpoch),
    table: range.table,
    state: facts.state === "ended" ? "waiting" : facts.state,
    complete: facts.complete,
    pendingCommits: toWire(facts.pending),
    pendingBytes: toWire(facts.pendingBytes),
    ...(facts.lastSyncMs === undefined ? {} : { lastSyncMs: toWire(facts.lastSyncMs) }),
    seededBytes: toWire(Math.round(facts.seededBytes)),
    seedBytes: toWire(Math.round(facts.seedBytes)),
    seedBytesPerSecond: toWire(Math.round(facts.seedBytesPerSecond)),
    failure: facts.failure,
  };
}
