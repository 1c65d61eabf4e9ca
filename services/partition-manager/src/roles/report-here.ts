/**
 * Report of what only this stamp had of an account when a forced failover deposed it: whether every range has its part, and the
 * rows of it (docs/design/geo-shipping.md "Report of a deposed primary").
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { compareBytes, fromHex, type Outcome, ok, refused, toHex } from "@stamp/base";
import { accountKeys } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { type DivergedRow, type ListDivergedRowsRequestSchema, PartitionServer, toWire } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import { rangesOfReports, type ShippingHere } from "./shipping-here.ts";

export interface DivergedHere {
  readonly rows: readonly DivergedRow[];
  /** Begin of the next page; empty: there is none. */
  readonly next: string;
}

export interface ForgottenHere {
  readonly rows: number;
  /** Begin of the next page; empty: there is none. */
  readonly next: string;
}

const askTimeoutMs = 10_000;

/** Returns why the report is not complete; empty: every range has its part durably. */
export function reportTrouble(here: Outcome<ShippingHere>): string {
  if (!here.ok) return here.failure.message;
  const { ranges, rangeCount } = here.value;
  if (ranges.length < rangeCount) return "not every range says how far its report is";
  for (const { rangeId, state, complete, failure, table } of ranges) {
    // If the rows of a table are not shipped, a range without rows of the account has nothing to report.
    if (state === "reported" || (state === "shipping" && complete)) continue;
    if (state === "unshipped") return `range ${rangeId}: rows of table ${table} are not sent to other stamps, and are not reported`;
    return `range ${rangeId}: ${failure === "" ? "it still reports" : failure}`;
  }
  return "";
}

/** Returns a page of one range. A marker is the table and the key, in hexadecimal, at which the page begins. */
export async function divergedHere(world: World, map: MapState, account: string, marker: string): Promise<Outcome<DivergedHere>> {
  const place = placeOf(map, account, marker);
  if (!place.ok) return place;
  if (place.value === undefined) return ok({ rows: [], next: "" });
  const { server, request } = place.value;
  const page = await world.transport.client(server, PartitionServer).listDivergedRows(request, { timeoutMs: askTimeoutMs });
  return page.ok ? ok({ rows: page.value.rows, next: place.value.markerBehind(page.value.nextKey) }) : page;
}

/** Deletes a page of a report of a deposed primary. */
export async function forgetHere(world: World, map: MapState, account: string, marker: string): Promise<Outcome<ForgottenHere>> {
  const place = placeOf(map, account, marker);
  if (!place.ok) return place;
  if (place.value === undefined) return ok({ rows: 0, next: "" });
  const { server, request } = place.value;
  const gone = await world.transport.client(server, PartitionServer).forgetDivergedRows(request, { timeoutMs: askTimeoutMs });
  return gone.ok ? ok({ rows: gone.value.rows, next: place.value.markerBehind(gone.value.nextKey) }) : gone;
}

interface PagePlace {
  /** Address of the range's server. */
  readonly server: string;
  readonly request: MessageInitShape<typeof ListDivergedRowsRequestSchema>;
  /** Returns the begin of the next page, behind a page that ended before a key; empty: the page was the last one of its range. */
  readonly markerBehind: (nextKey: Uint8Array) => string;
}

/** Returns undefined if no range lies behind the marker. */
function placeOf(map: MapState, account: string, marker: string): Outcome<PagePlace | undefined> {
  const ranges = [...rangesOfReports(map, account)].sort((a, b) => compareText(a.table, b.table) || compareBytes(a.low, b.low));
  const [table = "", hex = ""] = marker.split("/");
  const from = fromHex(hex);
  if (from === undefined) return refused("invalidArgument", "badRequest", `marker ${marker}`);
  const at = ranges.findIndex(
    (one) => one.table > table || (one.table === table && (one.high.length === 0 || compareBytes(from, one.high) < 0)),
  );
  const range = ranges[at];
  if (range === undefined) return ok(undefined);
  const fromKey = range.table === table ? from : accountKeys(account).low;
  const following = ranges[at + 1];
  const markerBehind = (nextKey: Uint8Array): string => {
    if (nextKey.length > 0) return `${range.table}/${toHex(nextKey)}`;
    return following === undefined ? "" : `${following.table}/${toHex(following.low)}`;
  };
  const request = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), account, fromKey };
  return ok({ server: range.serverAddress, request, markerBehind });
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
