/** Memory tables, checkpoints and merging against a plain list of versions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, unwrap, utf8 } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import fc from "fast-check";
import {
  type CheckpointIndex,
  CheckpointWriter,
  compareEntries,
  decodeBlock,
  decodeIndex,
  type Entry,
  hashKey,
  MemoryTable,
  Merger,
  mergePlan,
  type PlannedCheckpoint,
  type StoredPlace,
  withoutPause,
} from "./index.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);

/** Commits: of each one the keys it writes, with a value or a tombstone. */
const commits = fc.array(
  fc.array(
    fc.tuple(
      fc.string({ maxLength: 4, unit: fc.constantFrom("a", "b", "c", "\u00ff") }),
      fc.option(fc.string({ maxLength: 30 }), { nil: undefined }),
    ),
    {
      minLength: 1,
      maxLength: 5,
    },
  ),
  { maxLength: 40 },
);
type Commits = readonly (readonly (readonly [string, string | undefined])[])[];

function tableOf(list: Commits): MemoryTable {
  const table = new MemoryTable();
  for (const [i, writes] of list.entries())
    for (const [key, value] of writes) table.put(utf8(key), i + 1, value === undefined ? undefined : utf8(value));
  return table;
}

/** Rows as of a commit, tombstones included. */
function rowsAt(list: Commits, sequence: number): [Uint8Array, string | undefined][] {
  const rows = new Map<string, string | undefined>();
  for (const writes of list.slice(0, sequence)) for (const [key, value] of writes) rows.set(key, value);
  return [...rows].map(([key, value]): [Uint8Array, string | undefined] => [utf8(key), value]).sort(([a], [b]) => compareBytes(a, b));
}

const shown = ({ key, value }: Entry): [string, string | undefined] => [
  Buffer.from(key).toString("hex"),
  value === undefined ? undefined : Buffer.from(value).toString(),
];
const expected = (rows: [Uint8Array, string | undefined][]): [string, string | undefined][] =>
  rows.map(([key, value]) => [Buffer.from(key).toString("hex"), value]);

test("memory table: gets and iterates as of every commit, in both directions, inside every range", () => {
  fc.assert(
    fc.property(commits, fc.nat(40), fc.string({ maxLength: 3 }), fc.string({ maxLength: 3 }), (list, at, low, high) => {
      const table = tableOf(list);
      const sequence = Math.min(at, list.length);
      const rows = rowsAt(list, sequence);
      assert.deepEqual([...table.iterate({}, sequence)].map(shown), expected(rows));
      assert.deepEqual([...table.iterate({ reverse: true }, sequence)].map(shown), expected(rows.toReversed()));
      const [gte, lt] = [utf8(low), utf8(high)];
      const inside = rows.filter(([key]) => compareBytes(key, gte) >= 0 && compareBytes(key, lt) < 0);
      assert.deepEqual([...table.iterate({ gte, lt }, sequence)].map(shown), expected(inside));
      assert.deepEqual([...table.iterate({ gte, lt, reverse: true }, sequence)].map(shown), expected(inside.toReversed()));
      for (const [key, value] of rows) {
        const found = table.get(key, sequence);
        assert.equal(found?.value === undefined ? undefined : Buffer.from(found.value).toString(), value);
      }
      assert.equal(table.get(utf8("zz"), sequence), undefined);
    }),
  );
});

test("memory table: key samples are all of few keys, and of many some, in order and spread as they are", () => {
  const table = new MemoryTable();
  assert.deepEqual(table.keySamples(64), []);
  const keyOf = (i: number): Uint8Array => utf8(i.toString().padStart(5, "0"));
  for (let i = 0; i < 10; i++) table.put(keyOf(i), 1, utf8("x"));
  assert.deepEqual(
    table.keySamples(64),
    Array.from({ length: 10 }, (_, i) => keyOf(i)),
  );
  for (let i = 10; i < 10_000; i++) table.put(keyOf(i), 1, utf8("x"));
  const samples = table.keySamples(256);
  assert.ok(samples.length > 20 && samples.length < 512, `${samples.length} samples`);
  assert.deepEqual(samples.toSorted(compareBytes), samples);
  const middle = Number(Buffer.from(samples[samples.length >> 1] as Uint8Array).toString());
  assert.ok(middle > 3_000 && middle < 7_000, `${middle} is in the middle`);
});

