/** Ranges that were split or merged after the copy of the metadata get streams that begin with those of the ranges that they came from. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { childRanges, encodeMapRow, mapKey, mergeRecords, type Range, splitRecord } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { OwnerEpochs } from "../assign/owner-epochs.ts";
import { MapState } from "../map/map-state.ts";
import type { StreamLayer } from "../reshape/reshaper.ts";
import { rangeOf, type Surroundings, surroundings } from "../testing/term-harness.ts";
import { RestoredRanges } from "./restored-ranges.ts";

const streamsOfRange = (rangeId: string) => ["metadata", "commit-log", "row-data", "blob-data"].map((kind) => `/ps/${rangeId}/${kind}`);
const [left, right] = childRanges([unwrap(splitRecord(rangeOf("Blob", "blob-1"), utf8("m"), [2, 3]))], true) as [Range, Range];
const [merged] = childRanges(unwrap(mergeRecords(left, right, 6)), true) as [Range];

interface Scene {
  readonly ranges: RestoredRanges;
  readonly there: Set<string>;
  /** `stream < sources`, and `- stream` for one that is removed, in order. */
  readonly done: string[];
  readonly released: string[];
  readonly logged: string[];
  readonly refusals: Map<string, Outcome<never>>;
  run(): Promise<void>;
}

async function inScene(
  map: readonly Range[],
  restored: { readonly there: readonly string[]; readonly lineage?: number; readonly without?: boolean; readonly names?: Outcome<never> },
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  const sim = new Simulation({ seed: 1, rules: rulesWithout(...(restored.without === true ? (["rangesHaveOrigins"] as const) : [])) });
  await sim.run(async () => {
    const around: Surroundings = await surroundings(sim);
    const logged: string[] = [];
    const note = (message: string, facts: object = {}): void => void logged.push(`${message} ${JSON.stringify(facts)}`);
    const world: World = { ...around.world, logger: { ...around.world.logger, error: note, warn: note } };
    const table = Object.assign(around.table, { lineage: restored.lineage ?? 7 });
    unwrap(await table.write(map.map((range) => ({ key: mapKey(range), value: encodeMapRow(range) }))));
    const [there, done, released] = [new Set(restored.there), [] as string[], [] as string[]];
    const refusals: Scene["refusals"] = new Map();
    const streams: StreamLayer = {
      ...around.streams,
      names: async () => restored.names ?? ok(there),
      prepend: async (stream, sources) => {
        const refusal = refusals.get(stream);
        if (refusal !== undefined) return refusal;
        done.push([stream, ...sources].join(" < "));
        return ok();
      },
      remove: async (stream) => {
        done.push(`- ${stream}`);
        return ok();
      },
    };
    const state = unwrap(await MapState.open(world, table));
    const ranges = new RestoredRanges(world, { map: state, epochs: new OwnerEpochs(around.store, 1), streams }, assert.fail);
    const release = ({ rangeId }: Range): void => void released.push(rangeId);
    const run = () => ranges.run({ release }, new AbortController().signal);
    await work({ ranges, there, done, released, logged, refusals, run });
  });
}

const ids = (found: Outcome<readonly Range[]>): string[] => unwrap(found).map(({ rangeId }) => rangeId);

test("restored ranges: both children of a split begin with the streams of their parent, which are removed when both have theirs", () =>
  inScene([left, right], { there: [...streamsOfRange("blob-1"), "/ps/blob-e2/commit-log"] }, async ({ ranges, done, released, run }) => {
    assert.deepEqual(ids(await ranges.find()), ["blob-e2", "blob-e3"]);
    await run();
    const made = ["blob-e2", "blob-e3"].flatMap((id) => streamsOfRange(id).map((name, i) => `${name} < ${streamsOfRange("blob-1")[i]}`));
    assert.deepEqual(done, [...made, ...streamsOfRange("blob-1").map((name) => `- ${name}`)]);
    assert.deepEqual(released, ["blob-e2", "blob-e3"]);
  }));

test("restored ranges: the child of a merge has the rows of both parents, the metadata of the first, and no log of either", () =>
  inScene([merged], { there: [...streamsOfRange("blob-e2"), ...streamsOfRange("blob-e3")] }, async ({ ranges, done, run }) => {
    assert.deepEqual(ids(await ranges.find()), ["blob-e6"]);
    await run();
    assert.deepEqual(done.slice(0, 4), [
      "/ps/blob-e6/metadata < /ps/blob-e2/metadata",
      "/ps/blob-e6/commit-log",
      "/ps/blob-e6/row-data < /ps/blob-e2/row-data < /ps/blob-e3/row-data",
      "/ps/blob-e6/blob-data < /ps/blob-e2/blob-data < /ps/blob-e3/blob-data",
    ]);
    assert.equal(done.filter((each) => each.startsWith("-")).length, 8);
  }));

test("restored ranges: of a range that was split before both, the oldest streams come first", () =>
  inScene([merged], { there: [...streamsOfRange("blob-1"), "/ps/blob-e2/row-data", "/ps/blob-e3/row-data"] }, async (scene) => {
    await scene.ranges.find();
    await scene.run();
    assert.deepEqual(scene.done.slice(0, 3), [
      "/ps/blob-e6/metadata < /ps/blob-1/metadata",
      "/ps/blob-e6/commit-log",
      "/ps/blob-e6/row-data < /ps/blob-1/row-data < /ps/blob-e2/row-data < /ps/blob-e3/row-data",
    ]);
  }));

test("restored ranges: one whose streams can't be made yet keeps no other away, and its origin's streams stay until it has them", () =>
  inScene([left, right], { there: streamsOfRange("blob-1") }, async ({ ranges, done, logged, refusals, released, run }) => {
    refusals.set("/ps/blob-e2/row-data", refused("unavailable", "notReady", "extent 7 has no sealed length yet"));
    await ranges.find();
    const running = run();
    while (!released.includes("blob-e3")) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(!released.includes("blob-e2") && !done.some((each) => each.startsWith("-")));
    assert.match(logged.join(), /can't be made yet .*"range":"blob-e2","origins":"blob-1".*extent 7 has no sealed length/);
    refusals.clear();
    await running;
    assert.deepEqual(released, ["blob-e3", "blob-e2"]);
    assert.equal(done.at(-1), "- /ps/blob-1/blob-data");
  }));

test("restored ranges: nothing is done if no origin's streams are there, if nothing was restored, or without the rule", async () => {
  const nothing = async ({ ranges, done, run }: Scene): Promise<void> => {
    assert.deepEqual(ids(await ranges.find()), []);
    await run();
    assert.deepEqual(done, []);
  };
  await inScene([left, right], { there: [...streamsOfRange("blob-e2"), ...streamsOfRange("blob-e3")] }, nothing);
  await inScene([left, right], { there: streamsOfRange("blob-1"), lineage: 0 }, nothing);
  await inScene([left, right], { there: streamsOfRange("blob-1"), without: true }, nothing);
  const earlier = refused("permissionDenied", "unauthorized", "a stream manager of an earlier release");
  await inScene([left, right], { there: [], names: earlier }, nothing);
});

test("restored ranges: streams of a range that the map does not know are told, because their rows are not served", () =>
  inScene([rangeOf("Blob", "blob-1")], { there: [...streamsOfRange("blob-1"), "/ps/blob-e9/commit-log"] }, async ({ ranges, logged }) => {
    assert.deepEqual(ids(await ranges.find()), []);
    assert.match(logged.join(), /the restored map does not know: rows .* are not served .*"ranges":"blob-e9"/);
  }));
