/**
 * A reader that follows the map by changes has the whole map, however far behind it was; or is told that it has to read
 * it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Outcome, ok, present, rulesWithout, unknownOutcome, unwrap } from "@stamp/base";
import { childRanges, firstRangeOf, isUnchanged, mergeRecords, type Range, RangeMap, splitRecord } from "@stamp/partition-map";
import { Simulation } from "@stamp/virtual-time";
import { MapState } from "./map-state.ts";
import type { OwnTable } from "./map-table.ts";

const first = (): Range => ({ ...firstRangeOf("Blob"), server: "ps-1", ownerEpoch: 1, loaded: true, hasStreams: true });

async function opened(
  sim: Simulation,
  ranges: readonly Range[],
  fails: () => Outcome<never> | undefined = () => undefined,
): Promise<MapState> {
  let sequence = 7;
  const table: OwnTable = {
    readAll: async () => ok([]),
    write: async () => fails() ?? ok(++sequence),
    get sequence() {
      return sequence;
    },
    close: async () => {},
  };
  const map = unwrap(await MapState.open(sim.world("pm"), table));
  unwrap(await map.change(() => ok({ changed: ranges })));
  return map;
}

/** Splits at a key that no range begins with, moves, or merges: as a partition manager does, with the record first. */
async function change(map: MapState, sim: Simulation, epoch: number): Promise<void> {
  const { ranges } = map.current;
  const range = present(ranges[sim.prng.below(ranges.length)], "a range");
  const kind = sim.prng.below(5);
  if (kind === 0) {
    unwrap(await map.change(() => ok({ changed: [{ ...range, server: `ps-${sim.prng.below(3)}`, ownerEpoch: epoch }] })));
    return;
  }
  const right = map.current.after(range);
  const records =
    kind > 1 || right === undefined
      ? [unwrap(splitRecord(range, Uint8Array.of(...range.low, 1 + sim.prng.below(254)), [epoch, epoch + 1]))]
      : unwrap(mergeRecords(range, { ...right, server: range.server, leaseEpoch: range.leaseEpoch }, epoch));
  unwrap(await map.change(() => ok({ changed: records })));
  unwrap(await map.change(() => ok({ gone: records, changed: childRanges(records, true) })));
}

test("partition map: changes since a version make the current map of it", async () => {
  const sim = new Simulation({ seed: 11 });
  await sim.run(async () => {
    const map = await opened(sim, [first()]);
    const seen: RangeMap[] = [map.current];
    for (let i = 0; i < 200; i++) {
      // A split whose key is not inside is refused: then nothing changes.
      await change(map, sim, 10 + 2 * i).catch(() => {});
      if (map.current !== seen.at(-1)) seen.push(map.current);
      const known = present(seen[Math.max(0, seen.length - 1 - sim.prng.below(12))], "a map seen before");
      const changes = map.changesSince(known.version);
      if (changes === undefined) continue;
      const followed = new RangeMap(map.current.version, unwrap(known.with(changes.changed, new Set(changes.gone))));
      assert.deepEqual(followed.ranges, map.current.ranges);
    }
    assert.ok(seen.length > 150 && map.current.ranges.length > 10, `${seen.length} maps, ${map.current.ranges.length} ranges`);
  });
});

test("partition map: one changed range of many is told alone; unknown versions and those of long ago are not told by changes", async () => {
  const sim = new Simulation({ seed: 12 });
  await sim.run(async () => {
    const other = { ...first(), ...firstRangeOf("Entity"), rangeId: "entity-1" };
    const map = await opened(sim, [first(), other]);
    const knownVersion = map.current.version;
    assert.deepEqual(map.changesSince(knownVersion), { changed: [], gone: [] });
    unwrap(await map.change(() => ok({ changed: [{ ...other, server: "ps-2" }] })));
    assert.deepEqual(map.changesSince(knownVersion), { changed: [{ ...other, server: "ps-2" }], gone: [] });
    assert.equal(map.changesSince(knownVersion - 1_000), undefined);
    assert.equal(map.changesSince(map.current.version + 1), undefined);
    for (let i = 0; i < 400; i++) unwrap(await map.change(() => ok({ changed: [{ ...other, ownerEpoch: 2 + i }] })));
    assert.equal(map.changesSince(knownVersion), undefined, "that was long ago");
  });
});

test("partition map: no more than 10,000 wait for a change", async () => {
  const sim = new Simulation({ seed: 12 });
  await sim.run(async () => {
    const map = await opened(sim, [first()]);
    const { version } = map.current;
    const waiting = Array.from({ length: 10_000 }, () => map.newerThan(version, 60_000));
    const more = await map.newerThan(version, 60_000);
    assert.ok(!more.ok && more.failure.reason === "overloaded");
    assert.ok((await map.newerThan(version - 1, 60_000)).ok, "who does not wait is answered");
    unwrap(await map.change(() => ok({ changed: [{ ...first(), server: "ps-2" }] })));
    for (const one of await Promise.all(waiting)) assert.equal(unwrap(one).version, map.current.version);
  });
});

test("partition map: after a write of which it is not known whether it happened nothing more is written, or shown", async () => {
  const sim = new Simulation({ seed: 12 });
  await sim.run(async () => {
    let writes = 0;
    const unknown = unknownOutcome("deadlineExceeded", "timeout", "no answer");
    const map = await opened(sim, [first()], () => (writes++ === 0 ? undefined : unknown));
    const { version } = map.current;
    const changes = [2, 3, 4].map((ownerEpoch) => map.change(() => ok({ changed: [{ ...first(), ownerEpoch }] })));
    assert.deepEqual(await Promise.all(changes), [unknown, unknown, unknown]);
    assert.equal(writes, 2);
    assert.equal(map.current.version, version);
  });
});

test("partition map: a change is made from what those before it left, also when they are still being written", async () => {
  for (const [rules, kept] of [
    [allRules, true],
    [rulesWithout("mapChangedInTurn"), false],
  ] as const) {
    const sim = new Simulation({ seed: 12, rules });
    await sim.run(async () => {
      const range = { ...first(), loaded: false };
      const map = await opened(sim, [range]);
      const split = map.change(() => ok({ changed: [unwrap(splitRecord(range, Uint8Array.of(9), [10, 11]))] }));
      const loaded = map.change(({ ranges }) => ok({ changed: ranges.map((one) => ({ ...one, loaded: true })) }));
      const assigned = map.change((now) =>
        isUnchanged(now.byId(range.rangeId), range) ? ok({ changed: [{ ...range, server: "ps-2", ownerEpoch: 3 }] }) : ok({ changed: [] }),
      );
      for (const written of await Promise.all([split, loaded, assigned])) unwrap(written);
      const now = present(map.range(range.rangeId), "the range");
      assert.equal(now.reshape !== undefined && now.loaded && now.server === "ps-1", kept);
    });
  }
});

test("map: a write of the table that throws ends the changes of this manager with an unknown outcome, and holds up nobody", async () => {
  const sim = new Simulation({ seed: 5 });
  await sim.run(async () => {
    let throws = false;
    const map = await opened(sim, [first()], () => {
      if (throws) throw new Error("a bug");
      return undefined;
    });
    throws = true;
    const changed = () => map.change((current) => ok({ changed: [{ ...present(current.ranges[0], "a range"), server: "ps-2" }] }));
    const failed = await changed();
    assert.ok(!failed.ok && failed.failure.applied === "unknown");
    throws = false;
    assert.deepEqual(await changed(), failed);
  });
});
