import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, toHex, utf8 } from "@stamp/base";
import fc from "fast-check";
import type { BlockSource } from "../operation.ts";
import { itemsPerPause } from "../plan.ts";
import { TestTable } from "../testing/table.ts";
import { noHeaders as headers } from "./state/head-row.ts";
import { uncommittedBlocksKeptMs } from "./state/staging-rows.ts";

const name = { account: "a", container: "c", containerIncarnation: 1, blob: "b" };
const conditions = {};
const id = (n: number, width = 4) => utf8(String(n).padStart(width, "0"));
const allBlobs = { prefix: "", delimiter: "", marker: "", maxResults: 10, includeMetadata: false, includeUncommitted: true };
let nextExtent = 1;
const block = (blockId: Uint8Array, lengthBytes: number, extentId = nextExtent++) => ({
  name,
  conditions,
  blockId,
  body: { inline: emptyBytes, places: [{ extentId, offsetBytes: 0, lengthBytes }] },
});
const commit = (...blocks: (readonly [Uint8Array, BlockSource])[]) => ({
  name,
  conditions,
  headers,
  metadata: {},
  blocks: blocks.map(([blockId, source]) => ({ blockId, source })),
});

function lists(table: TestTable): { committed: string[]; uncommitted: string[] } {
  const result = table.run({ case: "getBlockList", value: { name, conditions, committed: true, uncommitted: true } });
  assert.ok(result.case === "blockList", JSON.stringify(result));
  const text = (all: readonly { blockId: Uint8Array; sizeBytes: number }[]) => all.map((b) => `${Buffer.from(b.blockId)}:${b.sizeBytes}`);
  return { committed: text(result.value.committed), uncommitted: text(result.value.uncommitted) };
}

test("blocks: a later block of the same id replaces the earlier one; ids have one length", () => {
  const table = new TestTable();
  table.outcome("putBlock", block(id(2), 5));
  table.outcome("putBlock", block(id(1), 6));
  table.outcome("putBlock", block(id(2), 7));
  assert.equal(table.outcome("putBlock", block(id(3, 5), 1)), "InvalidBlobOrBlock");
  assert.equal(table.outcome("putBlock", block(emptyBytes, 1)), "InvalidBlockId");
  assert.equal(table.outcome("putBlock", block(new Uint8Array(65), 1)), "InvalidBlockId");
  assert.deepEqual(lists(table), { committed: [], uncommitted: ["0001:6", "0002:7"] });
  assert.equal(table.outcome("getBlob", { name, conditions, withoutContent: true }), "BlobNotFound");
});

test("blocks: committed, uncommitted and latest are chosen as asked; what is not there is InvalidBlockList", () => {
  const table = new TestTable();
  table.outcome("putBlock", block(id(1), 1));
  table.outcome("putBlock", block(id(2), 2));
  assert.equal(table.outcome("putBlockList", commit([id(1), "uncommitted"], [id(2), "latest"])), "blob");
  assert.deepEqual(lists(table), { committed: ["0001:1", "0002:2"], uncommitted: [] });
  assert.equal(table.outcome("putBlockList", commit([id(1), "uncommitted"])), "InvalidBlockList");
  assert.equal(table.outcome("putBlockList", commit([id(3), "latest"])), "InvalidBlockList");
  table.outcome("putBlock", block(id(1), 10));
  table.outcome("putBlock", block(id(3), 30));
  assert.equal(table.outcome("putBlockList", commit([id(3), "committed"])), "InvalidBlockList");
  assert.equal(
    table.outcome("putBlockList", commit([id(1), "committed"], [id(1), "latest"], [id(2), "latest"], [id(1), "uncommitted"])),
    "blob",
  );
  assert.deepEqual(lists(table), { committed: ["0001:1", "0001:10", "0002:2", "0001:10"], uncommitted: [] });
});

test("blocks: a list that expects a length commits nothing if it is not so", () => {
  const table = new TestTable();
  table.outcome("putBlock", block(id(1), 1));
  const first = commit([id(1), "uncommitted"]);
  assert.equal(table.outcome("putBlockList", { ...first, expectedBytes: 2 }), "ConditionNotMet");
  assert.deepEqual(lists(table), { committed: [], uncommitted: ["0001:1"] });
  assert.equal(table.outcome("putBlockList", { ...first, expectedBytes: 1 }), "blob");
});

