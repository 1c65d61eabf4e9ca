/** Extents that the collector has looked at, while a neighbour goes on to fill new ones: over the real stream layer on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { present } from "@stamp/base";
import { Client, container1, name, stamp } from "../testing/stack-harness.ts";
import { Collector } from "./collector.ts";

test("collector: extents that were full are looked at in time, though a neighbour fills one in less time than a pin takes to end", async (t) => {
  const engines = new Map<Collector, () => readonly { readonly extentId: number }[]>();
  const collect = Collector.prototype.collect;
  t.mock.method(Collector.prototype, "collect", function (this: Collector, held: Parameters<typeof collect>[0]) {
    if (held.range.rangeId === "blob-1") engines.set(this, () => held.engine.sealedDataExtents());
    return collect.call(this, held);
  });
  const sim = stamp(1, { extentTargetBytes: 64 * 1024, pinTermMs: 60_000, collectGoneMs: 1, collectEveryMs: 10_000 });
  await sim.run(async () => {
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const client = new Client(sim);
    const incarnation = await container1(client);
    let isWriting = true;
    const write = async () => {
      for (let at = 0; isWriting; at++) {
        const kind = { case: "putBlob" as const, value: { name: name(`b${at % 40}`, incarnation) } };
        const places = await client.write(kind, new Uint8Array(20_000).fill(at));
        await client.execute({ ...kind, value: { ...kind.value, body: { inline: new Uint8Array(0), places } } });
        await sim.sleep(10_000);
      }
    };
    const writing = write();
    await sim.sleep(300_000);
    const [[collector, extents]] = [present([...engines][0], "a collector")];
    const sinceMs = sim.world("operator").clock.monotonicMs();
    const full = extents().map(({ extentId }) => extentId);
    assert.ok(full.length > 1, `${full.length} full extents`);
    const unseen = () =>
      full.filter((id) => extents().some(({ extentId }) => extentId === id) && !collector.lookedAt("blob-1", -1, id, sinceMs));
    assert.ok(unseen().length > 0, "no pass has begun since");
    await sim.sleep(300_000);
    assert.deepEqual(unseen(), []);
    assert.ok(
      extents().some(({ extentId }) => !collector.lookedAt("blob-1", -1, extentId, sinceMs)),
      "the neighbour has filled extents that are not old enough",
    );
    isWriting = false;
    await writing;
  });
});
