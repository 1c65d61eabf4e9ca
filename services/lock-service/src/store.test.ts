/** The stored format of the lock service: golden records, and damage is said, never served. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
import { unwrap, utf8 } from "@stamp/base";
import { decodeSnapshot, encodeSnapshot, type MetadataSnapshot } from "@stamp/metadata-store";
import { Simulation } from "@stamp/simulator";
import { lockServiceSchema } from "./config.ts";
import { LockServiceRole } from "./lock-service.ts";
import { decodeKeyState, decodeStamp, decodeVersion, encodeKeyState, encodeStamp, encodeVersion } from "./store.ts";

const checksum = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7);
const folder = new URL("../../../tests/golden/lock-service/", import.meta.url);

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

const snapshot: MetadataSnapshot = {
  stampId: "2b1f3c04-7f5e-4d0a-9a57-000000000001",
  version: 77,
  takenAtMs: 1_700_000_000_000,
  entries: ["stamp", "version", "key"].map(
    (name) => [utf8(name), new Uint8Array(readFileSync(new URL(`v1/${name}.bin`, folder)))] as const,
  ),
};

test("metadata snapshot: written and read as it always was; any flipped or missing byte is damage", () => {
  const url = new URL("../../../tests/golden/metadata-snapshot/v1/small.bin", import.meta.url);
  const bytes = encodeSnapshot(snapshot, checksum);
  if (process.env.STAMP_WRITE_GOLDEN) {
    mkdirSync(new URL(".", url), { recursive: true });
    writeFileSync(url, bytes);
  }
  const stored = new Uint8Array(readFileSync(url));
  assert.deepEqual(new Uint8Array(bytes), stored);
  assert.deepEqual(JSON.stringify(unwrap(decodeSnapshot(stored, checksum))), JSON.stringify(snapshot));
  for (let i = 0; i < stored.length; i++) {
    const flipped = new Uint8Array(stored);
    flipped[i] = (flipped[i] as number) ^ 0x08;
    for (const hurt of [flipped, stored.subarray(0, i)]) {
      const decoded = decodeSnapshot(hurt, checksum);
      assert.ok(!decoded.ok && decoded.failure.reason === "damaged", `byte ${i}`);
    }
  }
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
