import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { featureLevel } from "@stamp/base";
import { ProcessVersionsSchema } from "@stamp/wire";
import type { StampFacts } from "../health/facts.ts";
import { all, healthy, paused, withAnswer, withFacts, withLevel } from "../health/testing/healthy.ts";
import { finalize, type UpgradeDoor } from "./finalize.ts";
import { upgradeLine, upgradeStateOf } from "./upgrade-state.ts";

const older = withAnswer("extent-node-2", { versions: undefined, release: "0.0.9" });
const unheard = withAnswer("front-end-1", { versions: create(ProcessVersionsSchema, { featureLevel, levelInUse: 0 }) });

test("upgrade: a stamp whose processes all know its level has nothing to do", () => {
  assert.deepEqual(upgradeStateOf(healthy), {
    level: featureLevel,
    target: featureLevel,
    possible: featureLevel,
    inTheWay: [],
    toHear: [],
    besides: [],
  });
  assert.equal(upgradeLine(upgradeStateOf(healthy)), String(featureLevel));
  assert.deepEqual(upgradeStateOf(paused("front-end-1")(healthy)).inTheWay, [], "who is silent is in nobody's way then");
  const [old] = upgradeStateOf(older(healthy)).inTheWay;
  assert.deepEqual([old?.process, old?.knows], ["extent-node-2", 0], "who is too old for the level is told still");
});

test("upgrade: an older process, a silent one, and a node that only the stream manager knows are each named once, with the reason", () => {
  const told = ["extent-node-2 (extent-node) has not told which level it knows", "extent-node-9 (extent-node) is down"];
  const state = upgradeStateOf(all(withLevel(0, told), older, paused("front-end-1"))(healthy));
  assert.deepEqual([state.level, state.target, state.possible], [0, featureLevel, 0]);
  assert.deepEqual(
    state.inTheWay.map(({ process, knows }) => [process, knows]),
    [
      ["extent-node-2", 0],
      ["front-end-1", undefined],
      ["extent-node-9", undefined],
    ],
  );
  assert.match(state.inTheWay[0]?.why ?? "", /before feature levels/);
  assert.match(state.inTheWay[1]?.why ?? "", /does not answer \(timeout/);
  assert.equal(state.inTheWay[2]?.why, "(extent-node) is down");
});

test("upgrade: a stamp whose leading stream manager is of the release before has level 0, and the leader is in the way", () => {
  const before = (facts: StampFacts): StampFacts => ({
    ...facts,
    streamLayer: facts.streamLayer && { ...facts.streamLayer, level: undefined },
  });
  const state = upgradeStateOf(all(before, withAnswer("stream-manager-1", { versions: undefined }))(healthy));
  assert.deepEqual([state.level, state.possible], [0, 0]);
  assert.deepEqual(
    state.inTheWay.map(({ process }) => process),
    ["stream-manager-1"],
  );
});

test("upgrade: without a stream manager that answers the level is not known, and nothing is possible", () => {
  const state = upgradeStateOf({ ...healthy, streamLayer: undefined });
  assert.deepEqual([state.level, state.possible, state.toHear], [undefined, 0, []]);
  assert.match(upgradeLine(state), /not known/);
});

test("upgrade: a stamp that proves no name at a geo door keeps the level where it is, and is named with the command that helps", async () => {
  const nameless = withFacts("front-end-1", { geoNamelessPeers: ["south-1"] });
  const state = upgradeStateOf(all(withLevel(3), nameless)(healthy));
  assert.deepEqual([state.level, state.possible], [3, 3]);
  assert.deepEqual(
    state.inTheWay.map(({ process }) => process),
    ["front-end-1"],
  );
  assert.match(state.inTheWay[0]?.why ?? "", /stamp south-1 does not prove its name .*stamp secret geo-peer --for south-1/);
  const door = stampThatBecomes(all(withLevel(3), nameless)(healthy), withLevel(3)(healthy), healthy);
  assert.deepEqual(await finalize(door, 10_000), { level: featureLevel, before: 3 });
  assert.deepEqual(door.recorded, [featureLevel]);
  // When the stamp has the level already, no peer is in its way.
  assert.deepEqual(upgradeStateOf(nameless(healthy)).inTheWay, []);
});

/** A stamp that changes with each look at it. */
function stampThatBecomes(...looks: readonly StampFacts[]): UpgradeDoor & { readonly recorded: number[]; readonly told: string[] } {
  let look = 0;
  let nowMs = 0;
  const recorded: number[] = [];
  const told: string[] = [];
  return {
    recorded,
    told,
    state: async () => upgradeStateOf(looks[Math.min(look++, looks.length - 1)] as StampFacts),
    record: async (level) => void recorded.push(level),
    pause: async () => {
      nowMs += 500;
    },
    nowMs: () => nowMs,
    tell: (how) => void told.push(how),
  };
}

test("finalize: waits for a process that is being replaced, records the level once, and waits until every process has heard it", async () => {
  const replacing = all(withLevel(0), older)(healthy);
  const door = stampThatBecomes(replacing, replacing, withLevel(0)(healthy), all(withLevel(featureLevel), unheard)(healthy), healthy);
  assert.deepEqual(await finalize(door, 60_000), { level: featureLevel, before: 0 });
  assert.deepEqual(door.recorded, [featureLevel]);
  assert.ok(door.told.some((line) => /waits for 1 processes, first extent-node-2/.test(line)));
  assert.ok(door.told.some((line) => /to hear it, first front-end-1/.test(line)));
});

test("finalize: an old process or a silent one that stays is named, and nothing is recorded", async () => {
  for (const [change, named] of [
    [older, /extent-node-2: it is of a release before feature levels, release 0\.0\.9, knows level 0/],
    [paused("front-end-1"), /front-end-1: it does not answer \(timeout after 1,200 ms\)/],
  ] as const) {
    const door = stampThatBecomes(all(withLevel(0), change)(healthy));
    await assert.rejects(finalize(door, 2_000), named);
    assert.deepEqual(door.recorded, []);
  }
});

test("finalize: again, with nothing to do, records nothing", async () => {
  const door = stampThatBecomes(healthy);
  assert.deepEqual(await finalize(door, 2_000), { level: featureLevel, before: featureLevel });
  assert.deepEqual(door.recorded, []);
});
