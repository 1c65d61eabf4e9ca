/** A range of the map, as it goes over the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Range } from "@stamp/partition-map";
import { type RangePartitionSchema, toWire } from "@stamp/wire";

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
