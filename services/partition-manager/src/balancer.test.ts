/** A step that can't be done doesn't keep those behind it from being done. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Outcome, ok, refused, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { ServerLoadSchema } from "@stamp/wire";
import { Balancer } from "./balancer.ts";
import { balancePolicyOf, partitionManagerConfigSchema } from "./config.ts";
import { type Parts, rangeOf, withParts } from "./term-harness.test.ts";

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

/** Its row data can't be written. */
const damaged = async ({ rangeId }: { rangeId: string }): Promise<Outcome<object>> =>
  rangeId === low.rangeId ? refused("dataLoss", "damaged", "an extent is lost") : ok({});

const last = ({ done }: Balancer) => [done[0]?.step.rangeId, done[0]?.failure];

test("balancer: when a range can't be moved another one is", () =>
  withParts([low, high], async (parts) => {
    parts.answers["ps-1"] = { checkpointPartition: damaged };
    const balancer = balancerOf(parts);
    const load = { [low.rangeId]: 300, [high.rangeId]: 250 };
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [low.rangeId, "an extent is lost"]);
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [high.rangeId, ""]);
    assert.equal(parts.map.range(high.rangeId)?.server, "ps-2");
  }));

test("balancer: a range that could not be moved is tried again, not at once", () =>
  withParts([low, high], async (parts) => {
    parts.answers["ps-1"] = { checkpointPartition: damaged };
    const balancer = balancerOf(parts);
    const load = { [low.rangeId]: 300, [high.rangeId]: 1 };
    for (let i = 0; i < 3; i++) await step(parts, balancer, load);
    assert.deepEqual([balancer.done.length, ...last(balancer)], [1, low.rangeId, "an extent is lost"]);
    parts.answers["ps-1"] = {};
    await sleep(parts.world.clock, policy.restMs);
    await step(parts, balancer, load);
    assert.deepEqual(last(balancer), [low.rangeId, ""]);
  }));

test("balancer: one range needs all the CPU: others are moved away from it, and none to and fro", () => {
  const keys = ["d", "h", "m", "r"];
  const ranges = [...keys, ""].map((high, i) => rangeOf("Entity", `entity-${i}`, { low: utf8(keys[i - 1] ?? ""), high: utf8(high) }));
  return withParts(ranges, async (parts) => {
    const balancer = balancerOf(parts);
    const heavy = ranges[1]?.rangeId ?? "";
    for (let looks = 0; looks < 40; looks++) {
      for (const server of Object.keys(parts.leases)) {
        balancer.toldOf(server, create(ServerLoadSchema, { processors: parts.map.range(heavy)?.server === server ? 0.9 : 0 }));
      }
      await step(parts, balancer, Object.fromEntries(ranges.map(({ rangeId }) => [rangeId, 20])));
    }
    assert.ok(
      balancer.done.length > 0 && balancer.done.length <= ranges.length,
      `${balancer.done.length} moves in ${40 * betweenStepsMs} ms`,
    );
    assert.ok(balancer.done.every(({ step: { cause }, failure }) => cause === "byProcessors" && failure === ""));
  });
});
