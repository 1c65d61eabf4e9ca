import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Outcome, ok, refused } from "@stamp/base";
import { type RebalancePlan, RebalancePlanSchema } from "@stamp/wire";
import type { StampFacts } from "../../health/facts.ts";
import { healthy } from "../../health/testing/healthy.ts";
import { HeatHistory } from "./heat-history.ts";
import { rangeLists } from "./range-lists.ts";

function world({ facts = healthy as StampFacts, plan = refused("unavailable", "notReady", "not open") as Outcome<RebalancePlan> }) {
  const heat = new HeatHistory();
  heat.took(facts);
  const manager = async () => ({ getRebalancePlan: async () => plan });
  const lists = rangeLists({ facts: () => facts, heat, manager, wallMs: () => 100_000 });
  return (path: string, query: Record<string, string> = {}): Promise<object> =>
    lists[path]?.(new URLSearchParams(query)) ?? Promise.reject(new Error("no such list"));
}

test("ranges of the console: all are listed, one is found by its name, and one that is gone is none", async () => {
  const ask = world({});
  const { items, next } = (await ask("/api/ranges")) as { items: { id: string }[]; next: string | null };
  assert.deepEqual([items.map(({ id }) => id), next], [["blob-1", "entity-1"], null]);
  assert.deepEqual(
    ((await ask("/api/range", { id: "entity-1" })) as { items: { id: string }[] }).items.map(({ id }) => id),
    ["entity-1"],
  );
  assert.deepEqual(await ask("/api/range", { id: "blob-9" }), { items: [], next: null });
});

test("ranges of the console: the heat of one range is one band; of a range that is gone the reason is told", async () => {
  const ask = world({});
  const { bands } = (await ask("/api/heat", { range: "entity-1" })) as { bands: { firstRange: string }[] };
  assert.deepEqual(
    bands.map(({ firstRange }) => firstRange),
    ["entity-1"],
  );
  await assert.rejects(ask("/api/heat", { range: "blob-9" }), /split or merged/);
});

test("ranges of the console: steps are told with their reasons, those that were made with their times and failures", async () => {
  const plan = create(RebalancePlanSchema, {
    automatic: true,
    waitsFor: ["the disks are nearly full"],
    steps: [{ kind: "split", rangeId: "blob-1", why: "900 requests a second" }],
    done: [{ kind: "move", rangeId: "entity-1", to: "partition-server-2", why: "uneven", failure: "busy", msAgo: 30_000n }],
  });
  assert.deepEqual(await world({ plan: ok(plan) })("/api/balance"), {
    isAutomatic: true,
    waitsFor: ["the disks are nearly full"],
    planned: [{ kind: "split", range: "blob-1", to: "", why: "900 requests a second", failure: "", atMs: null }],
    done: [{ kind: "move", range: "entity-1", to: "partition-server-2", why: "uneven", failure: "busy", atMs: 70_000 }],
  });
});

test("ranges of the console: without a manager that answers the page is told why", async () => {
  await assert.rejects(world({})("/api/balance"), /not open/);
  const silent = { ...healthy, partitionLayer: undefined };
  for (const path of ["/api/ranges", "/api/range"])
    await assert.rejects(world({ facts: silent })(path), /no partition manager that leads answered/);
});
