import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { allRules, ok } from "@stamp/base";
import type { World } from "@stamp/ports";
import { NodeClock, NodeRandom } from "@stamp/ports-node";
import { type GetMapRequest, LockService, PartitionMapSchema, type RangePartitionSchema, toWire } from "@stamp/wire";
import { MapCache } from "./map-cache.ts";

type Wire = MessageInitShape<typeof RangePartitionSchema>;
const bytes = (text: string) => new TextEncoder().encode(text);
const rangeOf = (rangeId: string, low: string, high: string, server = "ps-1"): Wire => ({
  rangeId,
  table: "Blob",
  lowKey: bytes(low),
  highKey: bytes(high),
  server,
  serverAddress: server,
  loaded: true,
});

/** A cache whose manager answers by this script, one entry per question; the last question is never answered. */
async function follow(script: readonly MessageInitShape<typeof PartitionMapSchema>[]) {
  const asked: Pick<GetMapRequest, "knownVersion" | "changes">[] = [];
  let allAsked = (): void => {};
  const done = new Promise<void>((resolve) => {
    allAsked = resolve;
  });
  const manager = {
    getMap: async ({ knownVersion, changes }: GetMapRequest) => {
      const answer = script[asked.push({ knownVersion, changes }) - 1];
      if (answer !== undefined) return ok(create(PartitionMapSchema, answer));
      allAsked();
      return new Promise(() => {});
    },
  };
  const lockService = { getLease: async () => ok({ leaseEpoch: 1n, ended: false, address: "pm-1" }) };
  const transport = { client: (_: string, service: unknown) => (service === LockService ? lockService : manager) };
  const logger = { debug: () => {} };
  const world = { clock: new NodeClock(), random: new NodeRandom(), rules: allRules, transport, logger } as unknown as World;
  const cache = new MapCache(world, { lockService: "lock", mapWaitMs: 60_000 });
  cache.start();
  await done;
  await cache.stop();
  const told = (cache.current?.ranges ?? []).map(({ rangeId, server }) => `${rangeId} ${server}`);
  return { version: cache.current?.version, told, asked };
}

test("map cache: the whole map first, then what changed in it; ranges that are gone go", async () => {
  const { version, told, asked } = await follow([
    { version: 5n, ranges: [rangeOf("a", "", "m"), rangeOf("b", "m", "")] },
    { version: 6n, baseVersion: 5n, ranges: [rangeOf("b", "m", "", "ps-2")] },
    { version: 9n, baseVersion: 6n, ranges: [rangeOf("c", "", "f"), rangeOf("d", "f", "m")], gone: ["a", "unheard-of"] },
    { version: 9n, baseVersion: 9n },
  ]);
  assert.equal(version, 9);
  assert.deepEqual(told, ["c ps-1", "d ps-1", "b ps-2"]);
  assert.deepEqual(
    asked.map(({ knownVersion, changes }) => `${knownVersion} ${changes}`),
    ["0 true", "5 true", "6 true", "9 true", "9 true"],
  );
});

test("map cache: changes of a map that it has not, or that leave a gap, are not taken: the whole map is asked for", async () => {
  for (const wrong of [
    { version: 6n, baseVersion: 4n, ranges: [rangeOf("b", "m", "", "ps-2")] },
    { version: 6n, baseVersion: 5n, gone: ["b"] },
    { version: 6n, baseVersion: toWire(5), ranges: [rangeOf("c", "", "z")] },
  ]) {
    const whole = { version: 7n, ranges: [rangeOf("z", "", "")] };
    const { version, told, asked } = await follow([{ version: 5n, ranges: [rangeOf("a", "", "m"), rangeOf("b", "m", "")] }, wrong, whole]);
    assert.equal(version, 7);
    assert.deepEqual(told, ["z ps-1"]);
    assert.deepEqual(
      asked.map(({ knownVersion, changes }) => `${knownVersion} ${changes}`),
      ["0 true", "5 true", "5 false", "7 true"],
    );
  }
});

test("map cache: a manager that tells the whole map whatever it is asked is understood", async () => {
  const { version, told } = await follow([
    { version: 5n, ranges: [rangeOf("a", "", "")] },
    { version: 8n, ranges: [rangeOf("b", "", "")] },
  ]);
  assert.equal(version, 8);
  assert.deepEqual(told, ["b ps-1"]);
});

test("map cache: what a manager tells that leads no more is not taken over a newer map", async () => {
  const { version, told } = await follow([
    { version: 8n, ranges: [rangeOf("b", "", "")] },
    { version: 5n, ranges: [rangeOf("a", "", "")] },
    { version: 8n, ranges: [rangeOf("c", "", "")] },
  ]);
  assert.equal(version, 8);
  assert.deepEqual(told, ["b ps-1"]);
});
