/** The stored format of the lock service: golden records, and damage is said, never served. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
import { concatBytes, unwrap, utf8 } from "@stamp/base";
import { inMemory, openSnapshot, type SeededChecksum, type SnapshotEntry, SnapshotWriter, verifySnapshot } from "@stamp/metadata-store";
import { Simulation } from "@stamp/virtual-time";
import { lockServiceSchema } from "../config.ts";
import { LockServiceRole } from "../lock-service.ts";
import { decodeKeyState, decodeStamp, decodeVersion, encodeKeyState, encodeStamp, encodeVersion } from "./store.ts";

const checksum = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7);
const folder = new URL("../../../../tests/golden/lock-service/", import.meta.url);

const golden: readonly { name: string; bytes: Uint8Array; decode: (bytes: Uint8Array) => Outcome<unknown>; value: unknown }[] = [
  {
    name: "v2/stamp",
    bytes: encodeStamp("2b1f3c04-7f5e-4d0a-9a57-000000000001", checksum),
    decode: (bytes) => decodeStamp(bytes, checksum),
    value: "2b1f3c04-7f5e-4d0a-9a57-000000000001",
  },
  {
    name: "v1/version",
    bytes: encodeVersion(2 ** 40 + 5, checksum),
    decode: (bytes) => decodeVersion(bytes, checksum),
    value: 2 ** 40 + 5,
  },
  {
    name: "v1/key",
    bytes: encodeKeyState(utf8("value"), 77, checksum),
    decode: (bytes) => decodeKeyState(bytes, checksum),
    value: { value: utf8("value"), version: 77 },
  },
];

const header = { stampId: "2b1f3c04-7f5e-4d0a-9a57-000000000001", version: 77, takenAtMs: 1_700_000_000_000, lineage: "00".repeat(16) };
const entries: SnapshotEntry[] = ["stamp", "version", "key"].map((name) => [
  utf8(name),
  new Uint8Array(readFileSync(new URL(`v1/${name}.bin`, folder))),
]);

async function shown(bytes: Uint8Array, crc: SeededChecksum): Promise<unknown> {
  const { entries, ...told } = unwrap(await openSnapshot(inMemory(bytes), crc));
  const found: SnapshotEntry[] = [];
  for await (const entry of entries()) found.push(entry);
  return JSON.stringify([told, found]);
}

test("metadata snapshot: both versions are read as they always were; any flipped or missing byte, and any more, is damage", async () => {
  const seeded: SeededChecksum = (bytes, seed = 0) => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7 + seed);
  const writer = new SnapshotWriter(header, seeded);
  const written = concatBytes([writer.begin(), ...entries.flatMap((entry) => writer.add(entry) ?? []), writer.end()]);
  for (const version of [1, 2]) {
    const url = new URL(`../../../../tests/golden/metadata-snapshot/v${version}/small.bin`, import.meta.url);
    if (process.env.STAMP_WRITE_GOLDEN && version === 2) {
      mkdirSync(new URL(".", url), { recursive: true });
      writeFileSync(url, written);
    }
    const stored = new Uint8Array(readFileSync(url));
    if (version === 2) assert.deepEqual(written, stored);
    const lineage = version === 1 ? "" : header.lineage;
    assert.equal(await shown(stored, seeded), JSON.stringify([{ ...header, lineage }, entries]));
    for (let i = 0; i < stored.length; i++) {
      const flipped = new Uint8Array(stored);
      flipped[i] = (flipped[i] as number) ^ 0x08;
      for (const hurt of [flipped, stored.subarray(0, i)]) {
        const verified = await verifySnapshot(inMemory(hurt), seeded);
        // Nothing covers the version: a flipped bit makes it a later one.
        const reasons = hurt === flipped && i === 4 ? ["damaged", "newerFormat"] : ["damaged"];
        assert.ok(!verified.ok && reasons.includes(verified.failure.reason), `version ${version}, byte ${i}`);
      }
    }
    assert.ok(!(await verifySnapshot(inMemory(concatBytes([stored, new Uint8Array(1)])), seeded)).ok);
  }
});

test("metadata snapshot: thousands of entries in many chunks come back in order; a chunk that is missing or moved is damage", async () => {
  const crc32c = new Simulation({ seed: 1 }).world("p").digest.crc32c;
  const writer = new SnapshotWriter(header, crc32c);
  const many = Array.from({ length: 3_000 }, (_, i): SnapshotEntry => [utf8(`k${i}`), new Uint8Array(300).fill(i)]);
  const parts = [writer.begin(), ...many.flatMap((entry) => writer.add(entry) ?? []), writer.end()];
  assert.ok(parts.length > 4);
  const source = inMemory(concatBytes(parts));
  const read: SnapshotEntry[] = [];
  for await (const entry of unwrap(await openSnapshot(source, crc32c)).entries()) read.push(entry);
  assert.deepEqual(read, many);
  const [begin, one, two, ...rest] = parts as [Uint8Array, Uint8Array, Uint8Array];
  for (const wrong of [
    [begin, two, ...rest],
    [begin, two, one, ...rest],
    [begin, one, one, two, ...rest],
  ])
    assert.ok(!(await verifySnapshot(inMemory(concatBytes(wrong)), crc32c)).ok);
});

test("lock service format: every record is written and read as it always was; any flipped or missing byte is damage", () => {
  for (const { name, bytes, decode, value } of golden) {
    const url = new URL(`${name}.bin`, folder);
    if (process.env.STAMP_WRITE_GOLDEN) {
      mkdirSync(new URL(".", url), { recursive: true });
      writeFileSync(url, bytes);
    }
    const stored = new Uint8Array(readFileSync(url));
    assert.deepEqual(new Uint8Array(bytes), stored, name);
    assert.deepEqual(JSON.stringify(unwrap(decode(stored))), JSON.stringify(value), name);
    for (let i = 0; i < stored.length; i++) {
      const flipped = new Uint8Array(stored);
      flipped[i] = (flipped[i] as number) ^ 0x08;
      const outcome = decode(flipped);
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `${name}, byte ${i}`);
      assert.ok(!decode(stored.subarray(0, i)).ok, `${name}, first ${i} bytes`);
    }
  }
});

test("lock service format: the stamp record of a store without a proof is still read", () => {
  const stored = new Uint8Array(readFileSync(new URL("v1/stamp.bin", folder)));
  assert.equal(unwrap(decodeStamp(stored, checksum)), "2b1f3c04-7f5e-4d0a-9a57-000000000001");
});

test("lock service: a corrupt or partly lost store is not served, also with init", async () => {
  for (const damage of ["corrupt", "noStamp"] as const) {
    const sim = new Simulation({ seed: 2 });
    const config = lockServiceSchema.parse({ listen: "lock", init: true });
    sim.addProcess("lock", (world) => new LockServiceRole(world, config));
    await sim.run(async () => {
      await sim.sleep(20);
      assert.ok(sim.role("lock")?.status.ready);
      sim.crash("lock", { stayDown: true, silent: false, unsynced: "kept" });
      if (damage === "corrupt") sim.keyValue("lock").corrupt("metadata");
      else
        sim
          .keyValue("lock")
          .store("metadata")
          .apply([{ kind: "delete", key: utf8("stamp") }]);
      sim.restart("lock");
      await sim.sleep(20);
      const status = sim.role("lock")?.status;
      assert.equal(status?.ready, false);
      assert.match(status?.waitingFor[0] ?? "", damage === "corrupt" ? /LevelDB can't read it/ : /something in it was lost or changed/);
      assert.match(status?.waitingFor[0] ?? "", /stamp metadata restore --replace FILE/);
      assert.equal(status?.state, "damaged");
    });
  }
});

test("metadata snapshot of a later version: told as newer, never as damage", async () => {
  const bytes = new Uint8Array(readFileSync(new URL("../../../../tests/golden/metadata-snapshot/v2/small.bin", import.meta.url)));
  bytes[4] = 3;
  const opened = await openSnapshot(inMemory(bytes), (content) => checksum(content));
  assert.ok(!opened.ok && opened.failure.reason === "newerFormat");
});
