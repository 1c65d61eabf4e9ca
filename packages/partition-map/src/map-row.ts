/**
 * A row of the Partition Map table: key (table, low key), value the range. Format: docs/formats/partition-map.md, in the row and key
 * codecs of the object tables.
 */
import { emptyBytes, type Failed, fromHex, type Outcome, ok, refused, toHex } from "@stamp/base";
import { decodeKey, decodeRow, encodeKey, encodeRow, isObjectTable, type Property, type PropertyType } from "@stamp/objects";
import type { ChildRange, Origin, Range, Reshape } from "./range.ts";

const property = <T extends PropertyType>(id: number, type: T): Property<T> => ({ id, type });

export const partitionMapSchema: {
  readonly rangeId: Property<"string">;
  readonly high: Property<"binary">;
  readonly rangeVersion: Property<"int64">;
  readonly ownerEpoch: Property<"int64">;
  readonly metadataStream: Property<"string">;
  readonly commitLogStream: Property<"string">;
  readonly rowDataStream: Property<"string">;
  readonly blobDataStream: Property<"string">;
  readonly server: Property<"string">;
  readonly serverAddress: Property<"string">;
  readonly leaseEpoch: Property<"int64">;
  readonly loaded: Property<"bool">;
  readonly reshape: Property<"string">;
  readonly hasStreams: Property<"bool">;
  readonly origins: Property<"string">;
} = {
  rangeId: property(1, "string"),
  high: property(2, "binary"),
  rangeVersion: property(3, "int64"),
  ownerEpoch: property(4, "int64"),
  metadataStream: property(5, "string"),
  commitLogStream: property(6, "string"),
  rowDataStream: property(7, "string"),
  blobDataStream: property(8, "string"),
  server: property(9, "string"),
  serverAddress: property(10, "string"),
  leaseEpoch: property(11, "int64"),
  loaded: property(12, "bool"),
  reshape: property(13, "string"),
  hasStreams: property(14, "bool"),
  origins: property(15, "string"),
};

export const mapKey = (range: Pick<Range, "table" | "low">): Uint8Array => encodeKey([[range.table], [range.low], []]);

export const encodeMapRow = (range: Range): Uint8Array =>
  encodeRow(partitionMapSchema, {
    rangeId: range.rangeId,
    high: range.high,
    rangeVersion: BigInt(range.rangeVersion),
    ownerEpoch: BigInt(range.ownerEpoch),
    metadataStream: range.streams.metadata,
    commitLogStream: range.streams.commitLog,
    rowDataStream: range.streams.rowData,
    blobDataStream: range.streams.blobData,
    server: range.server,
    serverAddress: range.serverAddress,
    leaseEpoch: BigInt(range.leaseEpoch),
    loaded: range.loaded,
    reshape: range.reshape && encodeReshape(range.reshape),
    hasStreams: range.hasStreams,
    origins: range.origins && JSON.stringify(range.origins),
  });

const encodeReshape = (reshape: Reshape): string =>
  JSON.stringify(reshape.kind === "split" ? { ...reshape, at: toHex(reshape.at) } : reshape);

/** Decodes the record of a split or merge; undefined: there is none. */
function decodeReshape(text: string): Reshape | undefined {
  let raw: { kind?: unknown; at?: unknown; parents?: unknown; children?: unknown };
  try {
    raw = JSON.parse(text) as typeof raw;
  } catch {
    return undefined;
  }
  const children = Array.isArray(raw.children) ? (raw.children as ChildRange[]) : [];
  const named = children.every((child) => typeof child?.rangeId === "string" && Number.isSafeInteger(child.ownerEpoch));
  if (!named) return undefined;
  if (raw.kind === "split" && typeof raw.at === "string" && children.length === 2) {
    const at = fromHex(raw.at);
    return at && { kind: "split", at, children: children as unknown as readonly [ChildRange, ChildRange] };
  }
  const parents = Array.isArray(raw.parents) ? (raw.parents as string[]) : [];
  if (raw.kind !== "merge" || children.length !== 1 || parents.length !== 2) return undefined;
  return {
    kind: "merge",
    parents: parents as unknown as readonly [string, string],
    children: children as unknown as readonly [ChildRange],
  };
}

/** Decodes the ranges that a range came from; undefined: they can't be read. */
function decodeOrigins(text: string): readonly Origin[] | undefined {
  try {
    const origins = JSON.parse(text) as readonly Partial<Origin>[];
    const isOne = ({ left, rangeId }: Partial<Origin>) => typeof rangeId === "string" && ["all", "state", "data"].includes(left ?? "");
    return Array.isArray(origins) && origins.every(isOne) ? (origins as readonly Origin[]) : undefined;
  } catch {
    return undefined;
  }
}

const damaged = (what: string): Failed => refused("dataLoss", "damaged", `partition map row: ${what}`);

/** Decodes a row of the map. The result owns its bytes. */
export function decodeMapRow(key: Uint8Array, value: Uint8Array): Outcome<Range> {
  const components = decodeKey(key);
  if (!components.ok) return components;
  const table = components.value[0]?.[0];
  const low = components.value[1]?.[0];
  if (typeof table !== "string" || !isObjectTable(table)) return damaged("no such table");
  if (!(low instanceof Uint8Array)) return damaged("no low key");
  const decoded = decodeRow(partitionMapSchema, value);
  if (!decoded.ok) return decoded;
  const row = decoded.value;
  const reshape = row.reshape === undefined ? undefined : decodeReshape(row.reshape);
  if (row.reshape !== undefined && reshape === undefined) return damaged("a split or merge that can't be read");
  const origins = row.origins === undefined ? undefined : decodeOrigins(row.origins);
  if (row.origins !== undefined && origins === undefined) return damaged("ranges that it came from, which can't be read");
  if (row.rangeId === undefined || row.rangeVersion === undefined || row.ownerEpoch === undefined) return damaged("incomplete");
  return ok({
    rangeId: row.rangeId,
    table,
    low,
    high: row.high ? Uint8Array.from(row.high) : emptyBytes,
    rangeVersion: Number(row.rangeVersion),
    ownerEpoch: Number(row.ownerEpoch),
    streams: {
      metadata: row.metadataStream ?? "",
      commitLog: row.commitLogStream ?? "",
      rowData: row.rowDataStream ?? "",
      blobData: row.blobDataStream ?? "",
    },
    server: row.server ?? "",
    serverAddress: row.serverAddress ?? "",
    leaseEpoch: Number(row.leaseEpoch ?? 0n),
    loaded: row.loaded ?? false,
    hasStreams: row.hasStreams ?? false,
    ...(reshape ? { reshape } : {}),
    ...(origins ? { origins } : {}),
  });
}
