import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RangePartitionSchema } from "@stamp/wire";
import { healthy, withFacts } from "../../health/testing/healthy.ts";
import { HeatHistory } from "./heat-history.ts";

interface Given {
  readonly id: string;
  readonly low?: number;
  readonly high?: number;
  readonly table?: string;
  /** Absent: the server tells no load. */
  readonly load?: number;
}

const keyOf = (byte: number | undefined): Uint8Array<ArrayBuffer> => (byte === undefined ? new Uint8Array() : Uint8Array.of(byte));

/** Facts of a stamp whose ranges are these. */
function facts(nowMs: number, ...given: readonly Given[]) {
  const server = "partition-server-1";
  const ranges = given.map(({ id, low, high, table = "Blob" }) =>
    create(RangePartitionSchema, { rangeId: id, table, lowKey: keyOf(low), highKey: keyOf(high), server, loaded: true }),
  );
  const served = given.flatMap(({ id, load }) =>
    load === undefined ? [] : [{ rangeId: id, load: { readsPerSecond: load, writesPerSecond: 0, throttledPerSecond: 0 } }],
  );
  return { ...withFacts(server, { ranges: served })(healthy), nowMs, partitionLayer: { ranges, servers: [] } };
}

const loadsOf = (history: HeatHistory): Record<string, readonly (number | null)[]> =>
  Object.fromEntries(history.map().bands.map(({ firstRange, loads }) => [firstRange, loads]));

test("heat: a half minute has the most that a range was asked in it, and the next begins a column", () => {
  const history = new HeatHistory();
  for (const [atMs, load] of [
    [60_000, 5],
    [70_000, 9],
    [80_000, 3],
    [90_000, 1],
  ] as const)
    history.took(facts(atMs, { id: "blob-1", load }));
  assert.deepEqual(history.map().columns, [60_000, 90_000]);
  assert.deepEqual(loadsOf(history), { "blob-1": [9, 1] });
});

test("heat: after a split both children have the load of the parent before, and after a merge the busier child's", () => {
  const history = new HeatHistory();
  history.took(facts(0, { id: "blob-1", load: 8 }));
  history.took(facts(30_000, { id: "blob-2", high: 5, load: 1 }, { id: "blob-3", low: 5, load: 7 }));
  assert.deepEqual(loadsOf(history), { "blob-2": [8, 1], "blob-3": [8, 7] });
  history.took(facts(60_000, { id: "blob-4", load: 2 }));
  assert.deepEqual(loadsOf(history), { "blob-4": [8, 7, 2] });
});

test("heat: ranges of another table share no keys, and a silent server's load is not known", () => {
  const history = new HeatHistory();
  history.took(facts(0, { id: "entity-1", table: "Entity", load: 4 }, { id: "blob-1" }));
  assert.deepEqual(loadsOf(history), { "blob-1": [null], "entity-1": [4] });
  history.took(facts(10_000, { id: "entity-1", table: "Entity" }, { id: "blob-1", load: 2 }));
  assert.deepEqual(loadsOf(history), { "blob-1": [2], "entity-1": [4] });
});

test("heat: of 10,000 ranges a page gets few bands, each with its busiest", () => {
  const history = new HeatHistory();
  const low = (at: number): Uint8Array<ArrayBuffer> => (at === 0 ? new Uint8Array() : Uint8Array.of(at >> 8, at & 255));
  const many = facts(0, ...Array.from({ length: 10_000 }, (_, at) => ({ id: `blob-${at}`, load: at === 4_321 ? 700 : 1 })));
  for (const [at, range] of many.partitionLayer.ranges.entries()) {
    range.lowKey = low(at);
    range.highKey = at === 9_999 ? new Uint8Array() : low(at + 1);
  }
  history.took(many);
  history.took({ ...many, nowMs: 30_000 });
  const { bands } = history.map();
  assert.ok(bands.length <= 64, `${bands.length} bands`);
  assert.equal(
    bands.reduce((sum, { ranges }) => sum + ranges, 0),
    10_000,
  );
  assert.deepEqual(
    bands.filter(({ loads }) => loads.includes(700)).map(({ loads }) => loads),
    [[700, 700]],
  );
});

test("heat: an hour is kept, and looks within five seconds are passed over", () => {
  const history = new HeatHistory();
  for (let column = 0; column < 130; column++) history.took(facts(column * 30_000, { id: "blob-1", load: 1 }));
  assert.equal(history.map().columns.length, 120);
  history.took(facts(129 * 30_000 + 1_000, { id: "blob-1", load: 50 }));
  assert.equal(history.map().bands[0]?.loads.at(-1), 1);
  history.took(facts(129 * 30_000 + 5_000, { id: "blob-1", load: 50 }));
  assert.equal(history.map().bands[0]?.loads.at(-1), 50);
});

test("heat: a look without a map of the ranges changes nothing", () => {
  const history = new HeatHistory();
  history.took(facts(0, { id: "blob-1", load: 8 }));
  history.took({ ...healthy, nowMs: 30_000, partitionLayer: undefined });
  assert.deepEqual(history.map().columns, [0]);
});
