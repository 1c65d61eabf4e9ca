/** Ranges that a server does not get loaded: they don't stay there while others could serve them, and nobody is asked without pause. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { type Parts, rangeOf, withParts } from "./term-harness.test.ts";

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
