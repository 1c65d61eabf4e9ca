/**
 * Answers about reports of deposed primaries: what was shipped to a range here, which the deposed primary asks, and the report
 * that is here, for people.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { compareBytes, type Outcome, ok, refused } from "@stamp/base";
import type { RowVersion } from "@stamp/geo";
import { accountKeys, blobRowOf, decodeEntity, decodeKey, type KeyElement, queueRowOf, queuesTable, shippedNames } from "@stamp/objects";
import { holdsKey, type Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { decodeMarker, forgetPage, markerKey, type RangePartition, type ReportRow, reportPage } from "@stamp/range-partition";
import type { DivergedRowSchema, DivergedRowsSchema, ForgetDivergedRowsResponseSchema, TellVersionsResponseSchema } from "@stamp/wire";
import { fromWire, type GetShippedVersionsRequest, type ListDivergedRowsRequest, propertyToWire, toWire } from "@stamp/wire";
import type { Executor } from "../operations/execute.ts";
import type { HeldRange, Holdings, ServingRange } from "../ranges/holdings.ts";
import { ReportedBlobs } from "./reported-blobs.ts";

type Versions = MessageInitShape<typeof TellVersionsResponseSchema>;
type Page = MessageInitShape<typeof DivergedRowsSchema>;
type Forgotten = MessageInitShape<typeof ForgetDivergedRowsResponseSchema>;
type DivergedInit = MessageInitShape<typeof DivergedRowSchema>;

const namesMax = 1_000;

export class Reports {
  /** Content of the blobs that reports name. */
  readonly blobs: ReportedBlobs;
  readonly #holdings: Holdings;
  /** Refuses for a range whose lease may have ended. */
  readonly #mayAnswer: (held: HeldRange) => Outcome<void>;

  constructor(world: World, holdings: Holdings, executor: Pick<Executor, "mayAnswer" | "locate">) {
    this.blobs = new ReportedBlobs(world, holdings, executor);
    this.#holdings = holdings;
    this.#mayAnswer = (held) => executor.mayAnswer(held);
  }

  async versions({ rangeId, rangeVersion, names }: GetShippedVersionsRequest): Promise<Outcome<Versions>> {
    if (names.length > namesMax) return refused("invalidArgument", "badRequest", `${names.length} PartitionNames are asked for at once`);
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held, partition } = found.value;
    const versions = [];
    for (const name of names) {
      if (!holdsKey(held.range, name)) return refused("failedPrecondition", "wrongPartition", `${rangeId} does not hold a PartitionName`);
      const stored = await partition.get(markerKey(name));
      const marker = stored && decodeMarker(stored);
      if (marker && !marker.ok) return marker;
      versions.push(marker === undefined ? {} : toldVersion(marker.value));
    }
    const answered = this.#mayAnswer(held);
    return answered.ok ? ok({ versions }) : answered;
  }

  async page({ rangeId, rangeVersion, account, fromKey }: ListDivergedRowsRequest): Promise<Outcome<Page>> {
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held, partition } = found.value;
    const keys = keysFrom(held.range, account, fromKey);
    if (keys === undefined) return ok({});
    const { rows, next } = await reportPage(partition, keys, shippedNames(account));
    const told = rows.map((row) => rowToWire(held.range.table, row));
    const answered = this.#mayAnswer(held);
    return answered.ok ? ok({ rows: told, ...(next && { nextKey: next }) }) : answered;
  }

  /** Deletes a page of the report. */
  async forget({ rangeId, rangeVersion, account, fromKey }: ListDivergedRowsRequest): Promise<Outcome<Forgotten>> {
    const found = this.#found(rangeId, fromWire(rangeVersion));
    if (!found.ok) return found;
    const { held, partition } = found.value;
    const keys = keysFrom(held.range, account, fromKey);
    if (keys === undefined) return ok({});
    const forgotten = await forgetPage(partition, keys, shippedNames(account));
    if (!forgotten.ok) return forgotten;
    const { rows, next } = forgotten.value;
    return ok({ rows, ...(next && { nextKey: next }) });
  }

  #found(rangeId: string, rangeVersion: number): Outcome<{ readonly held: ServingRange; readonly partition: RangePartition }> {
    const held = this.#holdings.serving(rangeId, rangeVersion);
    if (!held.ok) return held;
    const partition = held.value.engine.partition;
    return partition === undefined
      ? refused("unimplemented", "unknownMethod", `${rangeId} takes nothing from other stamps`)
      : ok({ held: held.value, partition });
  }
}

/** Returns the keys of the account in the range, from a key on; undefined: there are none. */
function keysFrom(
  { low, high }: Range,
  account: string,
  fromKey: Uint8Array,
): { readonly low: Uint8Array; readonly high: Uint8Array } | undefined {
  const keys = accountKeys(account);
  const from = [low, keys.low].reduce((latest, key) => (compareBytes(key, latest) > 0 ? key : latest), fromKey);
  const end = high.length > 0 && compareBytes(high, keys.high) < 0 ? high : keys.high;
  return compareBytes(from, end) < 0 ? { low: from, high: end } : undefined;
}

function rowToWire(table: string, { operation, sequence, write }: ReportRow): DivergedInit {
  const told = { operation: toWire(operation), sequence: toWire(sequence), deleted: write.kind === "delete", key: write.key };
  const path = decodeKey(write.key);
  const [, partition = [], row = []] = path.ok ? path.value : [];
  const [kind, name = ""] = partition as readonly [KeyElement?, KeyElement?];
  if (!path.ok) return { ...told, kind: "row" };
  if (table === "Blob") return { ...told, ...blobRow(path.value, write) };
  if (table === queuesTable) return { ...told, ...queueRow(path.value, write) };
  if (table !== "Entity") return { ...told, kind: "row" };
  if (kind === 0) return { ...told, kind: "table", name: String(name) };
  const key = { partitionKey: String(partition[3]), rowKey: String(row[0]) };
  if (write.kind === "delete") return { ...told, kind: "entity", name: String(name), entity: { key } };
  const { timestamp, properties } = decodeEntity(write.value);
  return { ...told, kind: "entity", name: String(name), entity: { key, timestamp, properties: properties.map(propertyToWire) } };
}

function queueRow(path: Parameters<typeof queueRowOf>[0], write: ReportRow["write"]): DivergedInit {
  const { kind, queue, text } = queueRowOf(path, write.kind === "delete" ? undefined : write.value);
  return { kind, name: queue, ...(text === undefined ? {} : { text }) };
}

function blobRow(path: Parameters<typeof blobRowOf>[0], write: ReportRow["write"]): DivergedInit {
  const { kind, container, blob, modifiedMs } = blobRowOf(path, write.kind === "delete" ? undefined : write.value);
  return { kind, name: container, blob, ...(modifiedMs === undefined ? {} : { modifiedMs: toWire(modifiedMs) }) };
}

const toldVersion = ({ epoch, lineage = 0, number }: RowVersion) => ({
  epoch: toWire(epoch),
  lineage: toWire(lineage),
  sequence: toWire(number),
});
