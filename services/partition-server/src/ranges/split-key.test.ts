import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, compareBytes, ok, unwrap } from "@stamp/base";
import { encodeKey, partitionStart, routeOf } from "@stamp/objects";
import { firstRangeOf } from "@stamp/partition-map";
import { Simulation } from "@stamp/virtual-time";
import type { RangeEngine, RowView } from "../operations/engine.ts";
import { RangeLoad } from "./load.ts";
import { findSplitKey, middleOf, suggestSplitKey } from "./split-key.ts";

const blobKey = (blob: string): Uint8Array =>
  routeOf(allRules, { case: "getBlob", value: { name: { account: "acct", container: "c", containerIncarnation: 7, blob } } }).key;
/** Keys as in `docs/formats/key.md`: the row of a queue, table or container, and rows inside. */
const rowOf = (queue: string): Uint8Array => encodeKey([["acct"], [0, queue], []]);
const insideOf = (queue: string, ...partition: string[]): Uint8Array => encodeKey([["acct"], [1, queue, 3, ...partition], [0]]);
const name = (i: number): string => `blob-${String(i).padStart(4, "0")}`;

const suggest = (load: RangeLoad, samples: readonly Uint8Array[] = []) =>
  suggestSplitKey({ range: firstRangeOf("Blob"), load, engine: { keySamples: () => samples } as unknown as RangeEngine });

test("split key: where the requests are divided evenly, at the start of a blob's rows", () => {
  const load = new RangeLoad(new Simulation({ seed: 1 }).world("ps").clock);
  for (let i = 0; i < 1_000; i++) load.begin("write", blobKey(name(i % 100)))();
  const key = suggest(load);
  assert.ok(key);
  assert.equal(compareBytes(key, partitionStart(blobKey(name(50))) as Uint8Array), 0);
  assert.equal(compareBytes(key, partitionStart(key) as Uint8Array), 0);
});

test("split key: by bytes when little was asked, by that little when nothing is written out, none when there is one PartitionName", () => {
  const { clock } = new Simulation({ seed: 1 }).world("ps");
  const quiet = new RangeLoad(clock);
  for (let i = 0; i < 10; i++) quiet.begin("read", blobKey(name(i)))();
  const samples = Array.from({ length: 20 }, (_, i) => blobKey(name(100 + i)));
  assert.equal(compareBytes(suggest(quiet, samples) as Uint8Array, blobKey(name(110))), 0);
  assert.equal(compareBytes(suggest(quiet) as Uint8Array, blobKey(name(5))), 0);
  const one = new RangeLoad(clock);
  for (let i = 0; i < 500; i++) one.begin("read", blobKey("hot"))();
  assert.equal(suggest(one), undefined);
});

test("split key: where neither requests nor checkpoints say it, by the PartitionNames that are there", async () => {
  const load = new RangeLoad(new Simulation({ seed: 1 }).world("ps").clock);
  const looked: number[] = [];
  /** `versions` rows of each blob. */
  const find = async (blobs: number, versions: number, low?: Uint8Array) => {
    const rows = Array.from({ length: blobs * versions }, (_, i) => {
      const key = blobKey(name(Math.floor(i / versions)));
      return Uint8Array.of(...key, i % versions);
    });
    let visited = 0;
    const walk: RowView["walk"] = async (from, to, visit) => {
      for (let at: Uint8Array | undefined = from; at !== undefined; ) {
        const key = rows.find((row) => compareBytes(row, at as Uint8Array) >= 0 && compareBytes(row, to) < 0);
        if (key === undefined) break;
        visited += 1;
        at = visit({ key, value: new Uint8Array(0) });
      }
      return ok();
    };
    const engine = {
      keySamples: () => [],
      read: (work: (view: RowView) => unknown) => work({ walk } as RowView),
    } as unknown as RangeEngine;
    const range = { ...firstRangeOf("Blob"), ...(low && { low }) };
    const key = unwrap(await findSplitKey({ range, load, engine }));
    looked.push(visited);
    return key;
  };
  assert.equal(compareBytes((await find(20, 3)) as Uint8Array, partitionStart(blobKey(name(10))) as Uint8Array), 0);
  assert.equal(compareBytes((await find(20, 1, blobKey(name(16)))) as Uint8Array, partitionStart(blobKey(name(18))) as Uint8Array), 0);
  assert.equal(await find(1, 200), undefined);
  assert.equal(await find(0, 0), undefined);
  await find(1_500, 1);
  assert.deepEqual(looked, [20, 4, 1, 0, 1_000]);
});

test("split key: never at the range's own first key, nor outside of it", () => {
  const [low, high] = [blobKey(name(3)), blobKey(name(6))];
  const starts = [1, 3, 3, 3, 5, 6, 9].map((i) => blobKey(name(i)));
  assert.equal(compareBytes(middleOf(starts, { low, high }) as Uint8Array, blobKey(name(5))), 0);
  assert.equal(middleOf([low, low], { low, high }), undefined);
});

test("split key: a busy queue is not parted from its row; several queues are parted between their messages", () => {
  const { clock } = new Simulation({ seed: 1 }).world("ps");
  const one = new RangeLoad(clock);
  for (let i = 0; i < 1_000; i++) one.begin(i % 2 === 0 ? "read" : "write", i % 2 === 0 ? rowOf("busy") : insideOf("busy"))();
  assert.equal(suggest(one), undefined);
  assert.equal(suggest(one, [rowOf("busy"), insideOf("busy"), insideOf("busy")]), undefined, "nor by its bytes");
  const three = new RangeLoad(clock);
  for (let i = 0; i < 900; i++) {
    const queue = ["a", "b", "c"][i % 3] as string;
    three.begin("read", rowOf(queue))();
    three.begin("write", insideOf(queue))();
  }
  const between = suggest(three);
  assert.ok([insideOf("b"), insideOf("c")].some((key) => compareBytes(between as Uint8Array, partitionStart(key) as Uint8Array) === 0));
});

test("split key: what is inside one table or container is parted in the middle, however often its row is asked for", () => {
  const load = new RangeLoad(new Simulation({ seed: 1 }).world("ps").clock);
  for (let i = 0; i < 500; i++) {
    load.begin("read", rowOf("table"))();
    load.begin("write", insideOf("table", name(i % 100)))();
  }
  assert.equal(compareBytes(suggest(load) as Uint8Array, partitionStart(insideOf("table", name(50))) as Uint8Array), 0);
});

test("split key: rows of containers that nobody goes into are parted like everything else", () => {
  const load = new RangeLoad(new Simulation({ seed: 1 }).world("ps").clock);
  for (let i = 0; i < 500; i++) load.begin("write", rowOf(name(i % 100)))();
  assert.equal(compareBytes(suggest(load) as Uint8Array, partitionStart(rowOf(name(50))) as Uint8Array), 0);
});
