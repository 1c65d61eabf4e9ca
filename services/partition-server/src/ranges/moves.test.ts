/**
 * Leases, moves and fencing with the real partition servers, partition managers and lock service on virtual time; only the streams are
 * replaced by what they promise. The workload is that of model/move.pml: one register, written with rising numbers under its ETag, read
 * by whoever believes to serve it. Nobody ever reads less than was acknowledged or read before.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { LockService, PartitionManager } from "@stamp/wire";
import { partitionServerConfigSchema } from "../config.ts";
import { PartitionServerRole } from "../partition-server.ts";
import { Client, cluster, lease, managers, runSeed, serveable, servers } from "../testing/moves-harness.ts";
import type { TestStreams } from "../testing/streams.ts";

test("moves: under crashes, pauses and cut networks nobody reads less than was acknowledged, and all is served again", async () => {
  let reads = 0;
  let writes = 0;
  for (let seed = 1; seed <= 12; seed++) {
    const floor = await runSeed(seed, allRules).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    });
    reads += floor.reads;
    writes += floor.writes;
  }
  assert.ok(reads > 1_000 && writes > 300, `${reads} reads, ${writes} writes: the workload has to work`);
});

export const seedsUntilFailure = async (off: readonly RuleName[], seedsMax: number): Promise<number | undefined> => {
  for (let seed = 1; seed <= seedsMax; seed++) {
    try {
      await runSeed(seed, rulesWithout(...off));
    } catch (error) {
      if (process.env.STAMP_SHOW_FAILURES) console.log(off.join("+"), seed, String(error));
      return seed;
    }
  }
  return undefined;
};

async function servedBy(client: Client): Promise<string | undefined> {
  await client.refresh();
  return client.ranges.find((range) => range.table === "Blob")?.server;
}

test("moves: four ranges are spread over two servers, and the account of the configuration is there", async () => {
  const { sim } = cluster(1);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.until(
      async () => {
        await client.refresh();
        const counts = servers.map((server) => client.ranges.filter((range) => range.server === server && range.loaded).length);
        return counts.every((count) => count === 2);
      },
      10_000,
      "two ranges each",
    );
    await sim.until(() => sim.role("pm-1")?.status.ready === true && sim.role("pm-2")?.status.ready === true, 10_000, "managers ready");
    const states = managers.map((name) => sim.role(name)?.status.state).sort();
    assert.deepEqual(states, ["leader", "standby"]);
  });
});

/** Virtual time from the fault until the register is served again. */
async function downtimeMs(fault: (sim: Simulation, server: string) => void): Promise<number> {
  const { sim } = cluster(3);
  return sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(10_000);
    const server = (await servedBy(client)) as string;
    fault(sim, server);
    const from = sim.nowMs;
    await sim.until(async () => (await client.refresh()) && (await client.read()) !== undefined, 30_000, "served again");
    return sim.nowMs - from;
  });
}

test("moves: a server that is killed and started again serves within 3 s of it", async () => {
  const took = await downtimeMs((sim, server) => sim.crash(server, { unsynced: "kept", silent: false }));
  assert.ok(took < 3_000, `${took} ms`);
});

test("moves: the ranges of a server that stays dead are served elsewhere within 8 s", async () => {
  const took = await downtimeMs((sim, server) => sim.crash(server, { stayDown: true }));
  assert.ok(took < 8_000, `${took} ms`);
});

test("moves: a server that comes back after it was given up gets its part of the ranges again", async () => {
  const { sim } = cluster(5, allRules, ["pm-1"]);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    const counts = async (): Promise<readonly number[]> => {
      await client.refresh();
      return servers.map((server) => client.ranges.filter((range) => range.server === server && range.loaded).length);
    };
    await sim.until(async () => (await counts()).every((count) => count === 2), 10_000, "two ranges each");
    const [victim = ""] = servers;
    sim.crash(victim, { stayDown: true });
    await sim.until(async () => (await counts())[1] === 4, 20_000, "all at the other one");
    // Nobody answers by its name for longer than a server may be silent.
    await sim.sleep(10_000);
    sim.restart(victim);
    await sim.until(async () => (await counts()).every((count) => count === 2), 10_000, "two ranges each again");
  });
});

test("moves: a server that only the managers can't reach is given up, and its ranges are served elsewhere", async () => {
  const took = await downtimeMs((sim, server) => {
    sim.partition([server], managers);
    sim.partition([server], ["client"]);
  });
  assert.ok(took > 5_000 && took < 20_000, `${took} ms`);
});