test("memory table: an iterator stays valid and sees nothing newer while commits go on", () => {
  const table = new MemoryTable();
  for (let i = 0; i < 100; i++) table.put(utf8(`k${i.toString().padStart(3, "0")}`), 1, utf8("old"));
  let count = 0;
  for (const entry of table.iterate({}, 1)) {
    table.put(entry.key, 2, utf8("new"));
    table.put(utf8(`${Buffer.from(entry.key)}x`), 2, utf8("more"));
    assert.equal(Buffer.from(entry.value ?? []).toString(), "old");
    count += 1;
  }
  assert.equal(count, 100);
  assert.equal(table.count, 300);
  assert.ok(table.bytes > 300 * 8);
});

test("memory table: what is put is copied, and what was read stays as it was while the table grows and the row is replaced", () => {
  const table = new MemoryTable();
  const lengths = [0, 1, 5_000, 300_000, 2 * 1_024 * 1_024];
  const [key, value] = [utf8("row 0"), new Uint8Array(Math.max(...lengths))];
  const [views, whole]: [(Entry | undefined)[], Map<string, number>] = [[], new Map()];
  for (let i = 0; i < 2_000; i++) {
    const row = utf8(`row ${i}`);
    const length = lengths[i % (i < 20 ? 5 : 3)] as number;
    key.set(row.subarray(0, 5));
    value.fill(i);
    table.put(i < 10 ? key : row, 1, value.subarray(0, length));
    whole.set(Buffer.from(i < 10 ? key : row).toString(), length);
    if (i < 20) views.push(table.get(i < 10 ? key : row, 1));
  }
  key.fill(0);
  for (const row of whole.keys()) table.put(utf8(row), 1, undefined);
  assert.equal(table.count, 2_000);
  for (const [i, view] of views.entries()) {
    assert.equal(Buffer.from(view?.key ?? []).toString(), `row ${i}`);
    assert.equal(view?.value?.length, lengths[i % 5]);
    assert.ok(view?.value?.every((byte) => byte === i % 256));
  }
  assert.deepEqual(
    [...table.iterate({}, 1)].map(({ value: now }) => now),
    Array.from({ length: 2_000 }, () => undefined),
  );
});

test("memory table: sequences beyond 32 bits keep their order", () => {
  const table = new MemoryTable();
  const sequences = [1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 5, 2 ** 52, 2 ** 52 + 2 ** 31, Number.MAX_SAFE_INTEGER];
  for (const sequence of sequences.toReversed()) table.put(utf8("key"), sequence, utf8(`${sequence}`));
  for (const sequence of sequences) {
    const found = table.get(utf8("key"), sequence);
    assert.equal(found?.sequence, sequence);
    assert.equal(Buffer.from(found.value ?? []).toString(), `${sequence}`);
  }
  assert.deepEqual(
    [...table.versions()].map(({ sequence }) => sequence),
    sequences.toReversed(),
  );
});

test("memory table: it takes about what it says, and one of few rows takes little", () => {
  const taken = (rows: number, valueBytes: number): { readonly taken: number; readonly said: number } => {
    const [key, value] = [new Uint8Array(48), new Uint8Array(valueBytes)];
    const before = process.memoryUsage().arrayBuffers;
    const table = new MemoryTable();
    for (let i = 0; i < rows; i++) {
      new DataView(key.buffer).setUint32(0, Math.imul(i, 2_654_435_761));
      table.put(key, i + 1, value);
    }
    return { taken: process.memoryUsage().arrayBuffers - before, said: table.bytes };
  };
  // An array that grows leaves smaller ones, together as large, to be collected.
  const large = taken(20_000, 1_000);
  assert.ok(large.taken < large.said * 1.3 && large.said < 20_000 * 1_048 * 1.1, JSON.stringify(large));
  const small = taken(50_000, 20);
  assert.ok(small.taken < small.said * 2 && small.said < 50_000 * 68 * 1.6, JSON.stringify(small));
  const few = taken(3, 100);
  assert.ok(few.taken < 16_384, JSON.stringify(few));
});

interface Written {
  readonly index: CheckpointIndex;
  readonly blocks: Map<number, Uint8Array>;
}

function written(entries: readonly Entry[], blockBytes: number): Written {
  const writer = new CheckpointWriter(crc32c, blockBytes);
  const blocks = new Map<number, Uint8Array>();
  const places: StoredPlace[] = [];
  const keep = (block: Uint8Array | undefined): void => {
    if (block === undefined) return;
    places.push({ extentId: 1, offsetBytes: places.length, lengthBytes: block.length });
    blocks.set(places.length - 1, block);
  };
  for (const entry of entries) keep(writer.add(entry));
  keep(writer.lastBlock());
  return { index: unwrap(decodeIndex(withoutPause(writer.index(places)).bytes, crc32c)), blocks };
}

