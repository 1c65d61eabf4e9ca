/** A lock service notes a level before it commits it, and does not serve a store of a higher one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { featureLevel, ok, unwrap } from "@stamp/base";
import { encodeLevel, levelKey } from "@stamp/metadata-store";
import { notedFeatureLevel } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import type { LockStore } from "./store.ts";
import { StoredLevel } from "./stored-level.ts";

const fence = { leaseName: "stream-manager", leaseEpoch: 1 };

test("stored level: noted before the record is committed, read at the next start; a higher one is refused and noted nowhere", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const world = sim.world("lock");
    const value = (level: number) => encodeLevel({ level, wallMs: 0, release: "7.3.1" }, world.digest.crc32c);
    const storeWith = (held: Uint8Array | undefined) =>
      ({ key: async () => ok({ value: held, version: held ? 1 : 0 }) }) as unknown as LockStore;
    const writing = (key: string, level: number) => ({ fence, conditions: [], writes: [{ key, value: value(level) }] });

    const level = unwrap(await StoredLevel.open(world, storeWith(undefined)));
    unwrap(await level.before(writing("another key", featureLevel)));
    assert.deepEqual([level.level, await notedFeatureLevel(world)], [0, 0]);
    const above = await level.before(writing(levelKey, featureLevel + 1));
    assert.ok(!above.ok && above.failure.reason === "newerFormat");
    assert.deepEqual([level.level, await notedFeatureLevel(world)], [0, 0]);
    unwrap(await level.before(writing(levelKey, featureLevel)));
    assert.deepEqual([level.level, await notedFeatureLevel(world)], [featureLevel, featureLevel]);

    assert.equal(unwrap(await StoredLevel.open(world, storeWith(value(featureLevel)))).level, featureLevel);
    const newer = await StoredLevel.open(sim.world("other"), storeWith(value(featureLevel + 1)));
    assert.ok(!newer.ok && newer.failure.reason === "newerFormat");
    assert.match(newer.failure.message, /release 7\.3\.1 wrote it/);
    assert.equal(await notedFeatureLevel(sim.world("other")), 0);
  });
});
