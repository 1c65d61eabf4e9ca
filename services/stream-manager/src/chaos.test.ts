/**
 * An owner appends, is replaced by another, and again, while processes crash, stand still and are cut off. At the end every append that
 * was acknowledged is in the list that the last owner was given, once, in order, and the same on every sealed replica.
 * By hand: STAMP_CHAOS_SEED (first), STAMP_CHAOS_SEEDS (how many), STAMP_CHAOS_WITHOUT (rules switched off, with commas).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleName } from "@stamp/base";
import { fromUtf8, unwrap } from "@stamp/base";
import type { ExtentLocation, StreamInfo } from "@stamp/wire";
import { ExtentState } from "@stamp/wire";
import { Cluster, nodeNames } from "./testing/cluster.ts";

const stream = "/chaos";

/** One owner of the stream: at most one append in flight; on any failure it moves on as stream-layer.md says. */
class Owner {
  readonly #cluster: Cluster;
  readonly #epoch: number;
  /** Numbers that were acknowledged, or found below a sealed length. */
  readonly done: number[] = [];
  /** Numbers of acknowledged appends only. */
  acknowledged: number[] = [];
  deposed = false;
  stop = false;

  constructor(cluster: Cluster, epoch: number) {
    this.#cluster = cluster;
    this.#epoch = epoch;
  }

  async run(): Promise<void> {
    const opened = await this.#open();
    if (opened === undefined) return;
    let last = opened.extents.at(-1)?.extentId ?? 0n;
    let extent: ExtentLocation | undefined;
    let end = 0n;
    let avoid: string[] = [];
    let next = 1;
    let unresolved: { number: number; at: bigint } | undefined;
    while (!this.stop) {
      if (extent === undefined) {
        const answer = await this.#cluster.tryNext(stream, this.#epoch, last, end, avoid, 5_000);
        if (!answer.ok) {
          if (answer.failure.reason === "staleOwnerEpoch") break;
          continue;
        }
        if (unresolved !== undefined) {
          if (answer.value.sealedLengthBytes > unresolved.at) {
            this.done.push(unresolved.number);
            next = unresolved.number + 1;
          }
          unresolved = undefined;
        }
        extent = answer.value.extent;
        last = extent?.extentId ?? 0n;
        end = 0n;
        avoid = [];
      }
      const appended = await this.#cluster.append(extent, this.#epoch, end, `${this.#epoch}:${next}`, 400);
      if (appended.ok) {
        end = appended.value.endBytes;
        this.done.push(next);
        this.acknowledged.push(next);
        next += 1;
        if (next % 25 === 0) extent = undefined;
        await this.#cluster.sim.sleep(10);
      } else {
        unresolved = { number: next, at: end };
        avoid = [extent?.addresses[0] ?? ""];
        extent = undefined;
      }
    }
    this.deposed = true;
  }

