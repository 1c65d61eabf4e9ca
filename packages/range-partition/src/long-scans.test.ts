import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import { MemoryTable } from "@stamp/lsm";
import { RowScan } from "./tables.ts";

/** A clock that goes on with each look at it, and how often somebody gave way. */
function surroundings() {
  const seen = { nowMs: 0, gaveWay: 0 };
  const clock = {
    monotonicMs: () => {
      seen.nowMs += 2;
      return seen.nowMs;
    },
    wallMs: () => 0,
    suspendedMs: () => 0,
    after: (_delayMs: number, callback: () => void) => {
      seen.gaveWay++;
      setImmediate(callback);
      return { cancel: () => {} };
    },
  };
  return { seen, clock };
}

const number = (i: number): string => String(i).padStart(6, "0");

test("scans: one over rows that are all in memory gives way, over rows and over what is deleted, and sees one moment", async () => {
  const table = new MemoryTable();
  for (let i = 0; i < 6_000; i++) table.put(utf8(number(i)), 1, i < 3_000 ? utf8("v") : undefined);
  const { seen, clock } = surroundings();
  const view = { memory: [table], checkpoints: [] };
  const rows: Uint8Array[] = [];
  let afterRows = 0;
  for await (const [key] of new RowScan(view, {}, 1, { clock })) {
    rows.push(key);
    // Written meanwhile: later than what this scan sees.
    if (rows.length % 100 === 0) table.put(utf8(`${number(rows.length)}-new`), 2, utf8("w"));
    afterRows = seen.gaveWay;
  }
  assert.equal(rows.length, 3_000);
  assert.ok(afterRows >= 7, `gave way ${afterRows} times over rows`);
  assert.ok(seen.gaveWay - afterRows >= 7, `and ${seen.gaveWay - afterRows} times over what is deleted`);
});
