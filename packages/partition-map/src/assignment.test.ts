import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout } from "@stamp/base";
import {
  type AssignmentState,
  hasIdleServer,
  heldCounts,
  leaseOver,
  leastLoaded,
  nextSteps,
  type Progress,
  rebalance,
  type ServerLease,
} from "./assignment.ts";
import { firstRangeOf, type Range } from "./range.ts";

const lease = (server: string, leaseEpoch: number, more: Partial<ServerLease> = {}): ServerLease => ({
  server,
  address: `${server}:1`,
  leaseEpoch,
  ended: false,
  renewalsRefused: false,
  ...more,
});
const range = (rangeId: string, server: string, leaseEpoch: number, table: Range["table"] = "Blob"): Range => ({
  ...firstRangeOf(table),
  rangeId,
  server,
  leaseEpoch,
});
const state = (
  ranges: Range[],
  leases: ServerLease[],
  progress: Record<string, Progress["kind"]> = {},
  more: Partial<AssignmentState> = {},
): AssignmentState => ({
  ranges,
  leases,
  progress: new Map(Object.entries(progress).map(([id, kind]) => [id, { kind }])),
  unreachable: new Set(),
  avoided: new Set(),
  rules: allRules,
  heatOf: () => 0,
  ...more,
});
const text = (s: AssignmentState): string[] =>
  nextSteps(s).map((step) => {
    if (step.kind === "refuse") return `refuse ${step.server}/${step.leaseEpoch}`;
    return step.kind === "assign"
      ? `assign ${step.range.rangeId} to ${step.to.server}/${step.to.leaseEpoch}`
      : `${step.kind} ${step.range.rangeId}`;
  });

test("assignment: new ranges are spread evenly over live servers", () => {
  const ranges = ["r1", "r2", "r3", "r4"].map((id) => range(id, "", 0));
  assert.deepEqual(text(state(ranges, [lease("a", 1), lease("b", 1), lease("c", 1, { ended: true })])), [
    "assign r1 to a/1",
    "assign r2 to b/1",
    "assign r3 to a/1",
    "assign r4 to b/1",
  ]);
  assert.deepEqual(text(state(ranges, [])), []);
});

test("assignment: those that are asked most are given away first, and spread over the servers", () => {
  const ranges = ["cold", "hot", "warm", "hottest"].map((id) => range(id, "dead", 1));
  const heats: Record<string, number> = { hottest: 9, hot: 8, warm: 1 };
  const heatOf = ({ rangeId }: Range): number => heats[rangeId] ?? 0;
  assert.deepEqual(text(state(ranges, [lease("a", 1), lease("b", 1), lease("dead", 1, { ended: true })], {}, { heatOf })), [
    "assign hottest to a/1",
    "assign hot to b/1",
    "assign warm to a/1",
    "assign cold to b/1",
  ]);
});

test("assignment: an assigned range is loaded, a loaded or busy one left alone, one to be moved closed", () => {
  const leases = [lease("a", 5), lease("b", 1)];
  const one = [range("r", "a", 5)];
  assert.deepEqual(text(state(one, leases)), ["load r"]);
  assert.deepEqual(text(state(one, leases, { r: "loaded" })), []);
  assert.deepEqual(text(state(one, leases, { r: "busy" })), []);
  assert.deepEqual(text(state(one, leases, { r: "closing" })), ["close r"]);
  assert.deepEqual(text(state(one, leases, { r: "closed" })), ["assign r to b/1"]);
});

test("assignment: a range moves when the lock service says that the lease is over, whatever was under way", () => {
  for (const kind of ["idle", "busy", "loaded", "closing"] as const) {
    assert.deepEqual(
      text(state([range("r", "a", 5)], [lease("a", 5, { ended: true }), lease("b", 1)], { r: kind })),
      ["assign r to b/1"],
      kind,
    );
    assert.deepEqual(text(state([range("r", "a", 5)], [lease("a", 6), lease("b", 1)], { r: kind })), ["assign r to a/6"], kind);
  }
});

test("assignment: a server that can't be reached keeps its range until its lease is over; its renewals are refused once", () => {
  const unreachable = { unreachable: new Set(["a"]) };
  const ranges = [range("r1", "a", 5), range("r2", "a", 5)];
  const progress = { r1: "loaded", r2: "busy" } as const;
  assert.deepEqual(text(state(ranges, [lease("a", 5), lease("b", 1)], progress, unreachable)), ["refuse a/5"]);
  const refused = [lease("a", 5, { renewalsRefused: true }), lease("b", 1)];
  assert.deepEqual(text(state(ranges, refused, progress, unreachable)), []);
  const ended = [lease("a", 5, { renewalsRefused: true, ended: true }), lease("b", 1)];
  assert.deepEqual(text(state(ranges, ended, progress, unreachable)), ["assign r1 to b/1", "assign r2 to b/1"]);
  const without = { ...unreachable, rules: rulesWithout("waitLeaseOut") };
  assert.deepEqual(text(state(ranges, refused, progress, without)), ["assign r1 to b/1", "assign r2 to b/1"]);
});

test("assignment: a server that took a new lease but can't be reached gets nothing", () => {
  const s = state([range("r", "a", 5)], [lease("a", 6), lease("b", 1)], {}, { unreachable: new Set(["a"]) });
  assert.deepEqual(text(s), ["assign r to b/1"]);
});

