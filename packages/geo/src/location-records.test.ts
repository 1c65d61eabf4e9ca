/** Records of the location service: golden bytes, every flipped byte, later versions, records under another key. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { formatVersions, frameRecord, unwrap, utf8 } from "@stamp/base";
import { accountKey, decodeLocationRecord, encodeLocationRecord, type LocationRecord, stampKey } from "./location-records.ts";
import { planCreate } from "./operations.ts";

/** Checksum as good as crc32c here: what matters is that it is checked. */
const checksum = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7);

const records: readonly (readonly [string, LocationRecord])[] = [
  [
    stampKey("north-1"),
    {
      kind: "stamp",
      record: { name: "north-1", location: "north", lockService: "10.0.0.1:10100", stampId: "id-1", secret: "", state: "open" },
    },
  ],
  [accountKey("acme"), { kind: "account", record: { ...unwrap(planCreate("acme", "north-1")), newKeys: ["a2V5IDE=", "a2V5IDI="] } }],
  [accountKey("plain"), { kind: "account", record: { name: "plain", primary: "north-1", epoch: 1, operation: 1, seeded: false } }],
];

test("location records: the bytes of version 1 stay, and come back as they were", () => {
  const url = new URL("../../../tests/golden/location/v1/records.bin", import.meta.url);
  const bytes = records.map(([, record]) => encodeLocationRecord(record, checksum));
  const all = Buffer.concat(bytes);
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(url, all);
  assert.deepEqual(new Uint8Array(all), new Uint8Array(readFileSync(url)));
  for (const [at, [key, record]] of records.entries())
    assert.deepEqual(unwrap(decodeLocationRecord(key, bytes[at] as Uint8Array, checksum)), record);
});

test("location records: a flipped byte, a cut, a later version, another key are refused, each for what it is", () => {
  const [[key, record]] = records as [(typeof records)[0]];
  const bytes = encodeLocationRecord(record, checksum);
  const reason = (at: string, found: Uint8Array): string => {
    const decoded = decodeLocationRecord(at, found, checksum);
    return decoded.ok ? "ok" : decoded.failure.reason;
  };
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Uint8Array.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ 4;
    assert.equal(reason(key, flipped), "damaged", `byte ${at}`);
    assert.equal(reason(key, bytes.subarray(0, at)), "damaged", `cut at ${at}`);
  }
  assert.equal(reason(key, frameRecord(0x54, formatVersions.location + 1, utf8("{}"), checksum)), "newerFormat");
  assert.equal(reason(stampKey("north-2"), bytes), "damaged");
  assert.equal(reason(accountKey("north-1"), bytes), "damaged");
  assert.equal(reason("location/others/x", bytes), "damaged");
});
