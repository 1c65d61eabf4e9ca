import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, utf8 } from "@stamp/base";
import { everyBlob, listedOf } from "../testing/packed-listing.ts";
import { TestTable } from "../testing/table.ts";
import { PackedBlob } from "./packed-blobs.ts";
import { noHeaders } from "./state/head-row.ts";

const name = (blob: string) => ({ account: "a", container: "c", containerIncarnation: 1, blob });
const leaseId = "aaaaaaaa-1111-2222-3333-444444444444";
const noLease = { leaseId: "", proposedLeaseId: "" };

function packedOf(table: TestTable, more: Partial<typeof everyBlob> = {}): Uint8Array {
  const result = table.run({ case: "listBlobs", value: { ...everyBlob, ...more, packed: true } });
  assert.ok(result.case === "blobs" && result.value.packed !== undefined);
  return result.value.packed;
}

/** Blobs with every property that a listing can show. Each listing is compared with its messages by the table. */
function filled(): TestTable {
  const table = new TestTable();
  const inline = utf8("x");
  const body = { inline, places: [] };
  const put = (blob: string, more: object = {}): void =>
    void table.outcome("putBlob", { name: name(blob), conditions: {}, headers: noHeaders, metadata: {}, body, ...more });
  const lease = (blob: string, durationSeconds: number): void =>
    void table.outcome("leaseBlob", {
      name: name(blob),
      conditions: {},
      ...noLease,
      action: "acquire",
      proposedLeaseId: leaseId,
      durationSeconds,
    });
  const headers = {
    contentType: "text/plain",
    contentEncoding: "gzip",
    contentLanguage: "de",
    contentMd5: new Uint8Array(16).fill(3),
    cacheControl: "no-cache",
    contentDisposition: "inline",
  };
  put("all headers, ü\u{1f600}", { headers, metadata: { a: "1", b: "ü" } });
  put("large", { metadata: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`m${i}`, "v".repeat(100)])) });
  const cipher = { salt: new Uint8Array(32), offsetBytes: 0 };
  const places = [{ extentId: 1, offsetBytes: 0, lengthBytes: 1, cipher }];
  put("key", { conditions: { encryptionKeySha256: new Uint8Array(32).fill(7) }, body: { inline: new Uint8Array(0), places } });
  put("leased", {});
  lease("leased", 15);
  put("expired lease");
  lease("expired lease", 15);
  table.monotonicMs += 16_000;
  lease("leased", 60);
  put("for ever");
  lease("for ever", -1);
  put("broken");
  lease("broken", -1);
  const broken = { ...noLease, action: "break", durationSeconds: 0, breakPeriodSeconds: 0 } as const;
  table.outcome("leaseBlob", { name: name("broken"), conditions: {}, ...broken });
  put("tagged");
  table.outcome("setBlobTags", { name: name("tagged"), conditions: {}, tags: { t: "1", u: "2" } });
  put("held");
  table.outcome("setLegalHold", { name: name("held"), conditions: {}, hold: true });
  put("tier");
  table.outcome("setBlobTier", { name: name("tier"), conditions: {}, tier: "Cool" });
  table.outcome("putBlock", {
    name: name("uncommitted"),
    conditions: {},
    blockId: Uint8Array.of(1),
    body: { inline: new Uint8Array(0), places: [{ extentId: 1, offsetBytes: 0, lengthBytes: 1 }] },
  });
  return table;
}

test("packed blobs say what messages say, whatever properties a blob has and whatever is asked for", () => {
  const table = filled();
  const all = { includeMetadata: true, includeTags: true };
  for (const more of [{}, all, { delimiter: "e" }, { prefix: "l" }, { includeUncommitted: false }]) {
    const value = { ...everyBlob, ...more };
    const result = table.run({ case: "listBlobs", value });
    assert.ok(result.case === "blobs" && result.value.entries.length > 0);
  }
  const names = [...listedOf(packedOf(table))].map((entry) => (entry.case === "blob" ? entry.value.name : ""));
  assert.equal(names.length, 11);
  const leases = [...listedOf(packedOf(table))].map((entry) => entry.case === "blob" && entry.value.lease.state);
  for (const state of ["available", "leased", "expired", "broken"]) assert.ok(leases.includes(state as never), state);
});

test("packed blobs: a long row is sent without metadata that nobody asked for", () => {
  const table = filled();
  const lengthOf = (more: object) => packedOf(table, { prefix: "large", ...more }).length;
  assert.ok(lengthOf({}) < 400 && lengthOf({ includeMetadata: true }) > 2_000);
});

test("packed blobs: the number of tags is hidden from those who may not know it", () => {
  const entry = new PackedBlob(packedOf(filled(), { prefix: "tagged" }), false);
  assert.ok(entry.next());
  assert.equal(
    entry.read(({ tagCount }) => tagCount),
    0,
  );
});

test("packed blobs, cut off anywhere, are refused", () => {
  const table = filled();
  const packed = packedOf(table, { maxResults: 2 });
  const read = (bytes: Uint8Array): number => [...listedOf(bytes)].length;
  const whole = new Set<number>();
  const entry = new PackedBlob(packed);
  for (let at = 4; ; ) {
    whole.add(at);
    if (!entry.next()) break;
    const view = new DataView(packed.buffer, packed.byteOffset);
    at += 24 + view.getUint32(at + 8, true) + view.getUint32(at + 12, true);
  }
  for (let length = 4; length < packed.length; length++) {
    if (!whole.has(length)) assert.throws(() => read(packed.subarray(0, length)), FailureError);
  }
});
