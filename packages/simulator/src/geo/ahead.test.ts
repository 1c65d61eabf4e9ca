/** A process with the primary's secret ships rows with numbers that the primary has not reached: what the copy becomes when the primary goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { featureLevel, type RuleName, rulesWithout, unwrap } from "@stamp/base";
import { accountKeys } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { GeoDoor } from "@stamp/wire";
import { account, beginPair, type OneStamp, until, untilShipped } from "./two-stamps.ts";

const rowKeys = [0, 1, 2].map((i) => `k${i}`);
const options = { timeoutMs: 5_000 };
const far = 1_000_000_000n;

const seen = (at: OneStamp): Promise<readonly (string | undefined)[]> =>
  Promise.all(["p0", "p1"].flatMap((partitionKey) => rowKeys.map((rowKey) => at.read({ partitionKey, rowKey }))));

async function write(at: OneStamp, word: string): Promise<void> {
  for (const [i, rowKey] of rowKeys.entries()) await at.write(`p${i % 2}`, [{ rowKey, text: `${word} ${rowKey}` }]);
}

/** A complete copy that an empty seed with a sequence of its sender's choice has wiped. */
async function inScene(
  seed: number,
  without: readonly RuleName[],
  lineage: bigint,
  work: (a: OneStamp, b: OneStamp, seedAgain: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const sim = new Simulation({ seed, rules: rulesWithout(...without) });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (one) => write(one, "first"));
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await untilShipped(a);
    const geo = a.world.transport.client(b.door, GeoDoor);
    const { low: lowKey, high: highKey } = accountKeys(account);
    const { paired = 0n } = (await a.progress()) ?? {};
    const wipe = async (): Promise<void> => {
      const part = { epoch: 1n, paired, lineage, sequence: far, lastTicket: 0n, lowKey, highKey, rows: [] };
      unwrap(await geo.seed({ account, epoch: 1n, table: "Entity", level: featureLevel, knownLevel: featureLevel, part }, options));
    };
    await wipe();
    assert.ok(
      (await seen(b)).every((row) => row === undefined),
      "the case wipes nothing",
    );
    await work(a, b, wipe);
  });
}

test("ahead: a copy that was wiped under a sequence of 10^9 becomes what the primary has, and says no Last Sync Time before", async () => {
  await inScene(11, [], 0n, async (a, b, wipe) => {
    for (const word of ["second", "third"]) {
      const timeBefore = (await b.lastSyncMs()) ?? 0;
      // The rows of p1 are not written again, and come back all the same.
      await a.write("p0", [{ rowKey: "k0", text: word }]);
      for (let told = 0; told < 3; ) {
        const [progress, copy] = [await a.progress(), await b.lastSyncMs()];
        const says = progress?.pendingCommits === 0n && progress.complete && copy !== undefined && copy > timeBefore;
        if (says) {
          told++;
          assert.deepEqual(await seen(b), await seen(a), word);
        }
        await sleep(a.world.clock, 200);
      }
      // Under the lineage before it changes nothing any more.
      await wipe();
      assert.deepEqual(await seen(b), await seen(a), `${word}, wiped again`);
    }
  });
});

test("ahead: a lineage of a time to come is told, and the copy is not complete for as long", async () => {
  await inScene(12, [], 70_000_000_000n, async (a, b) => {
    await write(a, "second");
    await until(a, "it is told", async () =>
      /a time to come: give the copy up and make it again/.test((await a.progress())?.trouble ?? ""),
    );
    const progress = await a.progress();
    assert.deepEqual([progress?.complete, progress?.lastSyncMs], [false, undefined]);
    assert.notDeepEqual(await seen(b), await seen(a));
  });
});

test("ahead: without the rule copiesAreNotAhead the copy stays wiped, and nothing says so", async () => {
  await inScene(11, ["copiesAreNotAhead"], 0n, async (a, b) => {
    await write(a, "second");
    await untilShipped(a);
    await until(a, "it is said to be complete", async () => (await a.progress())?.complete === true);
    assert.notDeepEqual(await seen(b), await seen(a));
  });
});