test("blocks: a list that keeps others takes only what it names out of the uncommitted ones, up to the last", () => {
  const table = new TestTable();
  for (let n = 1; n <= 4; n++) table.outcome("putBlock", block(id(n), n));
  const keepsUnnamed = true;
  assert.equal(table.outcome("putBlockList", { ...commit([id(1), "uncommitted"], [id(3), "latest"]), keepsUnnamed }), "blob");
  assert.deepEqual(lists(table), { committed: ["0001:1", "0003:3"], uncommitted: ["0002:2", "0004:4"] });
  // A block that is put again is one of the blocks that are counted.
  table.outcome("putBlock", block(id(2), 7));
  table.outcome("putBlock", block(id(1), 9));
  const second = commit([id(1), "committed"], [id(2), "uncommitted"], [id(2), "latest"], [id(3), "latest"]);
  assert.equal(table.outcome("putBlockList", { ...second, keepsUnnamed }), "blob");
  assert.deepEqual(lists(table), { committed: ["0001:1", "0002:7", "0002:7", "0003:3"], uncommitted: ["0001:9", "0004:4"] });
  const last = commit([id(1), "uncommitted"], [id(4), "uncommitted"]);
  assert.equal(table.outcome("putBlockList", { ...last, keepsUnnamed }), "blob");
  assert.deepEqual(lists(table), { committed: ["0001:9", "0004:4"], uncommitted: [] });
  assert.equal(table.outcome("putBlock", block(id(9, 6), 1)), "done", "no staging row is left, whose ids have a length");
  assert.equal(table.outcome("putBlockList", commit([id(9, 6), "uncommitted"])), "blob");
  assert.deepEqual(lists(table), { committed: ["000009:1"], uncommitted: [] }, "a list that keeps none drops all");
});

test("blocks: a list that keeps others names at most 2,000 that are not committed", () => {
  const table = new TestTable();
  table.scanRowsMax = 300;
  const ids = Array.from({ length: 2_002 }, (_, n) => id(n));
  for (const blockId of ids) table.outcome("putBlock", block(blockId, 1));
  const keeping = (count: number) => ({ ...commit(...ids.slice(0, count).map((one) => [one, "latest"] as const)), keepsUnnamed: true });
  assert.equal(table.decide({ case: "putBlockList", value: keeping(2_001) }).refusal?.reason, "badRequest");
  assert.equal(table.outcome("putBlockList", keeping(2_000)), "blob");
  assert.deepEqual(lists(table).uncommitted, ["2000:1", "2001:1"]);
});

test("blocks: a week after the last one was put they are given up: not listed, not committed, not met again", () => {
  const table = new TestTable();
  table.scanRowsMax = 300;
  for (let i = 0; i < 20; i++) table.outcome("putBlock", block(id(i), 1));
  table.wallMs += uncommittedBlocksKeptMs - 1;
  assert.equal(lists(table).uncommitted.length, 20);
  table.outcome("putBlock", block(id(0), 2));
  table.wallMs += uncommittedBlocksKeptMs - 1;
  assert.equal(lists(table).uncommitted.length, 20, "each Put Block counts anew");
  table.wallMs += 1;
  assert.equal(table.outcome("getBlockList", { name, conditions, committed: true, uncommitted: true }), "BlobNotFound");
  assert.equal(table.outcome("putBlockList", commit([id(0), "latest"])), "InvalidBlockList");
  const listed = table.run({ case: "listBlobs", value: { ...name, ...allBlobs } });
  assert.ok(listed.case === "blobs" && listed.value.entries.length === 0);
  table.outcome("putBlock", block(id(1, 9), 3));
  assert.deepEqual(lists(table).uncommitted, ["000000001:3"], "ids of another length, since the old ones do not count");
  table.wallMs += uncommittedBlocksKeptMs;
  for (let i = 0; i < 20; i++) table.outcome("putBlock", block(id(i), 1));
  assert.equal(table.rows.size, 1 + 20, "rows of what was given up are gone");
});

