import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, utf8 } from "@stamp/base";
import fc from "fast-check";
import type { Place } from "../rows/row.ts";
import { TestTable } from "../testing/table.ts";
import { purgeMarginMs } from "./blob-garbage.ts";
import { chunkBytes } from "./pages/page-runs.ts";
import { noHeaders as headers } from "./state/head-row.ts";

const name = { account: "a", container: "c", containerIncarnation: 1, blob: "b" };
const conditions = {};
const dayMs = 86_400_000;
const body = { inline: utf8("content"), places: [] };
const putBlob = (table: TestTable): string => table.outcome("putBlob", { name, conditions, headers, metadata: {}, body });

function putBlocks(table: TestTable, count: number): void {
  for (let i = 0; i < count; i++) {
    const places = [{ extentId: 1, offsetBytes: i, lengthBytes: 1 }];
    assert.equal(
      table.outcome("putBlock", { name, conditions, blockId: Uint8Array.of(1, i), body: { inline: emptyBytes, places } }),
      "done",
    );
  }
}

test("blob garbage: uncommitted blocks that other content replaced go, those that count stay", () => {
  const table = new TestTable();
  putBlocks(table, 40);
  assert.equal(table.collect(), 0);
  assert.equal(putBlob(table), "blob");
  assert.ok(table.rows.size > 30, "a commit drops a few only");
  putBlocks(table, 5);
  assert.equal(table.collect(), 40 - 7);
  assert.equal(table.rows.size, 2 + 1 + 5);
  const list = table.run({ case: "getBlockList", value: { name, conditions, committed: true, uncommitted: true } });
  assert.ok(list.case === "blockList" && list.value.uncommitted.length === 5);
  table.wallMs += 7 * dayMs;
  assert.equal(table.collect(), 0, "given up, but not for long");
  table.wallMs += purgeMarginMs;
  while (table.collect() > 0) {}
  assert.equal(table.rows.size, 2);
});

test("blob garbage: what was deleted softly can be undeleted up to its time, and is gone an hour later", () => {
  const table = new TestTable();
  table.policy = { ...table.policy, deleteRetentionDays: 2 };
  assert.equal(putBlob(table), "blob");
  assert.equal(table.outcome("snapshotBlob", { name, conditions }), "blob");
  assert.equal(putBlob(table), "blob");
  assert.equal(table.outcome("deleteBlob", { name, conditions, snapshots: "include" }), "deleted");
  const { size } = table.rows;
  table.wallMs += 2 * dayMs - 1;
  assert.equal(table.collect(), 0);
  assert.equal(table.outcome("undeleteBlob", { name }), "deleted");
  assert.equal(table.outcome("getBlob", { name, conditions, withoutContent: false }), "content");
  assert.equal(table.outcome("deleteBlob", { name, conditions, snapshots: "include" }), "deleted");
  table.wallMs += 2 * dayMs + purgeMarginMs - 1;
  table.collect();
  assert.equal(table.rows.size, size);
  table.wallMs += 1;
  while (table.collect() > 0) {}
  assert.equal(table.rows.size, 0);
});

test("blob garbage: a blob that expired goes with its snapshots, unless a legal hold keeps it", () => {
  for (const legalHold of [false, true]) {
    const table = new TestTable();
    assert.equal(putBlob(table), "blob");
    assert.equal(table.outcome("snapshotBlob", { name, conditions }), "blob");
    assert.equal(table.outcome("setBlobExpiry", { name, conditions, option: "relativeToNow", timeMs: 5_000 }), "blob");
    if (legalHold) assert.equal(table.outcome("setLegalHold", { name, conditions, hold: true }), "blob");
    const { size } = table.rows;
    assert.equal(table.collect(), 0);
    table.wallMs += 5_000 + purgeMarginMs;
    while (table.collect() > 0) {}
    assert.equal(table.rows.size, legalHold ? size : 0);
  }
});

type PageStep =
  | { readonly do: "write" | "clear"; readonly chunk: number; readonly pages: number }
  | { readonly do: "snapshot" | "collect" | "replace" }
  | { readonly do: "drop"; readonly which: number };

