/** Checkpoints, commit records and partition states: frozen bytes; a truncated or flipped byte is a typed refusal. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { formatVersions, frameRecord, type Outcome, toHex, unwrap, utf8 } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import fc from "fast-check";
import {
  CheckpointWriter,
  type CommitRecord,
  coveredByRest,
  decodeBlock,
  decodeCommit,
  decodeIndex,
  decodeState,
  encodeCommit,
  encodeState,
  followersFor,
  hashKey,
  joinedState,
  type LogPlace,
  type PartitionState,
  type StoredFollowers,
  withoutPause,
  withRestOf,
  writesBytes,
} from "./index.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);

const commit: CommitRecord = {
  ownerEpoch: 7,
  firstSequence: 2 ** 33,
  lastTicket: 300,
  transactions: [
    [
      { kind: "put", key: utf8("alpha"), value: utf8("1") },
      { kind: "delete", key: utf8("beta") },
    ],
    [{ kind: "put", key: utf8("gamma"), value: new Uint8Array(200).fill(3) }],
  ],
};
const state: PartitionState = {
  rangeId: "blob-1",
  ownerEpoch: 7,
  recordNumber: 12,
  checkpoints: [
    {
      id: 5,
      indexPlaces: [{ extentId: 40, offsetBytes: 20, lengthBytes: 1_000 }],
      bytes: 90_000,
      entryCount: 400,
      minSequence: 100,
      maxSequence: 700,
    },
  ],
  checkpointedSequence: 700,
  lastTicket: 702,
  logStartExtentId: 44,
  nextCheckpointId: 6,
};

const withLogStart: PartitionState = { ...state, logStart: { extentId: 44, offsetBytes: 1_234_567 } };

/** State as a merge leaves it to its child range. */
const leftState: PartitionState = {
  ...joinedState(
    state,
    { low: utf8("a"), high: utf8("m") },
    { ...state, checkpointedSequence: 900, lastTicket: 10 },
    { low: utf8("m"), high: new Uint8Array(0) },
  ),
  heirs: ["blob-e9"],
};

/** The same, while rows were in memory. */
const restState: PartitionState = {
  ...leftState,
  rest: [
    { kind: "put", key: utf8("beta"), value: utf8("2") },
    { kind: "delete", key: utf8("omega") },
  ],
};

function checkpoint(): { block: Uint8Array; index: Uint8Array } {
  const writer = new CheckpointWriter(crc32c);
  for (let i = 0; i < 40; i++)
    writer.add({
      key: utf8(`user/${i.toString().padStart(4, "0")}`),
      sequence: 500 - i,
      value: i % 7 === 3 ? undefined : utf8(`value ${i}`),
    });
  const block = writer.lastBlock() as Uint8Array;
  return { block, index: withoutPause(writer.index([{ extentId: 40, offsetBytes: 4_096, lengthBytes: block.length }])).bytes };
}

const goldenFolder = join(import.meta.dirname, "../../../tests/golden");

/** The frozen bytes. A file that is not there yet is written, and fails once, so that nobody commits it without looking. */
function golden(name: string, encoded: Uint8Array): Uint8Array {
  const path = join(goldenFolder, name);
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, encoded);
    assert.fail(`${name} was missing and is written now`);
  }
  return readFileSync(path);
}

