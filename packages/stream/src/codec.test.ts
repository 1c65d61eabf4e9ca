/** The stored format of the metadata: golden records, damage, and lists with something missing. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { extentId, extentVersion, ownerEpoch, unwrap } from "@stamp/base";
import { decodeStored, encodeStored, recordKey, type StoredRecord } from "./codec.ts";
import { planCreateStream } from "./plan-streams.ts";
import { checksum, replicas, Store } from "./testing/harness.ts";

const goldenFolder = new URL("../../../tests/golden/metadata/", import.meta.url);
const golden: Record<string, StoredRecord> = {
  "v1/ids": { kind: "ids", next: 257 },
  "v1/stream": {
    kind: "stream",
    record: {
      name: "/pm/map/metadata",
      ownerEpoch: ownerEpoch(3),
      segments: [{ id: 9, count: 1_000 }],
      skipCount: 12,
      tail: [extentId(1_009)],
    },
  },
  "v1/segment": { kind: "segment", id: 9, extents: [extentId(1), extentId(2)] },
  "v1/extent-open": {
    kind: "extent",
    record: {
      id: extentId(1_009),
      phase: "open",
      version: extentVersion(1),
      ownerEpoch: ownerEpoch(3),
      stream: "/pm/map/metadata",
      replicas: replicas.map((one) => ({ ...one, complete: false })),
      removed: [],
    },
  },
  "v1/extent-repaired": {
    kind: "extent",
    record: {
      id: extentId(7),
      phase: "sealed",
      version: extentVersion(4),
      ownerEpoch: ownerEpoch(1),
      stream: "/a b/é",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 67_108_864,
      repair: { nodeId: "n5", diskId: "d5" },
      removed: [{ nodeId: "n4", diskId: "d4" }],
    },
  },
  "v1/node": {
    kind: "node",
    record: { nodeId: "extent-node-1", address: "127.0.0.1:7301", diskId: "d", faultDomain: "rack 1", incarnation: 12 },
  },
  "v2/extent-checksum": {
    kind: "extent",
    record: {
      id: extentId(8),
      phase: "sealed",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 1_000,
      removed: [],
      checksum: 4_000_000_000,
    },
  },
  "v2/extent-untold": {
    kind: "extent",
    record: {
      id: extentId(10),
      phase: "sealed",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: false })),
      sealedLengthBytes: 500,
      removed: [],
      untold: ["n2"],
    },
  },
  "v2/extent-loss": {
    kind: "extent",
    record: {
      id: extentId(9),
      phase: "sealed",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: false })),
      sealedLengthBytes: 500,
      removed: [],
      loss: { knownCommittedBytes: 700, wallMs: 1_790_000_000_000, note: "two disks burnt" },
    },
  },
  "v3/extent-dropped": {
    kind: "extent",
    record: {
      id: extentId(11),
      phase: "dropped",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 500,
      removed: [],
      checksum: 7,
      droppedAtMs: 1_790_000_000_000,
    },
  },
  "v4/extent-coding": {
    kind: "extent",
    record: {
      id: extentId(12),
      phase: "sealed",
      version: extentVersion(5),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 500,
      removed: [],
      checksum: 7,
      attempt: {
        kind: "code",
        version: extentVersion(5),
        profile: "rs-4-2",
        targets: ["n1", "n2", "n3", "n4", "n5", "n6"].map((nodeId) => ({ nodeId, diskId: `disk of ${nodeId}` })),
      },
      removedFragments: [{ nodeId: "n7", diskId: "d7", version: extentVersion(3) }],
    },
  },
  "v4/extent-coded": {
    kind: "extent",
    record: {
      id: extentId(13),
      phase: "sealed",
      version: extentVersion(8),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: [],
      sealedLengthBytes: 500,
      removed: replicas,
      checksum: 7,
      coded: {
        profile: "rs-4-2",
        fragments: ["n1", "n2", "n3", "n4", "n5", "n6"].map((nodeId) => ({ nodeId, diskId: "d", version: extentVersion(5) })),
      },
      attempt: { kind: "repair", version: extentVersion(8), index: 3, target: { nodeId: "n7", diskId: "d7" } },
    },
  },
  "v5/extent-creation": {
    kind: "extent",
    record: {
      id: extentId(15),
      phase: "open",
      version: extentVersion(1),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: [],
      removed: [],
      creation: 2 ** 53 - 1,
    },
  },
  "v5/extent-coded": {
    kind: "extent",
    record: {
      id: extentId(13),
      phase: "sealed",
      version: extentVersion(8),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: [],
      sealedLengthBytes: 500,
      removed: replicas,
      checksum: 7,
      coded: {
        profile: "rs-4-2",
        fragments: ["n1", "n2", "n3", "n4", "n5", "n6"].map((nodeId) => ({ nodeId, diskId: "d", version: extentVersion(5) })),
        checksums: [1, 2, 0xffff_ffff, 4, 0, 6],
      },
      attempt: { kind: "repair", version: extentVersion(8), index: 3, target: { nodeId: "n7", diskId: "d7" } },
    },
  },
  "v4/extent-decoding": {
    kind: "extent",
    record: {
      id: extentId(14),
      phase: "sealed",
      version: extentVersion(9),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: [],
      sealedLengthBytes: 500,
      removed: [],
      checksum: 7,
      coded: { profile: "rs-4-2", fragments: [{ nodeId: "n1", diskId: "d", version: extentVersion(5) }] },
      attempt: { kind: "decode", version: extentVersion(9), targets: replicas },
    },
  },
  "v2/node-draining": {
    kind: "node",
    record: { nodeId: "n1", address: "127.0.0.1:7301", diskId: "d", faultDomain: "n1", incarnation: 3, duty: "draining" },
  },
};

test("metadata format: every record is written and read as it always was; any flipped or missing byte is damage", () => {
  for (const [name, stored] of Object.entries(golden)) {
    const url = new URL(`${name}.bin`, goldenFolder);
    if (process.env.STAMP_WRITE_GOLDEN && !existsSync(url)) writeFileSync(url, encodeStored(stored, checksum));
    const bytes = new Uint8Array(readFileSync(url));
    assert.deepEqual(encodeStored(stored, checksum), bytes, name);
    assert.deepEqual(unwrap(decodeStored(recordKey(stored), bytes, checksum)), stored, name);
    for (let i = 0; i < bytes.length; i++) {
      const flipped = new Uint8Array(bytes);
      flipped[i] = (flipped[i] as number) ^ 0x04;
      const outcome = decodeStored(recordKey(stored), flipped, checksum);
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `${name}, byte ${i}`);
      assert.ok(!decodeStored(recordKey(stored), bytes.subarray(0, i), checksum).ok, `${name}, first ${i} bytes`);
    }
  }
  assert.equal(recordKey(golden["v1/extent-open"] as StoredRecord), "sm/extent/0000000000001009");
  assert.ok(!decodeStored("sm/other", new Uint8Array(10), checksum).ok);
});

test("metadata format: a list whose segment or extent is missing does not load", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(1)));
  const id = store.extend("/s", 1);
  store.keys.delete(recordKey({ kind: "extent", record: store.state.extent(extentId(id)) as never }));
  assert.throws(() => store.reload(), /no record/);
});