const pageStep: fc.Arbitrary<PageStep> = fc.oneof(
  fc.record({
    do: fc.constantFrom("write" as const, "write" as const, "clear" as const),
    chunk: fc.nat(3),
    pages: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ do: fc.constantFrom("snapshot" as const, "snapshot" as const, "collect" as const, "replace" as const) }),
  fc.record({ do: fc.constant("drop" as const), which: fc.nat(5) }),
);

class Disk {
  readonly table = new TestTable();
  readonly snapshots: number[] = [];
  #extentId = 1;

  make(): void {
    const blank = { inline: emptyBytes, places: [] };
    const put = { name, conditions, headers, metadata: {}, body: blank, blobType: "PageBlob" as const, pageBlobBytes: 4 * chunkBytes };
    assert.equal(this.table.outcome("putBlob", { ...put, sequenceNumber: 0 }), "blob");
  }

  step(step: PageStep): void {
    if (step.do === "collect") this.collect();
    else if (step.do === "replace") this.make();
    else if (step.do === "snapshot") {
      const made = this.table.run({ case: "snapshotBlob", value: { name, conditions } });
      assert.ok(made.case === "blob");
      this.snapshots.push(made.value.snapshotStamp);
    } else if (step.do === "drop") {
      const [snapshotStamp] = this.snapshots.splice(step.which % Math.max(this.snapshots.length, 1), 1);
      if (snapshotStamp === undefined) return;
      assert.equal(this.table.outcome("deleteBlob", { name: { ...name, snapshotStamp }, conditions }), "deleted");
    } else if (step.do === "write" || step.do === "clear") this.#write(step);
  }

  #write({ do: kind, chunk, pages }: Extract<PageStep, { pages: number }>): void {
    const startBytes = chunk * chunkBytes;
    const common = { name, conditions, sequence: {}, startBytes };
    if (kind === "clear") {
      assert.equal(this.table.outcome("clearPages", { ...common, endBytes: startBytes + pages * 512 }), "cleared");
      return;
    }
    const places = [{ extentId: this.#extentId++, offsetBytes: 0, lengthBytes: pages * 512 }];
    assert.equal(this.table.outcome("putPages", { ...common, body: { inline: emptyBytes, places } }), "blob");
  }

  collect(): void {
    const before = this.read();
    this.table.collect();
    assert.deepEqual(this.read(), before);
    assert.equal(this.table.collect(), 0, "all of it at once");
  }

  /** Contents of the blob and of each of its snapshots. */
  read(): (readonly Place[])[] {
    return [undefined, ...this.snapshots].map((snapshotStamp) => {
      const reference = snapshotStamp === undefined ? name : { ...name, snapshotStamp };
      const got = this.table.run({ case: "getBlob", value: { name: reference, conditions, withoutContent: false } });
      assert.ok(got.case === "content");
      return got.value.places;
    });
  }
}

test("blob garbage: of page blobs and their snapshots every state stays as it was, and rows that none of them sees go", () => {
  fc.assert(
    fc.property(fc.array(pageStep, { maxLength: 40 }), (script) => {
      const disk = new Disk();
      disk.make();
      for (const step of script) disk.step(step);
      disk.collect();
      // Every page row that is left is seen by some state: without snapshots one a chunk.
      for (let left = disk.snapshots.length; left > 0; left--) disk.step({ do: "drop", which: 0 });
      disk.collect();
      assert.ok(disk.table.rows.size <= 2 + 4, `${disk.table.rows.size} rows`);
      assert.equal(disk.table.outcome("deleteBlob", { name, conditions, snapshots: "" }), "deleted");
      disk.table.collect();
      assert.equal(disk.table.rows.size, 0);
    }),
    { numRuns: 200 },
  );
});

test("blob garbage: a page row that only a dropped snapshot saw goes", () => {
  const disk = new Disk();
  disk.make();
  const { size } = disk.table.rows;
  const write: PageStep = { do: "write", chunk: 0, pages: 1 };
  for (const step of [write, { do: "snapshot" } as const, write]) disk.step(step);
  assert.equal(disk.table.collect(), 0, "the snapshot sees the first one");
  disk.step({ do: "drop", which: 0 });
  assert.equal(disk.table.collect(), 1);
  assert.equal(disk.table.rows.size, size + 1);
});