const formats: readonly {
  readonly name: string;
  readonly encoded: () => Uint8Array;
  readonly decode: (bytes: Uint8Array) => Outcome<unknown>;
}[] = [
  { name: "checkpoint/v1/data-block.bin", encoded: () => checkpoint().block, decode: (bytes) => decodeBlock(bytes, crc32c) },
  { name: "checkpoint/v1/index-16-bits.bin", encoded: () => checkpoint().index, decode: (bytes) => decodeIndex(bytes, crc32c) },
  { name: "commit-log/v1/record.bin", encoded: () => encodeCommit(commit, crc32c), decode: (bytes) => decodeCommit(bytes, crc32c) },
  { name: "partition-metadata/v2/state.bin", encoded: () => encodeState(state, crc32c), decode: (bytes) => decodeState(bytes, crc32c) },
  {
    name: "partition-metadata/v2/log-start.bin",
    encoded: () => encodeState(withLogStart, crc32c),
    decode: (bytes) => decodeState(bytes, crc32c),
  },
  { name: "partition-metadata/v2/left.bin", encoded: () => encodeState(leftState, crc32c), decode: (bytes) => decodeState(bytes, crc32c) },
  {
    name: "partition-metadata/v2/lineage.bin",
    encoded: () => encodeState({ ...state, lineage: { log: 30 * 2 ** 40, store: 29 * 2 ** 40 } }, crc32c),
    decode: (bytes) => decodeState(bytes, crc32c),
  },
  {
    name: "partition-metadata/v2/losses.bin",
    encoded: () => encodeState({ ...state, losses: { commits: [[7, 9]], checkpoints: 1 } }, crc32c),
    decode: (bytes) => decodeState(bytes, crc32c),
  },
  {
    name: "partition-metadata/v4/settled.bin",
    encoded: () => encodeState({ ...state, settledExtents: [41, 43] }, crc32c),
    decode: (bytes) => decodeState(bytes, crc32c),
  },
  {
    name: "partition-metadata/v4/left.bin",
    encoded: () => encodeState({ ...restState, settledExtents: [41, 43] }, crc32c),
    decode: (bytes) => decodeState(bytes, crc32c),
  },
  { name: "partition-metadata/v3/left.bin", encoded: () => encodeState(restState, crc32c), decode: (bytes) => decodeState(bytes, crc32c) },
];

for (const format of formats) {
  test(`golden ${format.name}: encodes as frozen; what is cut off or flipped is refused as damaged`, () => {
    const frozen = golden(format.name, format.encoded());
    assert.deepEqual(Buffer.from(format.encoded()), frozen);
    unwrap(format.decode(frozen));
    for (let length = 0; length < frozen.length; length++) {
      const outcome = format.decode(frozen.subarray(0, length));
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `${length} bytes`);
    }
    for (let at = 0; at < frozen.length; at++) {
      const flipped = new Uint8Array(frozen);
      flipped[at] = (flipped[at] as number) ^ (1 << (at % 8));
      const outcome = format.decode(flipped);
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `byte ${at}`);
    }
  });
}

test("partition states: those of version 1 are read as they were; a joined one has what both had, each of its keys only", () => {
  const older = readFileSync(join(goldenFolder, "partition-metadata/v1/state.bin"));
  assert.deepEqual(unwrap(decodeState(older, crc32c)), state);
  assert.deepEqual(
    leftState.checkpoints.map(({ id, bounds }) => [id, bounds]),
    [
      [5, { low: toHex(utf8("a")), high: toHex(utf8("m")) }],
      [11, { low: toHex(utf8("m")), high: "" }],
    ],
  );
  const { checkpointedSequence, lastTicket, nextCheckpointId } = leftState;
  assert.deepEqual([checkpointedSequence, lastTicket, nextCheckpointId], [900, 702, 12]);
});

test("partition states: settled extents come back, with a rest and without; none is as before there were any", () => {
  for (const one of [state, restState]) {
    const settled = { ...one, settledExtents: [41, 43] };
    assert.deepEqual(unwrap(decodeState(encodeState(settled, crc32c), crc32c)), settled);
    assert.deepEqual(encodeState({ ...one, settledExtents: [] }, crc32c), encodeState(one, crc32c));
  }
  for (const settledExtents of [null, 41, [1.5], ["41"]]) {
    const odd = decodeState(frameRecord(0x50, 2, utf8(JSON.stringify({ ...state, settledExtents })), crc32c), crc32c);
    assert.ok(!odd.ok && odd.failure.reason === "damaged", JSON.stringify(settledExtents));
  }
});

