/** Stored formats of a replicated metadata store: golden records, damage, and a later version. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { concatBytes, frameRecord, type Outcome, unwrap, utf8 } from "@stamp/base";
import type { KeyValueOperation } from "@stamp/ports";
import type { Entry } from "@stamp/raft";
import {
  decodeApplied,
  decodeEntry,
  decodeHardState,
  decodeOperations,
  decodeSnapshot,
  decodeSnapshotMeta,
  encodeApplied,
  encodeEntry,
  encodeHardState,
  encodeOperations,
  encodeSnapshot,
} from "./records.ts";

const checksum = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7);
const folder = new URL("../../../../tests/golden/consensus/v1/", import.meta.url);
const members = { voters: ["lock-service-1", "lock-service-2", "lock-service-3"], learners: ["lock-service-4"] };
const batch: KeyValueOperation[] = [
  { kind: "put", key: utf8("k/a"), value: utf8("value") },
  { kind: "delete", key: utf8("k/b") },
  { kind: "put", key: utf8("k/c"), value: new Uint8Array() },
];

type Golden = {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly decode: (bytes: Uint8Array) => Outcome<unknown>;
  readonly value: unknown;
};

function entry(name: string, body: Entry["body"]): Golden {
  const value: Entry = { index: 2 ** 40 + 5, term: 7, body };
  return { name, bytes: encodeEntry(value, checksum), decode: (bytes) => decodeEntry(bytes, checksum), value };
}

const hardState = { term: 7, vote: "lock-service-2", commit: 5 };
const lineage = Uint8Array.from({ length: 16 }, (_, i) => 0xf0 + i);
const snapshot = { generation: 3, lineage, snapshot: { index: 5, term: 6, members, sessions: { "lock-service-1": 2 ** 50 } } };
const applied = { index: 2 ** 40, term: 6 };
const golden: readonly Golden[] = [
  entry("entry-empty", { kind: "empty" }),
  entry("entry-data", { kind: "data", data: encodeOperations(batch) }),
  entry("entry-members", { kind: "members", members }),
  entry("entry-readmit", { kind: "readmit", member: "lock-service-3", session: 2 ** 50 }),
  {
    name: "hard-state",
    bytes: encodeHardState(hardState, checksum),
    decode: (bytes) => decodeHardState(bytes, checksum),
    value: hardState,
  },
  { name: "snapshot", bytes: encodeSnapshot(snapshot, checksum), decode: (bytes) => decodeSnapshot(bytes, checksum), value: snapshot },
  { name: "applied", bytes: encodeApplied(applied, checksum), decode: (bytes) => decodeApplied(bytes, checksum), value: applied },
];

test("consensus format: every record is written and read as it always was; any flipped or missing byte is damage", () => {
  for (const { name, bytes, decode, value } of golden) {
    const url = new URL(`${name}.bin`, folder);
    if (process.env.STAMP_WRITE_GOLDEN) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(url, bytes);
    }
    const stored = new Uint8Array(readFileSync(url));
    assert.deepEqual(new Uint8Array(bytes), stored, name);
    assert.deepEqual(unwrap(decode(stored)), value, name);
    for (let i = 0; i < stored.length; i++) {
      const flipped = new Uint8Array(stored);
      flipped[i] = (flipped[i] as number) ^ 0x08;
      const outcome = decode(flipped);
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `${name}, byte ${i}`);
      assert.ok(!decode(stored.subarray(0, i)).ok, `${name}, first ${i} bytes`);
    }
  }
});

test("consensus format: a record of a later version is told as newer, never as damage", () => {
  for (const { name, bytes, decode } of golden) {
    const later = frameRecord(bytes[0] as number, 2, bytes.subarray(2, -4), checksum);
    const outcome = decode(later);
    assert.ok(!outcome.ok && outcome.failure.reason === "newerFormat", name);
  }
});

test("consensus format: an intact record whose content is no such thing is damage", () => {
  const kinds = [..."EHNA"].map((letter) => letter.charCodeAt(0));
  const decoders = [decodeEntry, decodeHardState, decodeSnapshot, decodeApplied];
  const contents = [
    "",
    "x".repeat(17),
    "{}",
    "null",
    "[]",
    '{"term":-1}',
    `${"\0".repeat(8)}{"index":1}`,
    `${"\0".repeat(24)}{"index":1}`,
    `${"\0".repeat(16)}\u0002{"voters":1}`,
  ];
  for (const [i, decode] of decoders.entries()) {
    for (const content of contents) {
      if (decode === decodeApplied && content.length === 16) continue;
      const outcome = decode(frameRecord(kinds[i] as number, 1, utf8(content), checksum), checksum);
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `${decode.name}, ${JSON.stringify(content)}`);
    }
  }
});

test("consensus format: a description of a snapshot with one field wrong is damage", () => {
  const right = { index: 5, term: 6, members, sessions: { a: 1 } };
  assert.deepEqual(unwrap(decodeSnapshotMeta(utf8(JSON.stringify(right)))), right);
  const wrong = [
    { index: -1 },
    { index: 2 ** 53 },
    { index: "5" },
    { term: 0.5 },
    { members: { voters: ["a"] } },
    { members: { voters: [1], learners: [] } },
    { sessions: null },
    { sessions: { a: "1" } },
  ];
  for (const field of wrong) {
    const outcome = decodeSnapshotMeta(utf8(JSON.stringify({ ...right, ...field })));
    assert.ok(!outcome.ok && outcome.failure.reason === "damaged", JSON.stringify(field));
  }
});

test("consensus format: operations come back in order; a list that is cut inside one is damage", () => {
  const bytes = encodeOperations(batch);
  assert.deepEqual(unwrap(decodeOperations(bytes)), batch);
  assert.deepEqual(unwrap(decodeOperations(new Uint8Array())), []);
  const ends = new Set([0, ...batch.map((_, at) => encodeOperations(batch.slice(0, at + 1)).length)]);
  for (let end = 0; end < bytes.length; end++) assert.equal(decodeOperations(bytes.subarray(0, end)).ok, ends.has(end), `${end} bytes`);
  assert.ok(!decodeOperations(concatBytes([bytes, new Uint8Array([2, 0, 0, 0, 0])])).ok, "an unknown kind");
});
