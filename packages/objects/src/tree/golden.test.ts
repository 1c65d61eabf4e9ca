import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { FailureError, toHex } from "@stamp/base";
import { treeKey } from "./tree-keys.ts";
import { type Address, decodeTreeRow, encodeTreeRow, type Operation, type TreeRow } from "./tree-row.ts";

const golden = new URL("../../../../tests/golden/tree/v1/rows.txt", import.meta.url);
const entry = { kind: "entry", directory: "d1", name: "grün" } as const;
const operation: Operation = {
  id: "o1",
  beganMs: 1_700_000_000_000,
  next: { kind: "directory", id: "i2", name: "Neu" },
  participants: [
    { at: entry, fate: "take" },
    { at: { kind: "file", id: "i3" }, fate: "release" },
    { at: { kind: "directory", id: "i4" }, fate: "condemn" },
    { at: { kind: "lock" }, fate: "release" },
  ],
};
const held = { kind: "file", id: "i1", name: "Grün" } as const;
const rows: readonly (readonly [Address, TreeRow])[] = [
  [entry, { held }],
  [entry, { held, begun: operation }],
  [entry, { decided: { id: "o2", beganMs: 0, participants: [] } }],
  [{ kind: "lock" }, { mark: { operation: "o1", primary: entry } }],
  [{ kind: "directory", id: "i4" }, { removed: true }],
  [
    { kind: "file", id: "i3" },
    { given: Uint8Array.of(0, 255), mark: { operation: "o1", primary: entry } },
  ],
];
const tree = { account: "a", filesystem: "fs", incarnation: 300 };

test("golden rows of a tree are written and read as they were", () => {
  const text = rows.map(([at, row]) => `${toHex(treeKey(tree, at))} ${toHex(encodeTreeRow(row))}\n`).join("");
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, "utf8"));
  for (const [, row] of rows) assert.deepEqual(decodeTreeRow(encodeTreeRow(row)), row);
});

test("a row of a tree that is cut short is damaged", () => {
  for (const [, row] of rows) {
    const bytes = encodeTreeRow(row);
    for (let end = 0; end < bytes.length; end++) assert.throws(() => decodeTreeRow(bytes.subarray(0, end)), FailureError);
  }
});