test("partition states: what was found gone comes back, of neighbours together; what is no time is damage", () => {
  const first = { ...state, goneSinceMs: { "a/c/7": 1_700_000_000_000 } };
  const second = { ...state, goneSinceMs: { "a/d/8": 1_700_000_000_001 } };
  assert.deepEqual(unwrap(decodeState(encodeState(first, crc32c), crc32c)), first);
  const own = { low: utf8("a"), high: utf8("m") };
  const joined = joinedState(first, own, second, { low: utf8("m"), high: new Uint8Array(0) });
  assert.deepEqual(joined.goneSinceMs, { ...first.goneSinceMs, ...second.goneSinceMs });
  const odd = decodeState(encodeState({ ...state, goneSinceMs: { "a/c/7": 1.5 } }, crc32c), crc32c);
  assert.ok(!odd.ok && odd.failure.reason === "damaged");
});

test("partition states: followers come back; of neighbours those that both name, or whose keys only one has; what is malformed is damage", () => {
  const one = { sequence: 700, low: toHex(utf8("a")), high: toHex(utf8("c")), note: "n" };
  const both = { ...one, high: "", from: { extentId: 44, offsetBytes: 7 } };
  const first = { ...state, checkpointedSequence: 700, followers: { for: ["r1", "heir"], cursors: { one, both, alone: both } } };
  const second = { ...state, checkpointedSequence: 800, followers: { for: ["r2", "heir"], cursors: { both: { ...both, sequence: 3 } } } };
  assert.deepEqual(unwrap(decodeState(encodeState(first, crc32c), crc32c)), first);
  const own = { low: utf8("a"), high: utf8("m") };
  const joined = joinedState(first, own, second, { low: utf8("m"), high: new Uint8Array(0) });
  const { from: _, ...begun } = both;
  assert.deepEqual(joined.followers, {
    for: ["r1", "heir"],
    cursors: { one: { ...one, sequence: 800 }, both: { ...begun, sequence: 800 } },
  });
  assert.deepEqual(followersFor(joined.followers, "heir", { low: utf8("c"), high: utf8("d") }), { both: { ...begun, sequence: 800 } });
  assert.deepEqual(followersFor(joined.followers, "other", own), {}, "a range that an older release has made");
  assert.deepEqual(coveredByRest({ one }, 702, 900), {});
  assert.deepEqual(coveredByRest({ both: { ...both, sequence: 701 } }, 702, 900), { both: { ...begun, sequence: 899 } });
  for (const odd of [null, 7, { for: ["r1"] }, { for: [1], cursors: {} }, { for: [], cursors: { one: { ...one, low: "x" } } }]) {
    const decoded = decodeState(encodeState({ ...state, followers: odd as unknown as StoredFollowers }, crc32c), crc32c);
    assert.ok(!decoded.ok && decoded.failure.reason === "damaged", JSON.stringify(odd));
  }
});

test("partition states: where in the log replay begins is a place, or the state is refused as damaged", () => {
  for (const logStart of [null, {}, { extentId: 44 }, { extentId: 44, offsetBytes: 1.5 }, "44"]) {
    const decoded = decodeState(encodeState({ ...state, logStart: logStart as unknown as LogPlace }, crc32c), crc32c);
    assert.ok(!decoded.ok && decoded.failure.reason === "damaged", JSON.stringify(logStart));
  }
});

test("partition states: what was in memory comes back with them, of neighbours together, and a child gets its own of it", () => {
  const decoded = unwrap(decodeState(encodeState(restState, crc32c), crc32c));
  assert.equal(JSON.stringify(decoded), JSON.stringify(restState));
  const [low, high, end] = [utf8("a"), utf8("m"), new Uint8Array(0)];
  const [first, second] = (restState.rest ?? []).map((write) => ({ ...state, rest: [write] })) as PartitionState[] as [
    PartitionState,
    PartitionState,
  ];
  const joined = joinedState(first, { low, high }, second, { low: high, high: end });
  assert.deepEqual(joined.rest, restState.rest);
  assert.deepEqual(withRestOf(joined, { low, high }).rest, first.rest);
  assert.deepEqual(withRestOf(joined, { low: high, high: end }).rest, second.rest);
  assert.ok(!("rest" in withRestOf(joined, { low: utf8("c"), high })));
});