  async #open(): Promise<StreamInfo | undefined> {
    for (;;) {
      const request = { name: stream, ownerEpoch: BigInt(this.#epoch), create: true };
      const answer = await this.#cluster.sm((sm, timeoutMs) => sm.openStream(request, { timeoutMs }), 10_000);
      if (answer.ok) return answer.value;
      if (answer.failure.reason === "staleOwnerEpoch") return undefined;
    }
  }
}

async function contentOf(cluster: Cluster, extent: ExtentLocation, address: string): Promise<string[]> {
  const blocks: string[] = [];
  let offsetBytes = 0n;
  while (offsetBytes < (extent.sealedLengthBytes ?? 0n)) {
    const page = unwrap(await cluster.en(address).readBlocks({ extentId: extent.extentId, offsetBytes }, { timeoutMs: 1_000 }));
    for (const block of page.payload) blocks.push(fromUtf8(block));
    if (page.end) break;
    offsetBytes = page.nextOffsetBytes;
  }
  return blocks;
}

interface Run {
  readonly acknowledged: number;
  readonly extents: number;
}

async function chaos(seed: number, without: RuleName[] = []): Promise<Run> {
  const cluster = new Cluster({ seed, managers: ["sm1", "sm2"], without });
  const { sim } = cluster;
  const all = ["lock", "sm1", "sm2", ...nodeNames];
  let run: Run = { acknowledged: 0, extents: 0 };
  await sim.run(async () => {
    await sim.sleep(3_000);
    const owners: Owner[] = [];
    const running: Promise<void>[] = [];
    for (let epoch = 1; epoch <= 3; epoch++) {
      const owner = new Owner(cluster, epoch);
      owners.push(owner);
      running.push(owner.run());
      for (let fault = 0; fault < 3; fault++) {
        await sim.sleep(sim.prng.below(700));
        const victim = sim.prng.pick(all);
        switch (sim.prng.below(4)) {
          case 0:
          case 1:
            sim.crash(victim, { stayDown: true });
            await sim.sleep(sim.prng.below(1_500));
            sim.restart(victim);
            break;
          case 2:
            sim.pause(victim);
            await sim.sleep(sim.prng.below(4_000));
            sim.resume(victim);
            break;
          default: {
            const others = all.filter((name) => name !== victim);
            sim.partition([victim], sim.prng.chance(0.5) ? others : [sim.prng.pick(others)], { oneWay: sim.prng.chance(0.3) });
            await sim.sleep(sim.prng.below(4_000));
            sim.heal();
          }
        }
      }
    }
    await sim.sleep(5_000);
    const last = new Owner(cluster, 4);
    const info = await cluster.open(stream, 4);
    for (const owner of [...owners, last]) owner.stop = true;
    await Promise.all(running);
    await cluster.until(
      "three copies of everything",
      async () => (await cluster.extents()).every((one) => one.intactCopies >= 3 || one.state !== ExtentState.SEALED),
      120_000,
    );
    const read: string[] = [];
    const locations = unwrap(
      await cluster.sm((sm, timeoutMs) => sm.locateExtents({ extentIds: info.extents.map((one) => one.extentId) }, { timeoutMs })),
    ).extents;
    for (const extent of locations) {
      const told = info.extents.find((one) => one.extentId === extent.extentId);
      assert.equal(extent.sealedLengthBytes, told?.sealedLengthBytes);
      const copies = await Promise.all(extent.addresses.map((address) => contentOf(cluster, extent, address)));
      for (const copy of copies) assert.deepEqual(copy, copies[0], `replicas of extent ${extent.extentId} differ`);
      read.push(...(copies[0] ?? []));
    }
    let acknowledged = 0;
    for (const [i, owner] of owners.entries()) {
      const mine = read.filter((text) => text.startsWith(`${i + 1}:`)).map((text) => Number(text.split(":")[1]));
      assert.deepEqual(
        mine,
        mine.toSorted((a, b) => a - b),
        `owner ${i + 1}: out of order`,
      );
      assert.equal(new Set(mine).size, mine.length, `owner ${i + 1}: twice`);
      for (const number of owner.done) assert.ok(mine.includes(number), `owner ${i + 1}: ${number} is lost`);
      acknowledged += owner.acknowledged.length;
    }
    run = { acknowledged, extents: locations.length };
  });
  return run;
}

test("stream layer: nothing acknowledged is lost or differs, whatever crashes, stands still or is cut off", async () => {
  const from = Number(process.env.STAMP_CHAOS_SEED ?? 1);
  const count = Number(process.env.STAMP_CHAOS_SEEDS ?? 4);
  const without = (process.env.STAMP_CHAOS_WITHOUT ?? "").split(",").filter((name) => name !== "") as RuleName[];
  let acknowledged = 0;
  let extents = 0;
  for (let seed = from; seed < from + count; seed++) {
    const run = await chaos(seed, without);
    acknowledged += run.acknowledged;
    extents += run.extents;
  }
  assert.ok(acknowledged > 50 * count, `${acknowledged} appends are too few to say anything`);
  assert.ok(extents > 3 * count);
});
