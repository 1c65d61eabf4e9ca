/**
 * Report of what only this stamp had of an account when a forced failover deposed it: whether every range has its part, and the
 * rows of it (docs/design/geo.md "Report of a deposed primary").
 */
import { compareBytes, fromHex, type Outcome, ok, refused, toHex } from "@stamp/base";
import { accountKeys } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { type DivergedRow, PartitionServer, toWire } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import { rangesOf, type ShippingHere } from "./shipping-here.ts";

export interface DivergedHere {
  readonly rows: readonly DivergedRow[];
  /** Begin of the next page; empty: there is none. */
  readonly next: string;
}

const askTimeoutMs = 10_000;

/** Why the report is not complete; empty: every range has its part durably. */
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

/** A page of one range. A marker is the table and the key, in hexadecimal, at which the page begins. */
export async function divergedHere(world: World, map: MapState, account: string, marker: string): Promise<Outcome<DivergedHere>> {
  const ranges = [...rangesOf(map, account)].sort((a, b) => compareText(a.table, b.table) || compareBytes(a.low, b.low));
  const [table = "", hex = ""] = marker.split("/");
  const from = fromHex(hex);
  if (from === undefined) return refused("invalidArgument", "badRequest", `marker ${marker}`);
  const at = ranges.findIndex(
    (one) => one.table > table || (one.table === table && (one.high.length === 0 || compareBytes(from, one.high) < 0)),
  );
  const range = ranges[at];
  if (range === undefined) return ok({ rows: [], next: "" });
  const fromKey = range.table === table ? from : accountKeys(account).low;
  const request = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), account, fromKey };
  const client = world.transport.client(range.serverAddress, PartitionServer);
  const page = await client.listDivergedRows(request, { timeoutMs: askTimeoutMs });
  if (!page.ok) return page;
  const { rows, nextKey } = page.value;
  const following = ranges[at + 1];
  if (nextKey.length > 0) return ok({ rows, next: `${range.table}/${toHex(nextKey)}` });
  return ok({ rows, next: following === undefined ? "" : `${following.table}/${toHex(following.low)}` });
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
