import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { blobPrefixXml, type ListedBlobProperties, listBlobsXml, listedBlobXml } from "@stamp/azure-rest";
import { emptyBytes } from "@stamp/base";
import { encodeRow, blobSchema as schema } from "@stamp/objects";
import { type BlobPage, BlobPageSchema } from "@stamp/wire";
import { BlobPages } from "./blob-pages.ts";

const stateKind = 1;
const prefixKind = 0;
const createdMs = 1_700_000_000_000;

/** One entry, as a partition server packs it. */
function entry(kind: number, name: string, row: Uint8Array = emptyBytes): Uint8Array {
  const text = Buffer.from(name);
  const header = Buffer.alloc(24);
  header[0] = kind;
  header.writeUInt32LE(text.length, 8);
  header.writeUInt32LE(row.length, 12);
  return Buffer.concat([header, text, row]);
}

const row = encodeRow(schema, {
  etag: 255n,
  created: BigInt(createdMs) * 10_000n,
  lastModified: BigInt(createdMs + 5_000) * 10_000n,
  blobType: 1,
  contentLength: 1_024n,
  contentType: "text/plain",
  contentMd5: new Uint8Array(16).fill(9),
  metadata: [{ name: "m", type: "string", value: "<ü>" }],
  tags: [{ name: "t", type: "string", value: "1" }],
});
const message = (name: string) => ({
  name,
  etag: '"0x8000000000000FF"',
  createdMs: BigInt(createdMs),
  lastModifiedMs: BigInt(createdMs + 5_000),
  contentLengthBytes: 1_024n,
  headers: { contentType: "text/plain", contentMd5: new Uint8Array(16).fill(9) },
  metadata: { m: "<ü>" },
  blobType: "BlockBlob",
  lease: { state: "available", status: "unlocked" },
  tags: { t: "1" },
  tagCount: 1,
  accessTier: "Hot",
  accessTierInferred: true,
});

/** A page of these names, each of which ends with "/" if it is a common prefix. */
function packedPage(names: readonly string[], rangeEnded = false): BlobPage {
  const count = Buffer.alloc(4);
  count.writeUInt32LE(names.length);
  const entries = names.map((name) => (name.endsWith("/") ? entry(prefixKind, name) : entry(stateKind, name, row)));
  return create(BlobPageSchema, { packed: Buffer.concat([count, ...entries]), rangeEnded });
}

function messagePage(names: readonly string[], rangeEnded = false): BlobPage {
  const entries = names.map((name) => ({
    kind: name.endsWith("/") ? ({ case: "prefix", value: name } as const) : ({ case: "blob", value: message(name) } as const),
  }));
  return create(BlobPageSchema, { entries, rangeEnded });
}

const make = { packed: packedPage, messages: messagePage };

function xmlOf(pages: BlobPages, include: ReadonlySet<string>, showsTagCount: boolean): string {
  const reader = { blob: (blob: ListedBlobProperties) => listedBlobXml(blob, include), prefix: blobPrefixXml };
  const echo = { serviceEndpoint: "http://a/", include, version: "2026-10-06" };
  return [...listBlobsXml(echo, "c", pages.read(reader, showsTagCount), "")].join("");
}

test("pages of blobs: packed entries give the XML that messages give", () => {
  const names = ["a", "b & <c>", "d/", "ü\u{1f600}", "with \u0001"];
  for (const include of [[], ["metadata"], ["tags", "legalhold", "immutabilitypolicy"]]) {
    for (const showsTagCount of [true, false]) {
      const [packed, messages] = [make.packed, make.messages].map((page) => {
        const pages = new BlobPages();
        assert.equal(pages.take(page(names)), names.length);
        assert.deepEqual([...pages.names()], names);
        return xmlOf(pages, new Set(include), showsTagCount);
      });
      assert.equal(packed, messages);
      assert.ok(packed?.includes("<Content-Length>1024</Content-Length>"));
      assert.equal(packed?.includes("<TagCount>1</TagCount>"), showsTagCount);
    }
  }
});

for (const [kind, page] of Object.entries(make)) {
  test(`pages of blobs (${kind}): a common prefix that lies in two ranges is listed once`, () => {
    const pages = new BlobPages();
    assert.equal(pages.take(page(["a", "p/"], true)), 2);
    assert.equal(pages.take(page([], true)), 0);
    assert.equal(pages.first(page(["p/", "q"])), "q");
    assert.equal(pages.first(page(["p/"])), undefined);
    assert.equal(pages.first(page(["q"])), "q");
    assert.equal(pages.take(page(["p/"], true)), 0);
    assert.equal(pages.take(page(["p/", "p0", "p1/"], true)), 2);
    assert.equal(pages.take(page(["q", "p1/"])), 2);
    assert.deepEqual([...pages.names()], ["a", "p/", "p0", "p1/", "q", "p1/"]);
    assert.equal(pages.count, 6);
  });
}