test("blocks: Put Blob and Delete Blob drop uncommitted ones, and none of them come back", () => {
  const table = new TestTable();
  for (const drop of ["put", "delete"] as const) {
    table.outcome("putBlob", { name, conditions, headers, metadata: {}, body: { inline: utf8("x"), places: [] } });
    for (let i = 0; i < 20; i++) table.outcome("putBlock", block(id(i), 1));
    if (drop === "put") table.outcome("putBlob", { name, conditions, headers, metadata: {}, body: { inline: utf8("y"), places: [] } });
    else table.outcome("deleteBlob", { name, conditions });
    assert.equal(table.outcome("putBlockList", commit([id(19), "latest"])), "InvalidBlockList", drop);
    table.outcome("putBlock", block(id(0), 1));
    assert.deepEqual(lists(table), { committed: [], uncommitted: ["0000:1"] }, drop);
    table.outcome("putBlockList", commit());
  }
});

test("blocks: a blob with uncommitted ones only is deleted with them, under its conditions", () => {
  const table = new TestTable();
  const deleted = (more: object = {}) => table.outcome("deleteBlob", { name, conditions, ...more });
  for (let i = 0; i < 20; i++) table.outcome("putBlock", block(id(i), 1));
  assert.equal(deleted({ conditions: { ifMatch: "*" } }), "ConditionNotMet 412");
  assert.equal(deleted({ conditions: { leaseId: "aaaaaaaa-1111-2222-3333-444444444444" } }), "LeaseNotPresentWithBlobOperation");
  assert.equal(deleted({ snapshots: "only" }), "BlobNotFound");
  assert.equal(lists(table).uncommitted.length, 20);
  assert.equal(deleted(), "deleted");
  assert.equal(table.outcome("getBlockList", { name, conditions, committed: true, uncommitted: true }), "BlobNotFound");
  assert.equal(deleted(), "BlobNotFound");
  table.outcome("putBlock", block(id(0), 1));
  table.wallMs += uncommittedBlocksKeptMs;
  assert.equal(deleted(), "BlobNotFound", "what was given up is not there");
});

test("blocks: nothing of another type is made over uncommitted ones", () => {
  const table = new TestTable();
  const body = { inline: emptyBytes, places: [] };
  const copied = { copyId: "1", source: "s", description: "", copiedBytes: 0, totalBytes: 0, status: "pending" as const, work: undefined };
  const copy = { name, conditions, headers, metadata: {}, copy: copied, pageBlobBytes: 0, sequenceNumber: 0, appendBlockCount: 0 };
  const make = (blobType: "AppendBlob" | "PageBlob") => [
    table.outcome("putBlob", { name, conditions, headers, metadata: {}, body, blobType }),
    table.outcome("startCopy", { ...copy, sealed: false, parts: [], blobType }),
  ];
  table.outcome("putBlock", block(id(1), 5));
  for (const type of ["AppendBlob", "PageBlob"] as const) assert.deepEqual(make(type), ["InvalidBlobType", "InvalidBlobType"], type);
  assert.deepEqual(lists(table), { committed: [], uncommitted: ["0001:5"] });
  table.wallMs += uncommittedBlocksKeptMs;
  assert.deepEqual(make("AppendBlob"), ["blob", "blob"], "what was given up is in nobody's way");
});

test("blocks: a blob of 50,000 blocks is committed, read in the middle, and none of its rows is large", () => {
  const table = new TestTable();
  table.scanRowsMax = 10_000;
  const count = 50_000;
  for (let i = 0; i < 40; i++) table.outcome("putBlock", block(id(i, 48), 100, i + 1));
  const blocks = Array.from({ length: count }, (_, i) => [id(i % 40, 48), "latest"] as [Uint8Array, BlockSource]);
  assert.equal(table.outcome("putBlockList", commit(...blocks, [id(0, 48), "latest"])), "BlockListTooLong");
  assert.equal(table.outcome("putBlockList", commit(...blocks)), "blob");
  assert.ok(table.rowBytesMax < 300 * 1024, `largest row ${table.rowBytesMax}`);
  assert.ok(table.commitBytesMax < 3 * 1024 * 1024, `one commit record holds it: ${table.commitBytesMax}`);
  table.reads = 0;
  const start = 30_000 * 100 + 50;
  const read = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: start, endBytes: start + 100 } });
  assert.ok(read.case === "content");
  assert.deepEqual(read.value.places, [
    { extentId: 1, offsetBytes: 50, lengthBytes: 50 },
    { extentId: 2, offsetBytes: 0, lengthBytes: 50 },
  ]);
  assert.ok(table.reads <= 3, `${table.reads} rows read`);
  assert.equal(lists(table).committed.length, count);
});