test("moves: traffic does not notice that the leading manager dies, and the next one goes on with the same map", async () => {
  const { sim, streams } = cluster(5);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(10_000);
    await client.refresh();
    const before = client.version;
    const loads = streams.loads;
    const leader = managers.find((name) => sim.role(name)?.status.state === "leader") as string;
    sim.crash(leader, { stayDown: true });
    for (let i = 0; i < 200; i++) {
      assert.ok(await client.read(), `read ${i}`);
      await sim.sleep(50);
    }
    assert.ok(await client.refresh());
    assert.equal(client.version, before);
    assert.equal(streams.loads, loads, "nothing was loaded again");
  });
});

/** Starts a leftover of another cluster: a process with a name that is taken, on a folder and an address of its own. */
function leftOver(sim: Simulation, streams: TestStreams, name: string): void {
  const config = partitionServerConfigSchema.parse({ name, listen: `left-over-${name}`, lockService: "lock", ...lease });
  sim.addProcess(`left-over-${name}`, (world) => new PartitionServerRole(world, config, streams.engines(world)), { restartAfterMs: 800 });
}

test("moves: processes of the same names do not take the leases from each other, and the ranges stay where they are", async () => {
  const { sim, streams } = cluster(6);
  for (const name of servers) leftOver(sim, streams, name);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(120_000);
    await client.refresh();
    assert.ok(await client.read());
    const epochs = client.ranges.map((range) => Number(range.ownerEpoch));
    assert.ok(Math.max(...epochs) <= 2 * client.ranges.length, `owner epochs ${epochs.join(", ")} for ${client.ranges.length} ranges`);
  });
});

test("moves: servers whose leases come and go are not chased with one owner epoch after another", async () => {
  const { sim } = cluster(7);
  for (const name of servers) sim.crash(name, { stayDown: true });
  await sim.run(async () => {
    const lock = sim.world("churn").transport.client("lock", LockService);
    // Leases of processes that nobody can call: taken, and taken over by the next start 200 ms later.
    for (let incarnation = 100n; sim.nowMs < 120_000; incarnation++) {
      for (const name of servers) {
        const instance = `${name} ${incarnation}`;
        const request = { name: `ps/${name}`, holder: name, identity: "churn", instance, incarnation, address: "nobody", termMs: 6_000 };
        await lock.acquireLease(request, { timeoutMs: 500 });
      }
      await sim.sleep(200);
    }
    const client = new Client(sim, "client");
    await client.refresh();
    const highest = Math.max(...client.ranges.map((range) => Number(range.ownerEpoch)));
    assert.ok(highest <= 40 * client.ranges.length, `owner epoch ${highest} after 120 s with ${client.ranges.length} ranges`);
    assert.ok(highest > client.ranges.length, "the leases were seen");
  });
});

/** Where the blobs are served, another server, and the move there by hand. */
async function toOther(sim: Simulation, client: Client) {
  const from = (await servedBy(client)) as string;
  const to = servers.find((server) => server !== from) as string;
  const rangeId = client.ranges.find(({ table }) => table === "Blob")?.rangeId ?? "";
  const manager = sim.world("client").transport.client("pm-1", PartitionManager);
  return { from, to, move: () => manager.movePartition({ rangeId, server: to }, { timeoutMs: 60_000 }) };
}

test("moves: a range that is to move to a server that does not answer stays where it is served", async () => {
  const { sim, streams } = cluster(7, allRules, ["pm-1"]);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(10_000);
    const { from, to, move } = await toOther(sim, client);
    const loads = streams.loads;
    // Its lease goes on for seconds.
    sim.pause(to);
    const moved = await move();
    assert.match(moved.ok ? "" : moved.failure.message, /does not answer now: blob-1 stays at /);
    assert.equal(await servedBy(client), from);
    assert.ok(await client.read(), "served without a break");
    assert.equal(streams.loads, loads);
    sim.resume(to);
  });
});

test("moves: whoever asked for a move is told at once where the range is when the server that was to take it dies", async () => {
  const { sim } = cluster(8, allRules, ["pm-1"], [], 60_000);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(10_000);
    const { to, move } = await toOther(sim, client);
    const moving = move();
    await sim.until(async () => (await servedBy(client)) === to, 10_000, "given to the other server");
    sim.crash(to, { stayDown: true });
    const moved = await moving;
    if (!moved.ok) assert.match(moved.failure.message, /could not take blob-1: it is served by /);
    assert.ok(!moved.ok, "it died before it had loaded the range");
    await sim.until(async () => (await client.refresh()) && (await client.read()) !== undefined, 30_000, "served again");
  });
});
