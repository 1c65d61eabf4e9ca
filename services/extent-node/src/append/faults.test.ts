/** One extent after another under random crashes, cuts and slow disks: what was acknowledged is sealed, everywhere the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { Cluster, names, pattern } from "../testing/harness.ts";

const framed = (size: number): number => 16 + 4 * Math.ceil(size / 65_536) + size;

interface Tally {
  acknowledged: number;
  failed: number;
  crashes: number;
}

/** Seals by the rule of stream-layer.md, on the answers of some replicas; the rest copy or are cut. */
async function sealEverywhere(cluster: Cluster, id: number, known: number): Promise<number> {
  const prng = cluster.sim.prng;
  let lengths: { name: string; length: number }[] = [];
  let committed = known;
  await cluster.sim.until(
    async () => {
      lengths = [];
      for (const name of names) {
        if (!cluster.sim.isUp(name)) continue;
        const answer = await cluster.fence(name, id);
        if (!answer.ok) {
          assert.notEqual(answer.failure.reason, "damaged", `${name}: ${answer.failure.message}`);
          continue;
        }
        lengths.push({ name, length: Number(answer.value.durableBytes) });
        committed = Math.max(committed, Number(answer.value.committedBytes));
        if (prng.chance(0.2)) break;
      }
      return lengths.length > 0;
    },
    30_000,
    "somebody answers the fence",
  );
  for (const { name, length } of lengths) assert.ok(length >= committed, `${name} has ${length} of ${committed} acknowledged`);
  const sealed = Math.min(...lengths.map((each) => each.length));
  cluster.sim.heal();
  for (const name of names) {
    cluster.sim.disk(name).slowFactor = 1;
    cluster.sim.restart(name);
  }
  const sums = new Set<number>();
  for (const name of names) {
    await cluster.ready(name);
    const sources = lengths.map((each) => each.name).filter((each) => each !== name);
    let sum: number | undefined;
    await cluster.sim.until(
      async () => {
        if (!cluster.sim.isUp(name)) cluster.sim.restart(name);
        await cluster.ready(name);
        const crashing = prng.chance(0.15);
        const answer = cluster.seal(name, id, sealed, sources);
        if (crashing) {
          await cluster.sim.sleep(prng.below(4));
          cluster.sim.crash(name, { unsynced: "lost" });
          await answer;
          return false;
        }
        const outcome = await answer;
        if (outcome.ok) sum = outcome.value.checksum;
        else assert.notEqual(outcome.failure.reason, "damaged", `${name}: ${outcome.failure.message}`);
        return outcome.ok;
      },
      30_000,
      `${name} is sealed at ${sealed}`,
    );
    sums.add(sum as number);
  }
  assert.equal(sums.size, 1);
  return sealed;
}

async function round(cluster: Cluster, tally: Tally): Promise<void> {
  const prng = cluster.sim.prng;
  const order = prng.shuffle([...names]);
  const id = await cluster.create(order);
  const primary = order[0] as string;
  const size = 1 + prng.below(prng.chance(0.3) ? 200_000 : 3_000);
  const acknowledged: { i: number; offset: bigint; end: number }[] = [];
  const calls: Promise<void>[] = [];
  let end = 0;
  let stopped = false;
  const writer = (async (): Promise<void> => {
    for (let i = 0; i < 60 && !stopped; i++) {
      const expected = end;
      end += framed(size);
      calls.push(
        cluster.append(primary, id, expected, [pattern(size, i)], 1, 800).then((outcome) => {
          if (outcome.ok) acknowledged.push({ i, offset: outcome.value.offsetsBytes[0] as bigint, end: Number(outcome.value.endBytes) });
          else {
            tally.failed += 1;
            stopped = true;
          }
        }),
      );
      if (prng.chance(0.4)) await cluster.sim.sleep(prng.below(3));
    }
  })();
  await cluster.sim.sleep(prng.below(40));
  const victims = prng.shuffle([...names]).slice(0, 1 + prng.below(3));
  for (const victim of victims) {
    if (prng.chance(0.6)) {
      cluster.sim.crash(victim);
      tally.crashes += 1;
      await cluster.sim.sleep(prng.below(20));
      if (prng.chance(0.7)) cluster.sim.restart(victim);
    } else if (prng.chance(0.5)) {
      cluster.sim.partition(
        [victim],
        names.filter((name) => name !== victim),
        { oneWay: prng.chance(0.5) },
      );
    } else {
      cluster.sim.disk(victim).slowFactor = 50;
    }
  }
  await cluster.sim.sleep(prng.below(2_000));
  stopped = true;
  await writer;
  await Promise.all(calls);
  for (const name of names) if (prng.chance(0.8)) cluster.sim.restart(name);
  const known = Math.max(0, ...acknowledged.map((each) => each.end));
  const sealed = await sealEverywhere(cluster, id, known);
  assert.ok(sealed >= known, `sealed at ${sealed}, acknowledged ${known}`);
  tally.acknowledged += acknowledged.length;
  for (const name of names) {
    for (const { i, offset } of acknowledged) {
      assert.deepEqual(unwrap(await cluster.read(name, id, offset, size)).payload, pattern(size, i), `${name} append ${i}`);
    }
  }
}

async function run(seed: number, rounds: number, off: readonly RuleName[] = []): Promise<Tally> {
  const cluster = new Cluster(seed, { off, config: { journalSegmentsMax: 3, pendingBytesMax: 1_000_000 } });
  const tally = { acknowledged: 0, failed: 0, crashes: 0 };
  await cluster.run(async () => {
    await cluster.allReady();
    for (let i = 0; i < rounds; i++) await round(cluster, tally);
  });
  return tally;
}

test("faults: crashes, cuts and slow disks, then seal: nothing acknowledged is lost, replicas are the same", async () => {
  const sum = { acknowledged: 0, failed: 0, crashes: 0 };
  for (let seed = 200; seed < 212; seed++) {
    const tally = await run(seed, 3);
    sum.acknowledged += tally.acknowledged;
    sum.failed += tally.failed;
    sum.crashes += tally.crashes;
  }
  assert.ok(sum.acknowledged > 100 && sum.failed > 30 && sum.crashes > 15, JSON.stringify(sum));
});

for (const rule of ["ackNeedsAllReplicas", "ackOnlyDurable"] as const) {
  test(`faults: without ${rule} some seed fails`, async () => {
    let failed = 0;
    for (let seed = 200; seed < 230 && failed === 0; seed++) {
      await run(seed, 3, [rule]).catch((error: unknown) => {
        assert.match(String(error), /acknowledged/);
        failed += 1;
      });
    }
    assert.equal(failed, 1);
  });
}
