/** Report rows of deposed primaries as the collector reads and rewrites them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, present, unwrap } from "@stamp/base";
import { blobSchema, type Decision, encodeKey, encodeRow, type Place, partitionStart, placesOfRow } from "@stamp/objects";
import { encodeReportRow, markerKey, reportKey } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import type { RangeEngine, RowView } from "../operations/engine.ts";
import { rewriteExtents } from "./extent-rewriter.ts";
import { movedTo, placesOf, reportedRow } from "./reported-places.ts";

const old: Place = { extentId: 7, offsetBytes: 100, lengthBytes: 50 };
const head = encodeKey([["acct"], [1, "con", 3, "blob"], [0]]);
const name = present(partitionStart(head), "a PartitionName");
const value = encodeRow(blobSchema, { etag: 9n, places: [old] });
const key = reportKey(name, { operation: 3, sequence: 12, index: 0 });
const reportRow = { key, value: encodeReportRow(name, { kind: "put", key: head, value }) };

test("report rows: the places of the row that one holds are its own; markers and deletions have none", () => {
  assert.deepEqual(unwrap(placesOf(reportRow)), [old]);
  assert.deepEqual(unwrap(placesOf({ key: head, value })), [old]);
  const deletion = { key, value: encodeReportRow(name, { kind: "delete", key: head }) };
  assert.deepEqual(unwrap(placesOf(deletion)), []);
  assert.equal(reportedRow({ key: markerKey(name), value: Uint8Array.of(1, 1, 1) }), undefined);
  assert.equal(unwrap(movedTo(deletion, () => assert.fail("it has no place"))), deletion.value);
});

test("report rows: a mostly dead extent is left by its report row, which holds the same row with another place", async () => {
  const rows = new Map([[String(key), reportRow.value]]);
  const view = { get: async (at: Uint8Array) => ok(rows.get(String(at))) } as unknown as RowView;
  const locked: string[] = [];
  const engine = {
    read: (work: (now: RowView) => unknown) => work(view),
    copyData: async (places: readonly Place[]) => ok(places.map(({ lengthBytes }) => ({ extentId: 8, offsetBytes: 0, lengthBytes }))),
    mayReferTo: () => true,
    transact: async (lockKeys: readonly Uint8Array[], decide: (now: RowView) => Promise<{ ok: true; value: Decision }>) => {
      locked.push(...lockKeys.map(String));
      const decided = await decide(view);
      for (const write of decided.value.writes) if (write.kind === "put") rows.set(String(write.key), write.value);
      return decided;
    },
  } as unknown as RangeEngine;
  const sim = new Simulation({ seed: 1 });
  const bytes = await sim.run(() =>
    rewriteExtents(sim.world("server"), engine, { extents: new Map([[7, [key]]]), bytesPerSecond: 1_000_000, wanted: () => true }),
  );
  assert.equal(unwrap(bytes), 50);
  const moved = present(reportedRow({ key, value: present(rows.get(String(key)), "the row") }), "a report row");
  assert.ok(moved.write.kind === "put");
  assert.deepEqual(moved.write.key, head);
  assert.deepEqual(unwrap(placesOfRow(moved.write.value)), [{ extentId: 8, offsetBytes: 0, lengthBytes: 50 }]);
  assert.deepEqual([...new Set(locked)], [String(name)], "in the order of its PartitionName");
});