test("blocks: a plan over 50,000 blocks pauses again and again while it works on what it has read", () => {
  const table = new TestTable();
  table.scanRowsMax = 10_000;
  const count = 50_000;
  const pausesOf = (source: BlockSource): number => {
    const before = table.pauses;
    assert.equal(
      table.outcome("putBlockList", commit(...Array.from({ length: count }, (_, i) => [id(i % 2_000, 48), source] as const))),
      "blob",
    );
    return table.pauses - before;
  };
  for (let i = 0; i < 2_000; i++) table.outcome("putBlock", block(id(i, 48), 100, i + 1));
  const [pieces, lists] = [10, count / itemsPerPause];
  assert.ok(pausesOf("latest") >= lists + 2_000 / itemsPerPause + pieces, "staged blocks, the list, and each content row");
  assert.ok(pausesOf("committed") >= 2 * lists + pieces, "committed blocks, the list, and each content row");
});

/** A model of one blob with blocks: committed list and uncommitted set. */
const sources: BlockSource[] = ["committed", "uncommitted", "latest"];
const command = fc.oneof(
  fc.record({ do: fc.constant("block" as const), id: fc.nat(5), size: fc.integer({ min: 1, max: 9 }) }),
  fc.record({
    do: fc.constant("commit" as const),
    blocks: fc.array(fc.tuple(fc.nat(5), fc.constantFrom(...sources)), { maxLength: 4 }),
    keepsUnnamed: fc.boolean(),
  }),
  fc.record({ do: fc.constantFrom("put" as const, "delete" as const) }),
);

test("blocks: any sequence of operations does what the model says", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 30 }), (commands) => {
      const table = new TestTable();
      let exists = false;
      let committed: [string, number][] = [];
      let uncommitted = new Map<string, number>();
      for (const step of commands) {
        if (step.do === "block") {
          table.outcome("putBlock", block(id(step.id), step.size));
          uncommitted.set(toHex(id(step.id)), step.size);
        } else if (step.do === "commit") {
          const wanted = step.blocks.map(([n, source]): [string, number] | undefined => {
            const key = toHex(id(n));
            const fresh = source === "committed" ? undefined : uncommitted.get(key);
            const size = fresh ?? (source === "uncommitted" ? undefined : committed.find(([k]) => k === key)?.[1]);
            return size === undefined ? undefined : [key, size];
          });
          const list = commit(...step.blocks.map(([n, s]) => [id(n), s] as [Uint8Array, BlockSource]));
          const outcome = table.outcome("putBlockList", { ...list, keepsUnnamed: step.keepsUnnamed });
          const found = wanted.filter((one) => one !== undefined);
          assert.equal(outcome, found.length === wanted.length ? "blob" : "InvalidBlockList");
          if (found.length !== wanted.length) continue;
          committed = found;
          const named = step.blocks.filter(([, source]) => source !== "committed").map(([n]) => toHex(id(n)));
          uncommitted = new Map(step.keepsUnnamed ? [...uncommitted].filter(([key]) => !named.includes(key)) : []);
          exists = true;
        } else if (step.do === "put") {
          table.outcome("putBlob", { name, conditions, headers, metadata: {}, body: { inline: utf8("x"), places: [] } });
          committed = [];
          uncommitted = new Map();
          exists = true;
        } else {
          const there: boolean = exists || uncommitted.size > 0;
          assert.equal(table.outcome("deleteBlob", { name, conditions }), there ? "deleted" : "BlobNotFound");
          uncommitted = new Map();
          committed = [];
          exists = false;
        }
        const result = table.run({ case: "getBlockList", value: { name, conditions, committed: true, uncommitted: true } });
        if (result.case !== "blockList") {
          assert.ok(!exists && uncommitted.size === 0);
          continue;
        }
        assert.equal(result.value.blob !== undefined, exists);
        assert.deepEqual(
          result.value.committed.map((b) => [toHex(b.blockId), b.sizeBytes]),
          committed,
        );
        assert.deepEqual(new Map(result.value.uncommitted.map((b) => [toHex(b.blockId), b.sizeBytes])), uncommitted);
      }
    }),
    { numRuns: 200 },
  );
});
