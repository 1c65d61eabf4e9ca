/**
 * Says for the ranges of this server how much they have sent of an account that has a second stamp.
 *
 * Invariant: a range says something only while this server may answer for it.
 */
import type { Outcome } from "@stamp/base";
import { holdsAccount, isShippedTable } from "@stamp/objects";
import { toWire } from "@stamp/wire";
import type { HeldRange, Holdings } from "../ranges/holdings.ts";
import { type AskedShipping, estimatedBytes, type Facts, keysWithin } from "./range-work.ts";
import type { Shipper } from "./shipper.ts";

/** `mayAnswer`: refuses for a range whose lease may have ended. */
export function shippingFacts(holdings: Holdings, shipper: Shipper, asked: AskedShipping, mayAnswer: (held: HeldRange) => Outcome<void>) {
  const told = [];
  for (const held of holdings.all) {
    const { range, engine, state } = held;
    const partition = engine?.partition;
    if (state !== "serving" || partition === undefined || !isShippedTable(range.table) || !holdsAccount(range, asked.account)) continue;
    const begun = shipper.factsOf(range, asked);
    // Nothing is sent, but whoever plans a move of the account asks for its size.
    const { low, high } = keysWithin(range, asked.account);
    const facts = begun.state === "waiting" ? { ...begun, seedBytes: estimatedBytes(partition, low, high) } : begun;
    if (mayAnswer(held).ok) told.push(toWireFacts(held, facts));
  }
  return told;
}

function toWireFacts({ range }: HeldRange, facts: Facts) {
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
    ...(facts.rates === undefined ? {} : { rates: facts.rates }),
    failure: facts.failure,
    lineage: toWire(facts.lineage ?? 0),
    copyLineage: toWire(facts.copyLineage ?? 0),
  };
}
