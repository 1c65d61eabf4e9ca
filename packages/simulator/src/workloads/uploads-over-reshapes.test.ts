/** How long large writes wait while the range they are for is split, moved and merged, on slow disks. Time is virtual: a seed has one answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Simulation } from "@stamp/virtual-time";
import { PartitionManager, type RangePartition } from "@stamp/wire";
import { HttpClient } from "./clients/http-client.ts";
import { type SimulatedCluster, simulatedCluster } from "./cluster.ts";

const uploaders = 8;
const uploadBytes = 100 * 1024;
/** A synced write takes 15 to 60 ms. */
const slowFactor = 60;
/** Timeout of an SDK. */
const uploadTimeoutMs = 60_000;
const options = { timeoutMs: 60_000 };

async function ranges(sim: Simulation): Promise<readonly RangePartition[]> {
  const map = await managerOf(sim).getMap({}, options);
  assert.ok(map.ok);
  return map.value.ranges.filter(({ table }) => table === "Blob");
}

const managerOf = (sim: Simulation) => {
  const leads = ["partition-manager-1", "partition-manager-2"].find((name) => sim.role(name)?.status.state === "leader") ?? "";
  return sim.world("operator").transport.client(leads, PartitionManager);
};

/** Two splits where the server suggests, a move of the middle, and merges until one is left. */
async function reshape(sim: Simulation): Promise<void> {
  for (let splits = 0; splits < 2; splits++) {
    const [range] = await ranges(sim);
    const split = await managerOf(sim).splitPartition({ rangeId: range?.rangeId ?? "" }, options);
    assert.ok(split.ok, split.ok ? "" : split.failure.message);
  }
  const middle = (await ranges(sim))[1]?.rangeId ?? "";
  const moved = await managerOf(sim).movePartition({ rangeId: middle }, options);
  assert.ok(moved.ok, moved.ok ? "" : moved.failure.message);
  while ((await ranges(sim)).length > 1) {
    const merged = await managerOf(sim).mergePartition({ rangeId: (await ranges(sim))[0]?.rangeId ?? "" }, options);
    assert.ok(merged.ok, merged.ok ? "" : merged.failure.message);
  }
}

function slowDisks(sim: Simulation, cluster: SimulatedCluster): void {
  for (const name of cluster.processes) {
    if (name.startsWith("extent-node-") || name === cluster.lockService) sim.disk(name).slowFactor = slowFactor;
  }
}

interface Times {
  /**
   * Times of every upload, in ms: of those that began before the first split, when all uploaders were at it, and of the
   * others.
   */
  readonly before: number[];
  readonly meanwhile: number[];
  /** For how long each split and merge held writes up. */
  readonly heldMs: number[];
}

async function uploadsOverReshapes(seed: number): Promise<Times> {
  const times: Times = { before: [], meanwhile: [], heldMs: [] };
  const onLogLine = (line: string): void => {
    const held = /ranges reshaped .*"heldMs":(\d+)/.exec(line);
    if (held) times.heldMs.push(Number(held[1]));
  };
  const sim = new Simulation({ seed, onLogLine });
  await sim.run(async () => {
    const cluster = simulatedCluster(sim);
    await sim.until(() => cluster.ready(), 30_000, "ready");
    const client = (name: string) => new HttpClient(sim, sim.world(name), name, cluster, "blob", uploadTimeoutMs);
    assert.equal((await client("client-0").request("PUT", "/ups?restype=container", {}))?.status, 201);
    slowDisks(sim, cluster);
    let stopped = false;
    let reshaping = false;
    const written = new Map<string, number>();
    const upload = async (uploader: number): Promise<void> => {
      const http = client(`client-${uploader + 1}`);
      for (let i = 0; !stopped; i++) {
        const name = `${uploader}-${i}`;
        const sinceMs = sim.nowMs;
        const of = times[reshaping ? "meanwhile" : "before"];
        const body = new Uint8Array(uploadBytes).fill(i % 251);
        const answer = await http.request("PUT", `/ups/${name}`, { "x-ms-blob-type": "BlockBlob" }, body);
        assert.equal(answer?.status, 201, `${name} after ${sim.nowMs - sinceMs} ms`);
        written.set(name, i % 251);
        of.push(sim.nowMs - sinceMs);
      }
    };
    const all = Promise.all(Array.from({ length: uploaders }, (_, i) => upload(i)));
    await sim.until(() => written.size > 60, 60_000, "enough to split twice");
    reshaping = true;
    await Promise.race([reshape(sim), all]);
    await sim.sleep(1_000);
    stopped = true;
    await all;
    assert.ok(
      times.meanwhile.length > 10 && times.heldMs.length === 4,
      `${times.meanwhile.length} uploads over ${times.heldMs.length} changes`,
    );
    for (const [name, fill] of [...written].filter((_, i) => i % 5 === 0)) {
      const read = await client("client-0").request("GET", `/ups/${name}`, {});
      assert.ok(read?.status === 200 && read.body.length === uploadBytes && read.body[7] === fill, `${name}: ${read?.status}`);
    }
  });
  return times;
}

const mean = (of: readonly number[]): number => of.reduce((sum, ms) => sum + ms, 0) / of.length;

test("uploads: over splits, a move and merges on slow disks every one is done, hardly slower than before, and none is held up long", async () => {
  const all: Times[] = [];
  for (const seed of [5, 6, 7]) all.push(await uploadsOverReshapes(seed));
  const [before, meanwhile] = [mean(all.flatMap((one) => one.before)), mean(all.flatMap((one) => one.meanwhile))];
  assert.ok(meanwhile < 1.75 * before, `${meanwhile} ms, ${before} ms before`);
  // Some 15 synced writes, one behind the other and behind what is on its way, where nothing is prepared: over a second.
  const held = all.flatMap((one) => one.heldMs);
  assert.ok(Math.max(...held) < 500, held.join());
});