test("golden checkpoint/v1/index.bin: a filter of 10 bits a key, as it was written before, is read as it was meant", () => {
  const older = unwrap(decodeIndex(readFileSync(join(goldenFolder, "checkpoint/v1/index.bin")), crc32c));
  for (let i = 0; i < 40; i++) assert.ok(older.mayHold(hashKey(utf8(`user/${i.toString().padStart(4, "0")}`))));
  assert.equal(older.mayHold(hashKey(utf8("user/0040"))), false);
});

test("golden checkpoint: what the frozen block and index hold", () => {
  const { block, index } = checkpoint();
  const entries = unwrap(decodeBlock(block, crc32c)).all();
  assert.equal(entries.length, 40);
  assert.deepEqual(
    entries[5] && [Buffer.from(entries[5].key).toString(), entries[5].sequence, Buffer.from(entries[5].value ?? []).toString()],
    ["user/0005", 495, "value 5"],
  );
  assert.equal(entries[3]?.value, undefined);
  const decoded = unwrap(decodeIndex(index, crc32c));
  assert.deepEqual([decoded.entryCount, decoded.minSequence, decoded.maxSequence], [40, 461, 500]);
  assert.deepEqual(unwrap(decodeCommit(encodeCommit(commit, crc32c), crc32c)), commit);
  for (const one of [state, withLogStart]) assert.deepEqual(unwrap(decodeState(encodeState(one, crc32c), crc32c)), one);
});

test("commit record: any transactions come back, and the bound of their size holds", () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  const write = fc.oneof(
    fc.record({ kind: fc.constant("put" as const), key: bytes, value: bytes }),
    fc.record({ kind: fc.constant("delete" as const), key: bytes }),
  );
  fc.assert(
    fc.property(
      fc.array(fc.array(write, { maxLength: 4 }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 2 ** 50 }),
      (transactions, firstSequence) => {
        const record = { ownerEpoch: 3, firstSequence, lastTicket: firstSequence, transactions };
        const encoded = encodeCommit(record, crc32c);
        assert.ok(encoded.length <= 64 + transactions.reduce((sum, writes) => sum + writesBytes(writes), 0));
        const decoded = unwrap(decodeCommit(encoded, crc32c));
        assert.deepEqual(JSON.stringify(decoded), JSON.stringify(record));
      },
    ),
  );
});

test("formats, intact and of a later version: told as newer, never as damage", () => {
  const later = (bytes: Uint8Array, at: number, version: number): Uint8Array => {
    const changed = Uint8Array.from(bytes);
    changed[at] = version;
    const end = changed.length - 4;
    new DataView(changed.buffer).setUint32(end, crc32c(changed.subarray(0, end)), true);
    return changed;
  };
  const index = new Uint8Array(readFileSync(new URL("../../../tests/golden/checkpoint/v1/index.bin", import.meta.url)));
  const needing = (needs: Record<string, number>): Uint8Array => encodeState({ ...state, needs }, crc32c);
  const told: readonly Outcome<unknown>[] = [
    decodeCommit(later(encodeCommit(commit, crc32c), 4, 2), crc32c),
    decodeIndex(later(index, 4, 2), crc32c),
    decodeState(later(encodeState(state, crc32c), 1, 5), crc32c),
    decodeState(needing({ row: formatVersions.row + 1 }), crc32c),
    decodeState(needing({ "of-later": 1 }), crc32c),
  ];
  for (const [i, each] of told.entries()) assert.ok(!each.ok && each.failure.reason === "newerFormat", String(i));
  // Known versions are kept by whoever goes on from the state, the child of a merge included.
  const known = unwrap(decodeState(needing({ row: formatVersions.row }), crc32c));
  const own = { low: new Uint8Array(0), high: new Uint8Array(0) };
  assert.deepEqual(joinedState(state, own, known, own).needs, { row: formatVersions.row });
  assert.deepEqual(withRestOf(known, own).needs, { row: formatVersions.row });
});
