import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ok, type RuleName, refused, rulesWithout } from "@stamp/base";
import type { World } from "@stamp/ports";
import { NodeClock, NodeRandom } from "@stamp/ports-node";
import { type GetMapRequest, LockService, PartitionMapSchema, type RangePartitionSchema, toWire } from "@stamp/wire";
import { MapCache, unvouchedVersionsMax } from "./map-cache.ts";

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

type Answer = MessageInitShape<typeof PartitionMapSchema>;

interface Leader {
  /** Answer of the manager that holds the lease, when the cache asks for the whole map because of a doubt. */
  readonly whole?: Answer;
  /** Epoch of the manager's lease, by how often the lock service was asked. */
  readonly leaseEpoch?: (asked: number) => bigint;
  readonly without?: readonly RuleName[];
  /** How often a server refuses what the map says, when everything was asked. */
  readonly doubts?: number;
}

/** A cache whose manager answers by this script, one entry per question; the last question is never answered. */
async function follow(script: readonly Answer[], { whole, leaseEpoch = () => 1n, without = [], doubts = 0 }: Leader = {}) {
  const asked: Pick<GetMapRequest, "knownVersion" | "changes">[] = [];
  let confirmed = 0;
  let leases = 0;
  let allAsked = (): void => {};
  const done = new Promise<void>((resolve) => {
    allAsked = resolve;
  });
  const manager = {
    getMap: async ({ knownVersion, changes, waitMs }: GetMapRequest) => {
      // A fake is called with the message as it was written down.
      if (!waitMs) {
        confirmed++;
        return whole === undefined ? refused("unavailable", "connectFailed", "nobody is there") : ok(create(PartitionMapSchema, whole));
      }
      const answer = script[asked.push({ knownVersion, changes }) - 1];
      if (answer !== undefined) return ok(create(PartitionMapSchema, answer));
      allAsked();
      return new Promise(() => {});
    },
  };
  const lockService = { getLease: async () => ok({ leaseEpoch: leaseEpoch(leases++), ended: false, address: "pm-1" }) };
  const transport = { client: (_: string, service: unknown) => (service === LockService ? lockService : manager) };
  const logger = { debug: () => {}, warn: () => {} };
  const rules = rulesWithout(...without);
  const world = { clock: new NodeClock(), random: new NodeRandom(), rules, transport, logger } as unknown as World;
  const cache = new MapCache(world, { lockService: "lock", mapWaitMs: 60_000 });
  cache.start();
  await done;
  for (let i = 0; i < doubts; i++) cache.doubt();
  await new Promise((resolve) => setImmediate(resolve));
  await cache.stop();
  const told = (cache.current?.ranges ?? []).map(({ rangeId, server }) => `${rangeId} ${server}`);
  return { version: cache.current?.version, told, asked, confirmed };
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

const most = BigInt(Number.MAX_SAFE_INTEGER);
const real = { version: 5n, ranges: [rangeOf("a", "", "m"), rangeOf("b", "m", "")] };
const madeUp = { version: most, ranges: [rangeOf("z", "", "")] };
const later = { version: 6n, baseVersion: 5n, ranges: [rangeOf("b", "m", "", "ps-2")] };

test("map cache: a version far ahead is not taken if the leader says another; later maps arrive as before", async () => {
  for (const version of [most, 2n ** 64n - 1n, 6n + BigInt(unvouchedVersionsMax)]) {
    const { told, asked, confirmed } = await follow([real, { ...madeUp, version }, later], { whole: real });
    assert.deepEqual(told, ["a ps-1", "b ps-2"]);
    assert.equal(confirmed, 1);
    assert.deepEqual(
      asked.map(({ knownVersion }) => knownVersion),
      [0n, 5n, 5n, 6n],
    );
  }
});

test("map cache: a made-up version that was taken, as the first one or a little ahead, is left when the leader tells a lower one", async () => {
  for (const script of [
    [madeUp, real, later],
    [real, { ...madeUp, version: 900n }, real, later],
    [{ ...real, version: 2n ** 64n - 1n }, real, later],
  ]) {
    const { version, told } = await follow(script, { whole: real });
    assert.equal(version, 6);
    assert.deepEqual(told, ["a ps-1", "b ps-2"]);
  }
});

test("map cache: without the rule a made-up version keeps every later map out", async () => {
  const { version, told } = await follow([real, madeUp, later, real], { whole: real, without: ["mapsVouched"] });
  assert.deepEqual([version, told], [Number.MAX_SAFE_INTEGER, ["z ps-1"]]);
});

test("map cache: a doubtful version counts if the leader confirms it: after a long silence, and after a restore", async () => {
  const ahead = { version: 1_000_000n, ranges: [rangeOf("c", "", "")] };
  assert.equal((await follow([real, ahead], { whole: ahead })).version, 1_000_000);
  assert.equal((await follow([ahead, real], { whole: real })).version, 5);
});

test("map cache: while nobody can say who leads, a doubtful map is not taken, and one that is asked again comes at rest", async () => {
  const changing = await follow([real, madeUp, madeUp], { whole: madeUp, leaseEpoch: (asked) => BigInt(asked) });
  assert.deepEqual([changing.version, changing.confirmed], [5, 2]);
  const silent = await follow([real, madeUp]);
  assert.deepEqual([silent.version, silent.confirmed], [5, 1]);
});

test("map cache: a map that servers refuse is asked for again, also if its version is the known one, and not more often than once a second", async () => {
  for (const without of [[], ["mapsVouched"]] satisfies RuleName[][]) {
    const { told, confirmed } = await follow([{ ...real, ranges: [rangeOf("a", "", "m"), rangeOf("b", "m", "", "nobody")] }], {
      whole: real,
      without,
      doubts: 3,
    });
    assert.deepEqual(told, without.length === 0 ? ["a ps-1", "b ps-1"] : ["a ps-1", "b nobody"]);
    assert.equal(confirmed, without.length === 0 ? 1 : 0);
  }
});

test("map cache: what a manager tells that leads no more is not taken over a newer map", async () => {
  const { version, told } = await follow(
    [
      { version: 8n, ranges: [rangeOf("b", "", "")] },
      { version: 5n, ranges: [rangeOf("a", "", "")] },
      { version: 8n, ranges: [rangeOf("c", "", "")] },
    ],
    { whole: { version: 8n, ranges: [rangeOf("b", "", "")] } },
  );
  assert.equal(version, 8);
  assert.deepEqual(told, ["b ps-1"]);
});
