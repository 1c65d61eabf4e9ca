/** Converts a range of the map to its form on the wire. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Range } from "@stamp/partition-map";
import { type Clock, Turns } from "@stamp/ports";
import { type RangePartition, RangePartitionSchema, toWire } from "@stamp/wire";

export const rangeToWire = (range: Range): MessageInitShape<typeof RangePartitionSchema> => ({
  rangeId: range.rangeId,
  table: range.table,
  lowKey: range.low,
  highKey: range.high,
  rangeVersion: toWire(range.rangeVersion),
  ownerEpoch: toWire(range.ownerEpoch),
  streams: { ...range.streams },
  server: range.server,
  serverAddress: range.serverAddress,
  leaseEpoch: toWire(range.leaseEpoch),
  loaded: range.loaded,
  hasStreams: range.hasStreams,
  change:
    range.reshape === undefined ? "" : `${range.reshape.kind} into ${range.reshape.children.map(({ rangeId }) => rangeId).join(" and ")}`,
});

/** Messages of ranges that were sent before. A range never changes: another one replaces it. */
const told = new WeakMap<Range, RangePartition>();

/** Returns the messages of all these ranges, made in turns: a whole map may have thousands, and each front-end asks for it. */
export async function rangesToWire(clock: Clock, ranges: readonly Range[]): Promise<RangePartition[]> {
  const turns = new Turns(clock);
  const messages: RangePartition[] = [];
  for (const range of ranges) {
    if (turns.over) await turns.next();
    const message = told.get(range) ?? create(RangePartitionSchema, rangeToWire(range));
    told.set(range, message);
    messages.push(message);
  }
  return messages;
}
