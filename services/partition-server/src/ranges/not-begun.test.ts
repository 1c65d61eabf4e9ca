/** Splits and merges that a server can't prepare: nothing has to wait for them, before, meanwhile or afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { routeOf } from "@stamp/objects";
import { PartitionManager } from "@stamp/wire";
import { blob, Client, cluster, serveable } from "../testing/moves-harness.ts";
import type { TestStreams } from "../testing/streams.ts";

const timeoutMs = 30_000;
/**
 * Time of a write on these streams, with the way there and back; a range that is loaded anew needs more than 20 ms for
 * that alone.
 */
const writeMsMax = 15;

async function writesGoOn(prepare: (streams: TestStreams) => void, kind: "split" | "merge"): Promise<void> {
  const { sim, streams } = cluster(5, allRules, ["pm-1"]);
  streams.neverLate = true;
  await sim.run(async () => {
    const [client, operator] = [new Client(sim, "client-1"), new Client(sim, "client-2")];
    await serveable(sim, client);
    const manager = sim.world("operator").transport.client("pm-1", PartitionManager);
    const atKey = (container: string) =>
      routeOf(sim.rules, { case: "getBlob", value: { name: { ...blob, container } } } as Parameters<typeof routeOf>[1]).key;
    const blobs = async () => {
      await operator.refresh();
      return operator.ranges.filter(({ table }) => table === "Blob");
    };
    const change = async (container: string) => {
      const rangeId = (await blobs())[0]?.rangeId ?? "";
      if (kind === "merge") return manager.mergePartition({ rangeId }, { timeoutMs });
      return manager.splitPartition({ rangeId, atKey: atKey(container) }, { timeoutMs });
    };
    if (kind === "merge") {
      const rangeId = (await blobs())[0]?.rangeId ?? "";
      assert.ok((await manager.splitPartition({ rangeId, atKey: atKey("b") }, { timeoutMs })).ok);
    }
    await client.refresh();
    let seen = await client.read();
    assert.equal(await client.write(1, seen?.etag ?? ""), "done");
    const before = await blobs();
    // Balance may move ranges of other tables meanwhile.
    const loads = (): readonly string[] => streams.loadsBegun.filter((rangeId) => rangeId.startsWith("blob"));
    const loadsBefore = loads();
    prepare(streams);
    let over = false;
    const changed = change("b").finally(() => {
      over = true;
    });
    for (let value = 2, after = 0; after < 50; value++) {
      if (over) after++;
      seen = await client.read();
      const sinceMs = sim.nowMs;
      assert.equal(await client.write(value, seen?.etag ?? ""), "done", `write ${value}`);
      assert.ok(sim.nowMs - sinceMs <= writeMsMax, `write ${value} took ${sim.nowMs - sinceMs} ms`);
      await sim.sleep(20);
    }
    const answer = await changed;
    assert.ok(!answer.ok && answer.failure.reason === "notBegun" && answer.failure.applied === "no", JSON.stringify(answer));
    assert.deepEqual(loads(), loadsBefore, "nothing was loaded again");
    const ownersOf = (ranges: typeof before) =>
      ranges.map(({ rangeId, ownerEpoch, loaded, change: left }) => [rangeId, ownerEpoch, loaded, left]);
    assert.deepEqual(ownersOf(await blobs()), ownersOf(before), "the record is gone, the owners are the same");
    streams.prepareMs = 0;
    streams.prepareFails = 0;
    assert.ok((await change("b")).ok, "the next one is done");
    await client.refresh();
    assert.ok(((await client.read())?.value ?? 0) >= 50);
  });
}

for (const kind of ["split", "merge"] as const) {
  test(`${kind}: when it can't be prepared, writes go on under the same owner and no record is left`, () =>
    writesGoOn((streams) => {
      streams.prepareMs = 100;
      streams.prepareFails = 1;
    }, kind));

  test(`${kind}: when preparing takes longer than the manager waits, writes go on under the same owner and no record is left`, () =>
    writesGoOn((streams) => {
      streams.prepareMs = 20_000;
    }, kind));
}
