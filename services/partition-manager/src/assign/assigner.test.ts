/** Ranges that a server does not get loaded: they don't stay there while others could serve them, and nobody is asked without pause. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { type Parts, rangeOf, withParts } from "../testing/term-harness.ts";

const low = rangeOf("Entity", "entity-1", { high: utf8("m") });
const high = rangeOf("Entity", "entity-2", { low: utf8("m") });

const others = (["Account", "Blob", "Message"] as const).map((table) => rangeOf(table, table.toLowerCase()));

const noStreams = async (): Promise<Outcome<never>> => refused("unavailable", "noPlacement", "the stream manager can't be reached");
const neverAnswered = (parts: Parts) => async (): Promise<Outcome<never>> => {
  await sleep(parts.world.clock, 1_000_000);
  return noStreams();
};

const notTheFirst = async ({ range }: { range?: { rangeId: string } }): Promise<Outcome<object>> =>
  range?.rangeId === low.rangeId ? refused("dataLoss", "damaged", "an extent is lost") : ok({});

/** It dropped the range, and says so when it is asked. */
function dropped({ assigner, map }: Parts): void {
  const range = map.range(low.rangeId);
  if (range !== undefined) assigner.served(range.server, [range], new Map());
}

for (const [text, load] of [
  ["refuses", () => noStreams],
  ["never answers", neverAnswered],
] as const) {
  test(`assigner: a range whose loads its server ${text} is closed there and served by another, the others stay`, () =>
    withParts([low, high], async (parts) => {
      parts.answers["ps-1"] = { loadPartition: load(parts) };
      dropped(parts);
      await parts.until(() => parts.progressOf(low.rangeId) === "loaded", 90_000, "it is served");
      assert.deepEqual(
        [low, high].map(({ rangeId }) => parts.map.range(rangeId)?.server),
        ["ps-2", "ps-1"],
      );
      const calls = parts.asked.filter((call) => call !== "ps-1 loadPartition entity-1");
      assert.deepEqual(calls, ["ps-1 closePartition entity-1", "ps-2 loadPartition entity-1"]);
      assert.deepEqual([...parts.assigner.avoided], ["ps-1"], "it is given nothing else");
      parts.leases["ps-1"] = 2;
      await parts.until(() => parts.assigner.avoided.size === 0, 1_000, "a new process may be given ranges again");
    }));
}

test("assigner: a range that no server gets loaded is asked for about once a second, and given away ever more rarely", () =>
  withParts([low, high], async (parts) => {
    for (const server of ["ps-1", "ps-2"]) parts.answers[server] = { loadPartition: noStreams };
    const { assigned } = parts.assigner.counts;
    dropped(parts);
    await sleep(parts.world.clock, 300_000);
    const loads = parts.asked.filter((call) => call.includes("loadPartition")).length;
    assert.ok(loads > 150 && loads < 600, `${loads} loads in 300 s`);
    const given = parts.assigner.counts.assigned - assigned;
    assert.ok(given >= 3 && given <= 4, `given to ${given} servers in 300 s`);
    parts.answers["ps-1"] = {};
    parts.answers["ps-2"] = {};
    await parts.until(() => parts.progressOf(low.rangeId) === "loaded", 2_000, "it is served as soon as it can be");
  }));

test("assigner: a range that nobody can load does not keep the others from being evened out over a server that joins", () =>
  withParts([low, high, ...others], async (parts) => {
    parts.leases["ps-2"] = 0;
    for (const server of ["ps-1", "ps-2"]) parts.answers[server] = { loadPartition: notTheFirst };
    dropped(parts);
    await sleep(parts.world.clock, 1_000);
    assert.equal(parts.assigner.calm, false, "it may be served in a moment");
    await parts.until(() => parts.assigner.calm, 60_000, "nobody waits for it any more");
    parts.leases["ps-2"] = 2;
    const at = (server: string): number => parts.assigner.loadedAt(server).length;
    await parts.until(() => at("ps-1") === 2 && at("ps-2") === 2, 10_000, "two each");
    assert.notEqual(parts.progressOf(low.rangeId), "loaded");
  }));

test("assigner: a server that has had no range for five minutes gets some, also when nobody saw it join", () =>
  withParts([low, high, ...others], async (parts) => {
    const at = (server: string): number => parts.assigner.loadedAt(server).length;
    await sleep(parts.world.clock, 290_000);
    assert.deepEqual([at("ps-1"), at("ps-2"), parts.asked], [5, 0, []]);
    await parts.until(() => parts.assigner.calm && at("ps-2") === 2, 30_000, "evened out");
  }));

