import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ExtentInfoSchema, ExtentState } from "@stamp/wire";
import { all, type Change, healthy, nowMs, withFacts } from "../health/testing/healthy.ts";
import { extentRow, snapshotOf } from "./snapshot.ts";

const after = (seconds: number, ...changes: readonly Change[]) => ({ ...all(...changes)(healthy), nowMs: nowMs + seconds * 1_000 });

test("snapshot: rates are made of the counters of two looks; before the second they are unknown", () => {
  const counts = (requests: number, bytesIn: number) => [
    withFacts("front-end-1", { requests, serverErrors: 0, queue: { requests: 10 }, table: {} }),
    withFacts("partition-server-1", { totals: { bytesIn, bytesOut: 0 } }),
  ];
  const first = snapshotOf(after(0, ...counts(100, 5_000)), undefined);
  assert.equal(first.snapshot.figures.requestsPerSecond, null);
  const second = snapshotOf(after(2, ...counts(300, 9_000)), first.counted);
  assert.equal(second.snapshot.figures.requestsPerSecond, 100);
  assert.equal(second.snapshot.figures.writtenPerSecond, 2_000);
  assert.equal(second.snapshot.figures.errorsPerSecond, 0);
});

test("snapshot: the counters of a process that has started anew count from zero, and those of a new one not at all", () => {
  const first = snapshotOf(after(0, withFacts("front-end-1", { requests: 1_000 })), undefined);
  assert.equal(snapshotOf(after(1, withFacts("front-end-1", { requests: 7 })), first.counted).snapshot.figures.requestsPerSecond, 7);
  const without = { ...first.counted, byProcess: new Map() };
  assert.equal(snapshotOf(after(1, withFacts("front-end-1", { requests: 7 })), without).snapshot.figures.requestsPerSecond, 0);
});

test("snapshot: each process has the work that it took on; a manager has none", () => {
  const counts = (requests: number, writes: number, appends: number) => [
    withFacts("front-end-1", { requests, queue: { requests: 1 } }),
    withFacts("partition-server-1", { totals: { reads: 7, writes } }),
    withFacts("extent-node-1", { appends }),
  ];
  const first = snapshotOf(after(0, ...counts(0, 0, 500)), undefined);
  assert.ok(first.snapshot.processes.every(({ workPerSecond }) => workPerSecond === null));
  const { processes } = snapshotOf(after(2, ...counts(20, 8, 6)), first.counted).snapshot;
  const workOf = (name: string) => processes.find((each) => each.name === name)?.workPerSecond;
  assert.deepEqual(["front-end-1", "partition-server-1", "extent-node-1"].map(workOf), [10, 4, 3]);
  assert.equal(workOf("stream-manager-1"), null);
});

test("snapshot: looks at the same moment, or with the clock set back, make no rate", () => {
  const first = snapshotOf(after(0), undefined);
  for (const seconds of [0, -5]) assert.equal(snapshotOf(after(seconds), first.counted).snapshot.figures.requestsPerSecond, null);
});

test("snapshot: everything in it is JSON, and no key or connection string is", () => {
  const { snapshot } = snapshotOf(healthy, undefined);
  const text = JSON.stringify(snapshot);
  assert.deepEqual(JSON.parse(text), snapshot);
  assert.doesNotMatch(text, /AccountKey|connectionString|secret/i);
});

test("snapshot: an extent is told with its replicas, a coded one with its fragments", () => {
  const location = { extentId: 7n, sealedLengthBytes: 4_096n };
  const common = { location, stream: "/ps/blob-1/row-data", nodeIds: ["a", "b", "c"], intactCopies: 2, ownerEpoch: 3n };
  const sealed = extentRow(create(ExtentInfoSchema, { ...common, state: ExtentState.SEALED }));
  assert.deepEqual([sealed.id, sealed.state, sealed.sealedBytes, sealed.intact, sealed.nodes], ["7", "sealed", 4_096, 2, ["a", "b", "c"]]);
  const open = extentRow(create(ExtentInfoSchema, { ...common, state: ExtentState.OPEN }));
  assert.deepEqual([open.state, open.sealedBytes, open.intact], ["open", null, null]);
  const coded = extentRow(
    create(ExtentInfoSchema, {
      ...common,
      state: ExtentState.SEALED,
      coded: { profile: "2+1" },
      fragmentNodeIds: ["d", "e", "f"],
      intactFragments: 3,
    }),
  );
  assert.deepEqual([coded.coding, coded.intact, coded.nodes], ["2+1", 3, ["d", "e", "f"]]);
});
