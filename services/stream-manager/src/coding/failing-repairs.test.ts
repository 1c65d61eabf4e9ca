/** Repairs of fragments that fail each time: they do not keep those of other extents from being made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { clusterOf, code, infoOf, isCoded, names, sealed } from "../testing/coding-harness.ts";

test("failing repairs: extents whose source answers no other node are tried again and again, and others are made anew meanwhile", async () => {
  const cluster = clusterOf(601, ["sm1"], [], { repairBytesPerSecond: 50_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const holders = new Map<bigint, readonly string[]>();
    for (let i = 0; i < 6; i++) {
      const { id } = await sealed(cluster, `/s${i}`);
      unwrap(await code(cluster, id));
      await cluster.until("coded", () => isCoded(cluster, id));
      holders.set(id, (await infoOf(cluster, id))?.fragmentNodeIds ?? []);
    }
    // Two nodes are lost and a third one answers only the manager: what had a fragment on each can't be decoded, what had one on two can.
    const ways = names.flatMap((hung) => names.flatMap((one) => names.map((other) => ({ hung, lost: [one, other] as const }))));
    const countOf = (id: bigint, those: readonly string[]): number => those.filter((name) => holders.get(id)?.includes(name)).length;
    const found = ways
      .filter(({ hung, lost: [one, other] }) => one < other && one !== hung && other !== hung)
      .map(({ hung, lost }) => ({
        ...{ hung, lost },
        failing: [...holders.keys()].filter((id) => countOf(id, [...lost, hung]) === 3),
        others: [...holders.keys()].filter((id) => countOf(id, lost) === 1 && countOf(id, [hung]) === 1),
      }))
      .find(({ failing, others }) => failing.length > 0 && others.length > 0);
    assert.ok(found, "extents of both kinds");
    const { failing, hung, lost, others } = found;
    const rest = names.filter((name) => name !== hung);
    sim.partition([hung], rest);
    for (const name of lost) sim.crash(name, { stayDown: true });
    const intact = async (ids: readonly bigint[]): Promise<(number | undefined)[]> =>
      Promise.all(ids.map(async (id) => (await infoOf(cluster, id))?.intactFragments));
    await cluster.until("the losses are known", async () => (await intact(others)).every((count) => count !== 6), 60_000);
    await cluster.until("the others are whole", async () => (await intact(others)).every((count) => count === 6), 360_000);
    assert.ok((await intact(failing)).every((count) => count !== 6));
    // Their rest is at most five minutes.
    sim.heal();
    await cluster.until("all are whole", async () => (await intact(failing)).every((count) => count === 6), 420_000);
  });
});