test("assignment: a server that could not load a range gets none while there is another, and the ranges that it has stay", () => {
  const avoided = { avoided: new Set(["a"]) };
  const ranges = [range("new", "", 0), range("r1", "a", 5), range("r2", "b", 1), range("r3", "b", 1), range("r4", "b", 1)];
  const loaded = { r1: "loaded", r2: "loaded", r3: "loaded", r4: "loaded" } as const;
  const leases = [lease("a", 5), lease("b", 1)];
  assert.deepEqual(text(state(ranges, leases, loaded)), ["assign new to a/5"]);
  assert.deepEqual(text(state(ranges, leases, loaded, avoided)), ["assign new to b/1"]);
  assert.deepEqual(text(state(ranges.slice(0, 2), [lease("a", 5)], loaded, avoided)), ["assign new to a/5"]);
  const { rangeId } = rebalance(state(ranges.slice(1), leases, loaded)) ?? {};
  assert.equal(rangeId, "r2");
  assert.equal(rebalance(state(ranges.slice(1), leases, loaded, avoided)), undefined);
  const three = [...leases, lease("c", 1)];
  assert.equal(leastLoaded(state(ranges.slice(1), three, loaded, { avoided: new Set(["c"]) }), "b"), "a");
  assert.equal(leastLoaded(state(ranges.slice(1), leases, loaded, avoided), "b"), "a");
});

test("assignment: without waitForClosed a range that is to move is given away before its server said Closed", () => {
  const s = state([range("r", "a", 5)], [lease("a", 5), lease("b", 1)], { r: "closing" }, { rules: rulesWithout("waitForClosed") });
  assert.deepEqual(text(s), ["assign r to b/1"]);
});

test("assignment: a lease is over only by the lock service's word", () => {
  assert.equal(leaseOver(range("r", "a", 5), [lease("a", 5)]), false);
  assert.equal(leaseOver(range("r", "a", 5), [lease("a", 5, { renewalsRefused: true })]), false);
  assert.equal(leaseOver(range("r", "a", 5), [lease("a", 5, { ended: true })]), true);
  assert.equal(leaseOver(range("r", "a", 5), [lease("a", 6)]), true);
  assert.equal(leaseOver(range("r", "", 0), []), true);
});

test("rebalance: from a server with two more than the least, least asked table first, and only when all is settled", () => {
  const ranges = [range("b", "a", 1, "Blob"), range("e", "a", 1, "Entity"), range("m", "a", 1, "Message")];
  const loaded = { b: "loaded", e: "loaded", m: "loaded" } as const;
  assert.equal(rebalance(state(ranges, [lease("a", 1), lease("z", 1)], loaded))?.rangeId, "m");
  assert.equal(rebalance(state(ranges, [lease("a", 1), lease("z", 1)], { ...loaded, e: "busy" })), undefined);
  assert.equal(rebalance(state(ranges, [lease("a", 1)], loaded)), undefined);
  const even = [range("b", "a", 1), range("e", "a", 1), range("m", "z", 1)];
  assert.equal(rebalance(state(even, [lease("a", 1), lease("z", 1)], loaded)), undefined);
});

test("an idle server is one that could have ranges and has none while another has two", () => {
  const two = [range("r1", "a", 1), range("r2", "a", 1)];
  const leases = [lease("a", 1), lease("b", 1)];
  assert.equal(hasIdleServer(state(two, leases)), true);
  assert.equal(hasIdleServer(state(two.slice(1), leases)), false, "nobody has one too many");
  assert.equal(hasIdleServer(state([...two, range("r3", "b", 1)], leases)), false);
  assert.equal(hasIdleServer(state(two, leases, {}, { unreachable: new Set(["b"]) })), false);
  assert.equal(hasIdleServer(state(two, leases, {}, { avoided: new Set(["b"]) })), false);
  assert.equal(hasIdleServer(state(two, [lease("a", 1), lease("b", 1, { ended: true })])), false);
});

test("assignment: a turn over thousands of ranges looks at each lease a few times, not once for each range", () => {
  let looks = 0;
  const servers = Array.from({ length: 40 }, (_, i) => `s${i}`);
  const leases = servers.map((server) =>
    Object.defineProperty(lease(server, 1), "server", {
      enumerable: true,
      get: () => {
        looks++;
        return server;
      },
    }),
  );
  const ranges = Array.from({ length: 2_000 }, (_, i) => range(`r${i}`, `s${i % 40}`, 1));
  const served = state(ranges, leases, Object.fromEntries(ranges.map(({ rangeId }) => [rangeId, "loaded"])));
  assert.deepEqual(nextSteps(served), []);
  assert.equal(leastLoaded(served, "s0"), "s1");
  assert.deepEqual(
    [...heldCounts(ranges, leases)],
    servers.map((server) => [server, 50]),
  );
  assert.ok(looks < 20 * servers.length, `${looks} looks`);
});

test("assignment: what servers had that are gone is spread evenly, the hottest first", () => {
  const servers = Array.from({ length: 7 }, (_, i) => lease(`s${i}`, 2));
  const ranges = Array.from({ length: 700 }, (_, i) => range(`r${i}`, "gone", 1));
  const steps = nextSteps(state(ranges, servers, {}, { heatOf: ({ rangeId }) => Number(rangeId.slice(1)) }));
  const given = steps.map((step) => (step.kind === "assign" ? `${step.range.rangeId} ${step.to.server}` : step.kind));
  assert.deepEqual(given.slice(0, 8), ["r699 s0", "r698 s1", "r697 s2", "r696 s3", "r695 s4", "r694 s5", "r693 s6", "r692 s0"]);
  const counts = Map.groupBy(given, (text) => text.split(" ")[1]);
  assert.deepEqual(
    [...counts.values()].map(({ length }) => length),
    servers.map(() => 100),
  );
});