test("checkpoint: every version comes back, a key is in one block, and the index leads to it", () => {
  fc.assert(
    fc.property(commits, fc.integer({ min: 1, max: 300 }), (list, blockBytes) => {
      const entries = [...tableOf(list).versions()];
      const { index, blocks } = written(entries, blockBytes);
      const back: Entry[] = [];
      for (let i = 0; i < blocks.size; i++) back.push(...unwrap(decodeBlock(blocks.get(i) as Uint8Array, crc32c)).from());
      assert.deepEqual(
        back.map((entry) => [entry.sequence, ...shown(entry)]),
        entries.map((entry) => [entry.sequence, ...shown(entry)]),
      );
      assert.equal(index.entryCount, entries.length);
      for (const { key } of entries) {
        assert.ok(index.mayHold(hashKey(key)));
        const block = unwrap(decodeBlock(blocks.get(index.firstBlock(key)) as Uint8Array, crc32c));
        for (let sequence = 0; sequence <= list.length; sequence++) {
          const newest = entries.find((entry) => compareBytes(entry.key, key) === 0 && entry.sequence <= sequence);
          assert.deepEqual(block.get(key, sequence)?.sequence, newest?.sequence);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("checkpoint: the bloom filter knows nearly every key that is not there", () => {
  const entries = Array.from(
    { length: 5_000 },
    (_, i): Entry => ({ key: utf8(`key-${i.toString().padStart(6, "0")}`), sequence: 1, value: utf8("v") }),
  );
  const { index } = written(entries, 4_000);
  let wrong = 0;
  for (let i = 0; i < 5_000; i++) if (index.mayHold(hashKey(utf8(`key-${i.toString().padStart(6, "0")}x`)))) wrong += 1;
  assert.ok(wrong < 15, `${wrong} of 5,000 wrongly`);
  assert.deepEqual(
    ["zzz", "a", "key-000000", "key-004999"].map((key) => index.spans(utf8(key))),
    [false, false, true, true],
  );
});

test("merger: sources merged by key give the newest, merged by version give all in order", () => {
  fc.assert(
    fc.property(commits, fc.integer({ min: 1, max: 5 }), fc.boolean(), (list, parts, reverse) => {
      const size = Math.ceil(list.length / parts) || 1;
      const tables: MemoryTable[] = [];
      for (let at = 0; at < list.length; at += size) {
        const table = new MemoryTable();
        for (let i = at; i < Math.min(at + size, list.length); i++) {
          for (const [key, value] of list[i] ?? []) table.put(utf8(key), i + 1, value === undefined ? undefined : utf8(value));
        }
        tables.unshift(table);
      }
      const run = (
        sources: Iterator<Entry>[],
        next: (merger: Merger) => { entry: Entry; advance: readonly number[] } | undefined,
      ): Entry[] => {
        const merger = new Merger(sources.length, { reverse });
        const set = (i: number): void => {
          const step = (sources[i] as Iterator<Entry>).next();
          merger.set(i, step.done ? undefined : step.value);
        };
        for (let i = 0; i < sources.length; i++) set(i);
        const all: Entry[] = [];
        for (let step = next(merger); step !== undefined; step = next(merger)) {
          all.push(step.entry);
          for (const i of step.advance) set(i);
        }
        return all;
      };
      const byKey = run(
        tables.map((table) => table.iterate({ reverse }, list.length)),
        (merger) => {
          const entry = merger.nextKey();
          return entry && { entry, advance: [...merger.advanced] };
        },
      );
      const rows = rowsAt(list, list.length);
      assert.deepEqual(byKey.map(shown), expected(reverse ? rows.toReversed() : rows));
      if (reverse) return;
      const versions = run(
        tables.map((table) => table.versions()),
        (merger) => {
          const step = merger.nextVersion();
          return step && { entry: step.entry, advance: [step.advance] };
        },
      );
      assert.deepEqual(
        versions.map((entry) => [entry.sequence, ...shown(entry)]),
        [...tableOf(list).versions()].map((entry) => [entry.sequence, ...shown(entry)]),
      );
      assert.deepEqual(versions.toSorted(compareEntries), versions);
    }),
    { numRuns: 60 },
  );
});

test("merge plan: neighbours only, reads meet few checkpoints, and a byte is rewritten few times", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 200 }), (flushes) => {
      let checkpoints: PlannedCheckpoint[] = [];
      let id = 0;
      let rewritten = 0;
      let flushed = 0;
      for (const bytes of flushes) {
        checkpoints = [{ id: ++id, bytes }, ...checkpoints];
        flushed += bytes;
        for (let plan = mergePlan(checkpoints); plan !== undefined; plan = mergePlan(checkpoints)) {
          const at = checkpoints.findIndex((each) => each.id === plan?.[0]);
          assert.deepEqual(
            checkpoints.slice(at, at + plan.length).map((each) => each.id),
            plan,
          );
          assert.ok(plan.length >= 2);
          const sum = checkpoints.slice(at, at + plan.length).reduce((total, each) => total + each.bytes, 0);
          rewritten += sum;
          checkpoints.splice(at, plan.length, { id: ++id, bytes: sum });
        }
        assert.ok(checkpoints.length <= 8);
      }
      assert.ok(rewritten <= flushed * 12, `${rewritten} bytes rewritten for ${flushed}`);
    }),
  );
});

test("merge plan: however unlike checkpoints are in size, no more are left than a read may meet", () => {
  const sizes = Array.from({ length: 24 }, (_, i) => 2 ** i);
  let checkpoints: PlannedCheckpoint[] = sizes.map((bytes, id) => ({ id, bytes }));
  let [merges, rewritten] = [0, 0];
  for (let plan = mergePlan(checkpoints); plan !== undefined; plan = mergePlan(checkpoints)) {
    const merged = new Set(plan);
    const bytes = checkpoints.reduce((sum, each) => sum + (merged.has(each.id) ? each.bytes : 0), 0);
    const at = checkpoints.findIndex(({ id }) => merged.has(id));
    checkpoints = checkpoints.filter(({ id }) => !merged.has(id)).toSpliced(at, 0, { id: 100 + merges++, bytes });
    rewritten += bytes;
  }
  assert.ok(merges > 0 && checkpoints.length <= 8, `${checkpoints.length} are left`);
  assert.ok(rewritten < 2 ** 19, `the small ones are merged: ${rewritten} bytes were rewritten`);
});

test("checkpoint index: written in many steps, it is what is read from its bytes", () => {
  const writer = new CheckpointWriter(crc32c, 64);
  const places: StoredPlace[] = [];
  const placed = (block: Uint8Array | undefined): void => {
    if (block !== undefined)
      places.push({ extentId: 7 + (places.length >> 10), offsetBytes: places.length * 300, lengthBytes: block.length });
  };
  const keyOf = (i: number): Uint8Array => utf8(`key-${i.toString().padStart(6, "0")}`);
  for (let i = 0; i < 25_000; i++) placed(writer.add({ key: keyOf(i), sequence: i + 1, value: utf8("value") }));
  placed(writer.lastBlock());
  const steps = writer.index(places);
  let count = 1;
  let step = steps.next();
  for (; !step.done; step = steps.next()) count++;
  assert.ok(places.length > 4_096 && count >= 5, `${count} steps for ${places.length} blocks`);
  const { bytes, index } = step.value;
  const read = unwrap(decodeIndex(bytes, crc32c));
  assert.deepEqual([index.minKey, index.maxKey, index.blockCount], [keyOf(0), keyOf(24_999), places.length]);
  for (const name of ["entryCount", "minSequence", "maxSequence", "dataBytes", "blockCount", "bytes", "minKey", "maxKey"] as const) {
    assert.deepEqual(index[name], read[name], name);
  }
  for (const [at, place] of places.entries()) {
    assert.deepEqual(index.block(at).place, place);
    assert.deepEqual(read.block(at), index.block(at));
  }
  const bytesOf = (from: number, to: number): number => places.slice(from, to).reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
  for (const one of [index, read]) {
    assert.deepEqual([...one.extentIds], [...new Set(places.map(({ extentId }) => extentId))]);
    assert.deepEqual([one.bytesOf(0, places.length), one.bytesOf(5, 99)], [bytesOf(0, places.length), bytesOf(5, 99)]);
  }
  for (let i = 0; i < 25_000; i++) assert.ok(index.mayHold(hashKey(keyOf(i))) && index.spans(keyOf(i)));
  const absent = Array.from({ length: 2_000 }, (_, i) => index.mayHold(hashKey(utf8(`other-${i}`)))).filter(Boolean).length;
  assert.ok(absent < 60, `${absent} of 2,000`);
});
