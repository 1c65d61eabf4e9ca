/** Where bytes lie, for the page: from a blob to its extents, and from an extent to the blobs with bytes in it. */
import type { StampInspector } from "@stamp/cluster";
import type { ExtentRow, ExtentUserRow, Page, PieceRow } from "@stamp/console-page";
import { type ContentPiece, FrontEnd, type LocateBlobRequest, type LocateBlobResponse, PartitionServer } from "@stamp/wire";
import type { Transport } from "../running.ts";
import { fieldIn } from "./data/data-lists.ts";
import type { List } from "./lists.ts";
import { extentRow } from "./snapshot.ts";

const callTimeoutMs = 3_000;
/** Extents of one page, which are asked for one by one. */
const extentsMax = 50;
/** Ranges that are asked for one page. */
const rangesMax = 64;

export interface PlaceParts {
  readonly inspector: () => StampInspector;
  readonly transport: Transport;
  /** Addresses of the front-ends. */
  readonly frontEnds: () => readonly string[];
}

export const placeLists = (parts: PlaceParts): Readonly<Record<string, List>> => ({
  "/api/blob-places": (query) => placesOf(parts, query),
  "/api/extent": async (query) => ({ items: await extentsOf(parts, [idIn(query)]), next: null }),
  "/api/extent-users": (query) => usersOf(parts, idIn(query), query.get("after") ?? ""),
});

function idIn(query: URLSearchParams): bigint {
  const text = query.get("id") ?? "";
  if (!/^[1-9]\d{0,18}$/.test(text)) throw new Error("the number of an extent is expected, as the list of extents has it");
  return BigInt.asUintN(63, BigInt(text));
}

/** Returns the extents that there are. */
async function extentsOf({ inspector }: PlaceParts, ids: readonly bigint[]): Promise<ExtentRow[]> {
  const found = await Promise.all(ids.map((id) => inspector().extent(id)));
  return found.flatMap((info) => (info === undefined ? [] : [extentRow(info)]));
}

/** `after` in the query: first byte of the page. */
async function placesOf(parts: PlaceParts, query: URLSearchParams): Promise<Page<PieceRow>> {
  const after = query.get("after") ?? "";
  const startBytes = /^\d{1,18}$/.test(after) ? BigInt(after) : 0n;
  const blob = { account: fieldIn(query, "account"), container: fieldIn(query, "container"), blob: fieldIn(query, "name") };
  const { pieces, nextBytes, rangeId } = await located(parts, { ...blob, startBytes });
  const ids = new Set<bigint>();
  const shown: ContentPiece[] = [];
  for (const piece of pieces) {
    const { in: where } = piece;
    if (where.case === "extentId" && !ids.has(where.value) && ids.size >= extentsMax) break;
    if (where.case === "extentId") ids.add(where.value);
    shown.push(piece);
  }
  const extents = new Map((await extentsOf(parts, [...ids])).map((row) => [row.id, row]));
  const next = pieces[shown.length]?.startBytes ?? nextBytes;
  return { items: shown.map((piece) => pieceRow(piece, rangeId, extents)), next: next === undefined ? null : String(next) };
}

function pieceRow({ startBytes, lengthBytes, in: where }: ContentPiece, range: string, extents: ReadonlyMap<string, ExtentRow>): PieceRow {
  const id = where.case === "extentId" ? String(where.value) : "";
  return {
    startBytes: Number(startBytes),
    bytes: Number(lengthBytes),
    where: where.case === "extentId" ? "extent" : where.case === "row" ? "row" : "zeros",
    range,
    extentId: id,
    extent: extents.get(id) ?? null,
  };
}

/** Asks one front-end after another, until one answers. */
async function located(
  { transport, frontEnds }: PlaceParts,
  request: Pick<LocateBlobRequest, "account" | "container" | "blob" | "startBytes">,
): Promise<LocateBlobResponse> {
  let problem = "no front-end of this stamp answers; the overview says why";
  for (const address of frontEnds()) {
    const answer = await transport.client(address, FrontEnd).locateBlob(request, { timeoutMs: callTimeoutMs });
    if (answer.ok) return answer.value;
    problem = answer.failure.message;
    if (answer.failure.code !== "unavailable" && answer.failure.code !== "deadlineExceeded") break;
  }
  throw new Error(problem);
}

/**
 * Asks the ranges with blobs, in the order of their names. `after`: name of a range, and a key in it, in hexadecimal. A range that has nothing in
 * the extent answers without reading a row.
 */
async function usersOf({ inspector, transport }: PlaceParts, extentId: bigint, after: string): Promise<Page<ExtentUserRow>> {
  const [, first = "", key = ""] = /^([\w-]{1,64})\.((?:[0-9a-f]{2})*)$/.exec(after) ?? [];
  const ranges = (await inspector().ranges())
    .filter(({ table, rangeId }) => table === "Blob" && rangeId >= first)
    .sort((one, other) => (one.rangeId < other.rangeId ? -1 : 1));
  for (const { rangeId, serverAddress } of ranges.slice(0, rangesMax)) {
    if (serverAddress === "") throw new Error(`range ${rangeId} has no server now, so its blobs are not known: try again`);
    const client = transport.client(serverAddress, PartitionServer);
    const fromKey = rangeId === first ? Buffer.from(key, "hex") : new Uint8Array(0);
    const answer = await client.listExtentUsers({ rangeId, extentId, fromKey }, { timeoutMs: callTimeoutMs });
    if (!answer.ok) throw new Error(`range ${rangeId}: ${answer.failure.message}`);
    const { users, nextKey } = answer.value;
    if (users.length === 0 && nextKey.length === 0) continue;
    const items = users.map(({ account, container, blob, bytes }) => ({
      account,
      container,
      name: blob,
      bytes: Number(bytes),
      range: rangeId,
    }));
    if (nextKey.length > 0) return { items, next: `${rangeId}.${Buffer.from(nextKey).toString("hex")}` };
    const following = ranges.find((range) => range.rangeId > rangeId);
    return { items, next: following === undefined ? null : `${following.rangeId}.` };
  }
  const behind = ranges[rangesMax];
  return { items: [], next: behind === undefined ? null : `${behind.rangeId}.` };
}
