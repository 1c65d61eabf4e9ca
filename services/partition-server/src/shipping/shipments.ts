/**
 * Rows from another stamp, at the range that has their keys: conversion of the messages, and the checks that the range is here and has the
 * keys. What is applied, and in which order, is decided by `applyShipped` and `applySeed` of @stamp/range-partition.
 */
import { compareBytes, type Outcome, ok, refused } from "@stamp/base";
import { accountKeys, partitionStart } from "@stamp/objects";
import { holdsKey } from "@stamp/partition-map";
import type { CallContext, World } from "@stamp/ports";
import { applySeed, applyShipped, type RangePartition, type Row, type RowWrite } from "@stamp/range-partition";
import {
  type ApplyScannedRequest,
  type ApplyShippedRequest,
  type FenceShippedRequest,
  fromWire,
  type ScannedPart,
  type ShippedRow,
} from "@stamp/wire";
import type { Holdings, Serving } from "../ranges/holdings.ts";
import { partitionBehind } from "../ranges/range-engine.ts";

const bad = (message: string) => refused("invalidArgument", "badRequest", message);
const elsewhere = (rangeId: string) =>
  refused("failedPrecondition", "wrongPartition", `${rangeId} does not hold all keys of what was shipped`);

export class Shipments {
  readonly #world: World;
  readonly #holdings: Holdings;

  constructor(world: World, holdings: Holdings) {
    this.#world = world;
    this.#holdings = holdings;
  }

  async applyShipped(
    { rangeId, rangeVersion, shipment }: ApplyShippedRequest,
    context: CallContext,
  ): Promise<Outcome<{ applied: number }>> {
    if (shipment === undefined) return bad("a shipment without rows");
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held, partition } = found.value;
    const { name } = shipment;
    if (!holdsKey(held.range, name)) return elsewhere(rangeId);
    const commits = shipment.commits.map(({ sequence, lastTicket, rows }) => ({
      sequence: fromWire(sequence),
      lastTicket: fromWire(lastTicket),
      writes: rows.map(writeOf),
    }));
    const applied = await applyShipped(this.#world, partition, { epoch: fromWire(shipment.epoch), name, commits }, this.#left(context));
    return applied.ok ? ok({ applied: applied.value }) : applied;
  }

  async applyScanned({ rangeId, rangeVersion, part }: ApplyScannedRequest, context: CallContext): Promise<Outcome<object>> {
    if (part === undefined) return bad("a part of a scan without rows");
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held, partition } = found.value;
    const { low, high } = held.range;
    if (compareBytes(part.lowKey, low) < 0 || (high.length > 0 && compareBytes(part.highKey, high) > 0)) return elsewhere(rangeId);
    const rows = rowsOf(part);
    if (rows === undefined) return bad("a deletion in a part of a scan");
    const { epoch, sequence, lastTicket, lowKey, highKey, pieceOf, lastPiece } = part;
    const seeded = {
      epoch: fromWire(epoch),
      sequence: fromWire(sequence),
      lastTicket: fromWire(lastTicket),
      low: lowKey,
      high: highKey,
      rows,
      piece: pieceOf.length === 0 ? undefined : { name: pieceOf, isLast: lastPiece },
    };
    const applied = await applySeed(this.#world, partition, seeded, { nameOf: partitionStart, ...this.#left(context) });
    return applied.ok ? ok({}) : applied;
  }

  async fence({ rangeId, rangeVersion, account, epoch }: FenceShippedRequest): Promise<Outcome<object>> {
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const fenced = await found.value.partition.fences.raise(accountKeys(account).low, fromWire(epoch));
    return fenced.ok ? ok({}) : fenced;
  }

  #found(rangeId: string, rangeVersion: number): Outcome<{ readonly held: Serving; readonly partition: RangePartition }> {
    const held = this.#holdings.serving(rangeId, rangeVersion);
    if (!held.ok) return held;
    const partition = partitionBehind(held.value.engine);
    return partition === undefined
      ? refused("unimplemented", "unknownMethod", `${rangeId} takes nothing from other stamps`)
      : ok({ held: held.value, partition });
  }

  #left({ deadlineMs }: CallContext): { readonly timeoutMs: number } {
    return { timeoutMs: Math.max(1, deadlineMs - this.#world.clock.monotonicMs()) };
  }
}

// Copied: the bytes of a message lie in the buffer of its connection.
const writeOf = ({ key, value }: ShippedRow): RowWrite => (value === undefined ? { kind: "delete", key } : { kind: "put", key, value });

/** Undefined if a row has no value. */
function rowsOf({ rows }: ScannedPart): Row[] | undefined {
  const found: Row[] = [];
  for (const { key, value } of rows) {
    if (value === undefined) return undefined;
    found.push([key.slice(), value.slice()]);
  }
  return found;
}
