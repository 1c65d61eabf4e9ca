/** A server dies that served a thousand ranges: the other one loads them all, many at once but not all, those first that were asked most. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { routeOf } from "@stamp/objects";
import { firstRangeOf, type Range, streamsOf } from "@stamp/partition-map";
import { LockService, PartitionServer } from "@stamp/wire";
import { blob, Client, cluster, lease, servers } from "../testing/moves-harness.ts";

const count = 1_000;
const loadsAtOnceMax = 64;

const containerOf = (i: number): string => `c${String(i).padStart(4, "0")}`;
const nameIn = (container: string) => ({ ...blob, container });
const keyOf = (i: number): Uint8Array => routeOf(allRules, { case: "getBlob", value: { name: nameIn(containerOf(i)) } }).key;

function ranges(): Range[] {
  const first = firstRangeOf("Blob");
  return Array.from({ length: count }, (_, i): Range => {
    const rangeId = `blob-${i}`;
    const [low, high] = [i === 0 ? first.low : keyOf(i), i === count - 1 ? first.high : keyOf(i + 1)];
    return { ...first, rangeId, low, high, streams: streamsOf(rangeId, "Blob") };
  });
}

test("recovery: of a thousand ranges those are loaded first that were asked most, a bounded number at once, and all are served", async () => {
  const { sim, streams } = cluster(3, allRules, ["pm-1"], ranges());
  await sim.run(async () => {
    const client = new Client(sim, "client-1");
    const allServed = async (): Promise<boolean> =>
      (await client.refresh()) && client.ranges.every((range) => range.loaded && range.server !== "") && client.ranges.length >= count;
    await sim.until(allServed, 120_000, "all are served at first");
    assert.ok(streams.loadsAtOnce <= 2 * loadsAtOnceMax, `${streams.loadsAtOnce} loads at once on two servers`);
    const on = (server: string) => client.ranges.filter((range) => range.table === "Blob" && range.server === server);
    const [victim, other] = on("ps-1").length > on("ps-2").length ? ["ps-1", "ps-2"] : ["ps-2", "ps-1"];
    const onFirst = on(victim);
    assert.ok(onFirst.length > count / 3, `${onFirst.length} ranges on one server`);
    // The other one joined later: some are moved to it, by id, while this goes on.
    const last = onFirst.map(({ rangeId }) => rangeId).sort();
    const hot = [7, 123, 311].map((i) => last.at(-i) ?? "");
    const asker = sim.world("client-1").transport.client(victim, PartitionServer);
    for (const rangeId of hot) {
      const range = client.ranges.find((one) => one.rangeId === rangeId);
      const value = { name: nameIn(containerOf(Number(rangeId.slice(5)))), withoutContent: true };
      for (let i = 0; i < 30; i++) {
        const operation = { kind: { case: "getBlob", value } } as never;
        await asker.execute({ rangeId, rangeVersion: range?.rangeVersion ?? 0n, operation }, { timeoutMs: 1_000 });
      }
    }
    // The partition manager asks servers for their figures every second.
    await sim.sleep(2_500);
    await client.refresh();
    const held = on(victim).length;
    assert.ok(held > count / 3, `${held} ranges on the one that dies`);
    streams.loadsBegun.length = 0;
    streams.loadsAtOnce = 0;
    sim.crash(victim, { stayDown: true });
    const diedMs = sim.nowMs;
    await sim.until(
      async () => (await allServed()) && client.ranges.every(({ server }) => server === other),
      60_000,
      "all are served again",
    );
    assert.ok(streams.loadsBegun.length >= held - 2, `${streams.loadsBegun.length} loads of ${held} ranges`);
    const firstLoads = streams.loadsBegun.slice(0, hot.length + 3);
    for (const rangeId of hot) assert.ok(firstLoads.includes(rangeId), `${rangeId} was asked most, first were ${firstLoads.join()}`);
    assert.ok(streams.loadsAtOnce > loadsAtOnceMax / 2 && streams.loadsAtOnce <= loadsAtOnceMax, `${streams.loadsAtOnce} at once`);
    const tookMs = sim.nowMs - diedMs;
    assert.ok(tookMs < 6_000 + 1_000, `${tookMs} ms of virtual time, lease of 6 s`);
  });
});

test("recovery: the end of a dead server's lease is heard of at once, and its ranges are served soon after it", async () => {
  const afterMs: number[] = [];
  for (let seed = 1; seed <= 8; seed++) {
    const { sim } = cluster(seed, allRules, ["pm-1"]);
    await sim.run(async () => {
      const client = new Client(sim, "client-1");
      const servedBy = (names: readonly string[]) => async (): Promise<boolean> =>
        (await client.refresh()) && client.ranges.every(({ loaded, server }) => loaded && names.includes(server));
      await sim.until(servedBy(servers), 60_000, "all are served at first");
      await sim.sleep(2_000 + sim.prng.below(lease.leaseRenewEveryMs));
      await client.refresh();
      const [victim = "", other = ""] = client.ranges[0]?.server === "ps-1" ? servers : servers.toReversed();
      const lockService = sim.world("client-1").transport.client("lock", LockService);
      sim.crash(victim, { stayDown: true });
      const ended = async (): Promise<boolean> => {
        const answer = await lockService.listLeases({ prefix: `ps/${victim}` }, { timeoutMs: 100 });
        return answer.ok && answer.value.leases.every((one) => one.ended);
      };
      await sim.until(ended, 20_000, "its lease has ended");
      const endedMs = sim.nowMs;
      await sim.until(servedBy([other]), 20_000, "all are served again");
      afterMs.push(sim.nowMs - endedMs);
    });
  }
  assert.ok(Math.max(...afterMs) < 150, `${afterMs.map(Math.round).join()} ms after the end of the lease`);
});
