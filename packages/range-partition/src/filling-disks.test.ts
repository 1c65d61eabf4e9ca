/** Commits that are decided by each other while disks fill up and have room again, managers change, and the range moves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, Prng, utf8 } from "@stamp/base";
import type { RangePartition } from "./index.ts";
import { nodeNames, put, read, Stamp } from "./testing/harness.ts";

const mebibyte = 1 << 20;

async function attack(seed: number): Promise<{ ok: number; no: number; unknown: number }> {
  const stamp = new Stamp(seed, { restartAfterMs: 500 });
  const told = { ok: 0, no: 0, unknown: 0 };
  await stamp.sim.run(async () => {
    const { sim } = stamp;
    const prng = new Prng(seed);
    let partition: RangePartition = await stamp.open(1);
    let epoch = 1;
    const loading: Promise<void>[] = [];
    let isOver = false;
    const said = new Map<string, "ok" | "no" | "unknown">();
    const values = new Map<string, number>();
    let count = 0;
    const worker = async (me: number): Promise<void> => {
      while (!isOver) {
        const name = `op ${String(count++).padStart(5, "0")}`;
        const outcome = await partition.transact(
          utf8("q"),
          async (tx) => {
            const value = Number(fromUtf8((await tx.get(utf8("n"))) ?? utf8("0"))) + 1;
            if (prng.chance(0.2)) await sim.sleep(prng.below(prng.chance(0.1) ? 3_000 : 30));
            return { writes: [put("n", `${value}`), put(name, `${value}`)], result: value };
          },
          { timeoutMs: 5_000, pipelined: me > 1 },
        );
        said.set(name, outcome.ok ? "ok" : outcome.failure.applied);
        if (outcome.ok) values.set(name, outcome.value);
        if (!outcome.ok) await sim.sleep(prng.below(200));
        else if (prng.chance(0.5)) await sim.sleep(prng.below(50));
      }
    };
    const workers = [0, 1, 2, 3, 4, 5].map(worker);
    const free = (name: string, bytes: number): void => {
      const disk = sim.disk(name);
      disk.options = { ...disk.options, totalBytes: disk.usedBytes() + bytes };
    };
    for (let i = 0; i < 12; i++) {
      await sim.sleep(prng.below(3_000));
      const dice = prng.below(10);
      if (dice < 5)
        for (const name of nodeNames) free(name, prng.chance(0.8) ? prng.below(2) * 100 * mebibyte + prng.below(40_000) : 2 ** 33);
      else if (dice < 7) free(prng.pick(nodeNames), prng.below(40_000));
      else if (dice === 7) sim.crash("sm1");
      else if (dice === 8) sim.crash(prng.pick(nodeNames));
      else {
        // Another server loads the range, also while no node has room.
        epoch += 1;
        loading.push(
          stamp.load(epoch).then((next) => {
            if (next.ok) partition = next.value;
          }),
        );
      }
      await sim.sleep(prng.below(3_000));
      if (prng.chance(0.5)) for (const name of nodeNames) free(name, 2 ** 33);
    }
    for (const name of nodeNames) free(name, 2 ** 33);
    await Promise.all(loading);
    isOver = true;
    await Promise.all(workers);
    await sim.sleep(20_000);
    const last = await stamp.open(epoch + 1);
    let there = 0;
    const seen = new Set<string>();
    for (const [name, how] of said) {
      const value = await read(last, name);
      told[how] += 1;
      if (how === "ok") assert.equal(value, `${values.get(name)}`, `${name} was told as done`);
      if (how === "no") assert.equal(value, undefined, `${name} was told as not done`);
      if (value === undefined) continue;
      there += 1;
      assert.ok(!seen.has(value), `${name} was decided by what another was decided by`);
      seen.add(value);
    }
    assert.equal(await read(last, "n"), there === 0 ? undefined : `${there}`);
    await last.close();
  });
  return told;
}

test("filling disks: what was told as done is there, what was told as not done is not, and each is decided by those before it", async () => {
  const sum = { ok: 0, no: 0, unknown: 0 };
  for (let seed = 1; seed <= 6; seed++) {
    const told = await attack(seed).catch((error) => {
      throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
    });
    for (const word of ["ok", "no", "unknown"] as const) sum[word] += told[word];
  }
  assert.ok(sum.ok > 100 && sum.no > 100, JSON.stringify(sum));
});
