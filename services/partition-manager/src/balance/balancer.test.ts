/** A step that can't be done doesn't keep those behind it from being done. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Outcome, ok, refused, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { ServerLoadSchema } from "@stamp/wire";
import { balancePolicyOf, partitionManagerConfigSchema } from "../config.ts";
import { type Parts, rangeOf, withParts } from "../testing/term-harness.ts";
import { Balancer } from "./balancer.ts";

const low = rangeOf("Entity", "entity-1", { high: utf8("m") });
const high = rangeOf("Entity", "entity-2", { low: utf8("m") });
const policy = balancePolicyOf(partitionManagerConfigSchema.parse({}));
const betweenStepsMs = 10_000;

const balancerOf = ({ world, map, reshaper, leases }: Parts): Balancer =>
  new Balancer(world, map, reshaper, policy, () => Object.keys(leases));

/** One look and one step, as a term takes them. */
async function step({ world }: Parts, balancer: Balancer, load: Readonly<Record<string, number>>): Promise<void> {
  for (const [rangeId, requestsPerSecond] of Object.entries(load)) {
    const unused = { throttledPerSecond: 0, pending: 0, latencyMs: 1, bytesInPerSecond: 0, bytesOutPerSecond: 0, bytes: 1e8 };
    balancer.told({ rangeId, requestsPerSecond, ageMs: policy.restMs, ...unused });
  }
  await balancer.step();
  await sleep(world.clock, betweenStepsMs);
}

/** Row data of these can't be written. */
const damaged =
  (...ranges: readonly { readonly rangeId: string }[]) =>
  async ({ rangeId }: { rangeId: string }): Promise<Outcome<object>> =>
    ranges.some((range) => range.rangeId === rangeId) ? refused("dataLoss", "damaged", "an extent is lost") : ok({});

const last = ({ done }: Balancer) => [done[0]?.step.rangeId, done[0]?.failure];

test("balancer: when a range can't be moved another one is", () =>
  withParts([low, high], async (parts) => {
    parts.answers["ps-1"] = { checkpointPartition: damaged(low) };
    const balancer = balancerOf(parts);
    const load = { [low.rangeId]: 250, [high.rangeId]: 300 };
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [low.rangeId, "an extent is lost"]);
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [high.rangeId, ""]);
    assert.equal(parts.map.range(high.rangeId)?.server, "ps-2");
  }));

test("balancer: a range that could not be moved is tried again, not at once", () =>
  withParts([low, high], async (parts) => {
    parts.answers["ps-1"] = { checkpointPartition: damaged(low, high) };
    const balancer = balancerOf(parts);
    const load = { [low.rangeId]: 250, [high.rangeId]: 300 };
    for (let i = 0; i < 4; i++) await step(parts, balancer, load);
    assert.deepEqual([balancer.done.length, ...last(balancer)], [2, high.rangeId, "an extent is lost"]);
    parts.answers["ps-1"] = {};
    await sleep(parts.world.clock, policy.restMs);
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [low.rangeId, ""]);
  }));

test("balancer: while ranges are split one after the other, others are moved", () =>
  withParts([low, high], async (parts) => {
    parts.answers["ps-1"] = { suggestSplitKey: async () => refused("failedPrecondition", "badRequest", "no key") };
    const balancer = balancerOf(parts);
    const splits = { [low.rangeId]: policy.splitRequestsPerSecond, [high.rangeId]: policy.splitRequestsPerSecond + 100 };
    for (let i = 0; i < 2; i++) await step(parts, balancer, splits);
    assert.deepEqual(
      balancer.done.map(({ step: { kind, rangeId } }) => `${kind} ${rangeId}`),
      [`move ${low.rangeId}`, `split ${high.rangeId}`],
    );
  }));

test("balancer: one range needs all the CPU, and nobody knows which: ranges are not moved to and fro", () => {
  const load = [100, 112, 102, 38, 98, 16, 98];
  const key = (i: number): Uint8Array => utf8(i === 0 || i === load.length ? "" : String(i));
  const ranges = load.map((_, i) => rangeOf("Entity", `entity-${i}`, { low: key(i), high: key(i + 1) }));
  return withParts(ranges, async (parts) => {
    const balancer = balancerOf(parts);
    const heavy = ranges[3]?.rangeId ?? "";
    for (let looks = 0; looks < 40; looks++) {
      for (const server of Object.keys(parts.leases)) {
        balancer.toldOf(server, create(ServerLoadSchema, { processors: parts.map.range(heavy)?.server === server ? 1.1 : 0 }));
      }
      await step(parts, balancer, Object.fromEntries(ranges.map(({ rangeId }, i) => [rangeId, load[i] ?? 0])));
    }
    const moves = balancer.done.map(({ step: { rangeId, cause } }) => `${rangeId} ${cause}`);
    assert.ok(moves.length > 0 && moves.length <= ranges.length, moves.join());
  });
});

/** Two ranges on one server and one on the other, of which the first look moves one; then the third becomes busy. */
function afterMove(work: (look: (busy: boolean) => Promise<string[]>, parts: Parts, moved: string) => Promise<void>): Promise<void> {
  const there = { ...rangeOf("Blob", "blob-9"), server: "ps-2", serverAddress: "ps-2" };
  return withParts([low, high, there], async (parts) => {
    const balancer = balancerOf(parts);
    const load = { [low.rangeId]: 250, [high.rangeId]: 300, [there.rangeId]: 0 };
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [low.rangeId, ""]);
    const look = async (busy: boolean): Promise<string[]> => {
      const before = balancer.done.length;
      // Too much of the difference for the third range itself to be moved, and too little for a split.
      await step(parts, balancer, busy ? { ...load, [high.rangeId]: 0, [there.rangeId]: policy.splitRequestsPerSecond - 1 } : load);
      return balancer.done.slice(0, balancer.done.length - before).map((done) => `${done.step.kind} ${done.step.rangeId}`);
    };
    await work(look, parts, low.rangeId);
  });
}

test("balancer: a range that was moved goes on only if the reason holds for three looks in a row", () =>
  afterMove(async (look, _, moved) => {
    for (const busy of [true, true, false, true, true]) assert.deepEqual(await look(busy), []);
    assert.deepEqual(await look(true), [`move ${moved}`]);
  }));

test("balancer: ten minutes after its move a range is moved at once", () =>
  afterMove(async (look, { world }, moved) => {
    assert.deepEqual(await look(true), []);
    await sleep(world.clock, 600_000);
    assert.deepEqual(await look(true), [`move ${moved}`]);
  }));

test("balancer: a server that was just given a range is not taken for idle, and keeps what it has", () => {
  const hot = rangeOf("Blob", "blob-9");
  return withParts([low, high, hot], async (parts) => {
    const balancer = balancerOf(parts);
    const load = { [low.rangeId]: 250, [high.rangeId]: 300, [hot.rangeId]: 320 };
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [hot.rangeId, ""]);
    // The figures of its new server begin at 0, and its real load comes back later.
    const young = { throttledPerSecond: 0, pending: 0, latencyMs: 1, bytesInPerSecond: 0, bytesOutPerSecond: 0, bytes: 0 };
    for (let i = 0; i < 5; i++) {
      balancer.told({ rangeId: hot.rangeId, requestsPerSecond: 0, ageMs: i * betweenStepsMs, ...young });
      const { [hot.rangeId]: _, ...others } = load;
      await step(parts, balancer, others);
    }
    assert.equal(balancer.done.length, 1, JSON.stringify(balancer.done));
  });
});