test("assigner: ranges are not evened out over a server that joins before there is room for it", () =>
  withParts([low, high, ...others], async (parts) => {
    parts.leases["ps-2"] = 0;
    await sleep(parts.world.clock, 1_000);
    await parts.until(() => parts.assigner.loadedAt("ps-1").length === 5, 10_000, "one has all");
    parts.asked.length = 0;
    parts.lacks.push("1 of 3 extent nodes have room");
    parts.leases["ps-2"] = 2;
    await sleep(parts.world.clock, 20_000);
    assert.deepEqual(parts.asked, []);
    parts.lacks.length = 0;
    parts.refusals.mint = refused("resourceExhausted", "diskFull", "no room");
    await sleep(parts.world.clock, 20_000);
    assert.deepEqual(parts.asked, [], "whose owner epoch could not be recorded");
    delete parts.refusals.mint;
    await parts.until(() => parts.assigner.calm && parts.assigner.loadedAt("ps-2").length === 2, 10_000, "evened out");
  }));

test("assigner: a lock service that can't refuse renewals is asked about once a second", () =>
  withParts([low, high], async (parts) => {
    parts.refusals.refuseRenewals = refused("resourceExhausted", "diskFull", "no room");
    parts.sim.partition(["pm"], ["ps-1"]);
    await sleep(parts.world.clock, 26_000);
    const times = parts.asked.filter((call) => call === "lock refuseRenewals ps/ps-1").length;
    assert.ok(times > 10 && times < 40, `${times} times in 20 s`);
    assert.equal(parts.assigner.counts.serversRefused, 0);
  }));

/** Events at a server that was given ranges and is asked to load them. */
const meanwhile: readonly (readonly [text: string, happens: (parts: Parts) => Promise<void>, at: readonly string[]])[] = [
  [
    "its lease is lost",
    async ({ leases }) => {
      leases["ps-1"] = 0;
    },
    ["ps-2", "ps-2"],
  ],
  [
    "it starts again under its name",
    async ({ leases, answers }) => {
      leases["ps-1"] = 2;
      answers["ps-1"] = {};
    },
    ["ps-1", "ps-1"],
  ],
  [
    "it and the other one start again at once",
    async ({ leases, answers, world }) => {
      Object.assign(leases, { "ps-1": 0, "ps-2": 0 });
      await sleep(world.clock, 2_000);
      Object.assign(leases, { "ps-1": 2, "ps-2": 2 });
      answers["ps-1"] = {};
    },
    // The other one joined: it gets its part.
    ["ps-1", "ps-2"],
  ],
  [
    "its lease is lost, and the metadata store is full",
    async ({ leases, refusals, world }) => {
      leases["ps-1"] = 0;
      refusals.mint = refused("resourceExhausted", "diskFull", "no room");
      await sleep(world.clock, 10_000);
      delete refusals.mint;
    },
    ["ps-2", "ps-2"],
  ],
];

for (const [text, happens, at] of meanwhile) {
  test(`assigner: while a server loads ranges ${text}: they are served at once and stay so`, () =>
    withParts([low, high], async (parts) => {
      parts.answers["ps-1"] = {
        loadPartition: async () => {
          await sleep(parts.world.clock, 9_000);
          return refused("aborted", "leaseLost", "it was dropped while it was loaded");
        },
      };
      for (const range of [low, high]) parts.assigner.served("ps-1", [range], new Map());
      await sleep(parts.world.clock, 1_000);
      await happens(parts);
      await parts.until(() => parts.assigner.calm, 2_000, "they are served");
      await sleep(parts.world.clock, 15_000);
      const { ranges } = parts.map.current;
      assert.ok(parts.assigner.calm && ranges.every(({ loaded }) => loaded));
      assert.deepEqual(ranges.map(({ server }) => server).sort(), at);
    }));
}

test("assigner: a server that says late that it loaded a range which another has by now counts for nothing", () =>
  withParts([low, high], async (parts) => {
    const loadsIn = (ms: number) => async (): Promise<Outcome<object>> => {
      await sleep(parts.world.clock, ms);
      return ok({});
    };
    parts.answers["ps-1"] = { loadPartition: loadsIn(5_000) };
    parts.answers["ps-2"] = { loadPartition: loadsIn(8_000) };
    dropped(parts);
    await sleep(parts.world.clock, 1_000);
    parts.leases["ps-1"] = 0;
    await sleep(parts.world.clock, 5_500);
    assert.equal(parts.progressOf(low.rangeId), "busy");
    assert.equal(parts.map.range(low.rangeId)?.loaded, false);
    await parts.until(() => parts.progressOf(low.rangeId) === "loaded", 4_000, "the other one serves it");
  }));
