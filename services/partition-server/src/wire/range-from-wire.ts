/** Converts a range of the map from its form on the wire. */
import { type Failed, type Outcome, ok, refused } from "@stamp/base";
import { isObjectTable } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { fromWire, type RangePartition } from "@stamp/wire";

export function rangeFromWire(range: RangePartition | undefined): Outcome<Range> {
  if (!range) return bad("no range");
  if (!isObjectTable(range.table)) return bad(`no table ${range.table}`);
  const streams = range.streams;
  if (!streams || streams.metadata === "" || streams.commitLog === "" || streams.rowData === "") return bad("no streams");
  return ok({
    rangeId: range.rangeId,
    table: range.table,
    low: Uint8Array.from(range.lowKey),
    high: Uint8Array.from(range.highKey),
    rangeVersion: fromWire(range.rangeVersion),
    ownerEpoch: fromWire(range.ownerEpoch),
    streams: { metadata: streams.metadata, commitLog: streams.commitLog, rowData: streams.rowData, blobData: streams.blobData },
    server: range.server,
    serverAddress: range.serverAddress,
    leaseEpoch: fromWire(range.leaseEpoch),
    loaded: range.loaded,
    hasStreams: range.hasStreams,
  });
}

const bad = (what: string): Failed => refused("invalidArgument", "badRequest", what);
