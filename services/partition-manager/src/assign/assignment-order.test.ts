/** In which order a range is given away: minted, written into the map, loaded; and which of many is loaded first. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { rangeOf, withParts } from "../testing/term-harness.ts";

const low = rangeOf("Entity", "entity-1", { high: utf8("m") });
const high = rangeOf("Entity", "entity-2", { low: utf8("m") });

test("assigner: a server is asked to load what the map says already (rule assignmentBeforeLoad)", () =>
  withParts([low, high], async (parts) => {
    parts.takes.writeMs = 500;
    const known: (string | undefined)[] = [];
    parts.answers["ps-2"] = {
      loadPartition: async ({ range }: { range?: { rangeId: string; ownerEpoch: bigint } }) => {
        const inMap = parts.map.range(range?.rangeId ?? "");
        known.push(Number(range?.ownerEpoch) === inMap?.ownerEpoch ? inMap?.server : undefined);
        return ok({});
      },
    };
    assert.ok(parts.assigner.move(low, "ps-2"));
    await parts.until(() => parts.map.range(low.rangeId)?.server === "ps-2" && parts.assigner.calm, 10_000, "it is served there");
    assert.deepEqual(known, ["ps-2"]);
  }));

test("assigner: what became of a range while its owner epoch was minted is not overwritten", () =>
  withParts([low, high], async (parts) => {
    parts.takes.mintMs = 1_000;
    assert.ok(parts.assigner.move(low, "ps-2"));
    await parts.until(() => parts.asked.includes("ps-1 closePartition entity-1"), 5_000, "it is closed");
    await sleep(parts.world.clock, 200);
    const meanwhile = { ...low, ownerEpoch: 50, rangeVersion: low.rangeVersion + 1 };
    unwrap(await parts.map.change(() => ok({ changed: [meanwhile] })));
    await sleep(parts.world.clock, 5_000);
    assert.deepEqual(parts.map.range(low.rangeId), meanwhile);
    assert.ok(!parts.asked.includes("ps-2 loadPartition entity-1"), parts.asked.join());
  }));

test("assigner: of the ranges of a dead server those are loaded first that were asked most, accounts before all", () => {
  const bounds = ["", "c", "f", "i", "l"].map(utf8);
  const entities = bounds.map((from, i) => rangeOf("Entity", `entity-${i}`, { low: from, high: bounds[i + 1] ?? new Uint8Array(0) }));
  const heats: Readonly<Record<string, number>> = { "entity-0": 5, "entity-1": 70, "entity-2": 0, "entity-3": 900, "entity-4": 30 };
  return withParts(
    [...entities, rangeOf("Account", "account")],
    async (parts) => {
      parts.leases["ps-1"] = 0;
      await parts.until(() => parts.assigner.loadedAt("ps-2").length === 6, 10_000, "all are served again");
      const loaded = parts.asked.flatMap((call) => /^ps-2 loadPartition (.+)$/.exec(call)?.[1] ?? []);
      assert.deepEqual(loaded, ["account", "entity-3", "entity-1", "entity-4", "entity-0", "entity-2"]);
    },
    { loadsAtOnceMax: 1, heatOf: ({ rangeId }) => heats[rangeId] ?? 0 },
  );
});
