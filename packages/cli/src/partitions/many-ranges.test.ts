/** People are shown a page of thousands of ranges, and nothing that matters is left out of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RangePartitionSchema, RebalancePlanSchema, ServerInfoSchema } from "@stamp/wire";
import { table } from "../print.ts";
import { rangeSummary, serverTable } from "../status/status.ts";
import { planText } from "./rebalance-command.ts";

const rangeOf = (i: number, more: { loaded?: boolean; server?: string; change?: string } = {}) =>
  create(RangePartitionSchema, { rangeId: `blob-e${i}`, table: "Blob", server: "ps-1", loaded: true, ...more });

test("status: few ranges are shown each; of thousands the sums, and those that are not served", () => {
  assert.match(rangeSummary({ ranges: [rangeOf(1), rangeOf(2)] }), /blob-e1 .*blob-e2 /s);
  const ranges = Array.from({ length: 5_000 }, (_, i) =>
    rangeOf(i, i === 7 ? { loaded: false } : i === 8 ? { server: "", loaded: false } : i === 9 ? { change: "splitting" } : {}),
  );
  const text = rangeSummary({ ranges });
  assert.match(text, /Blob +ps-1 +4999 +4998/);
  assert.match(text, /Blob +- +1 +0/);
  for (const named of ["blob-e7 ", "blob-e8 ", "blob-e9 "]) assert.ok(text.includes(named), named);
  assert.ok(!text.includes("blob-e10 "));
  assert.match(text, /partition list/);
  const none = rangeSummary({ ranges: ranges.map((range) => ({ ...range, loaded: false })) });
  assert.match(none, /… and 4950 more/);
  assert.ok(none.split("\n").length < 70, `${none.split("\n").length} lines`);
});

test("rebalance plan: of thousands of ranges the busiest, of steps the first", () => {
  const ranges = Array.from({ length: 5_000 }, (_, i) => ({ rangeId: `blob-e${i}`, requestsPerSecond: i === 4_321 ? 99 : 0 }));
  const steps = Array.from({ length: 2_000 }, (_, i) => ({ kind: "merge", rangeId: `blob-e${i}`, why: "cold" }));
  const text = planText(create(RebalancePlanSchema, { ranges, steps }));
  assert.match(text, /^blob-e4321 /m);
  assert.match(text, /… 4950 ranges that are asked less/);
  assert.match(text, /merge blob-e0: cold/);
  assert.match(text, /… 1950 steps/);
  assert.ok(text.split("\n").length < 120, `${text.split("\n").length} lines`);
  const few = planText(create(RebalancePlanSchema, { ranges: ranges.slice(0, 3), steps: steps.slice(0, 1) }));
  assert.doesNotMatch(few, /…|by itself now/);
  const waiting = planText(create(RebalancePlanSchema, { steps: steps.slice(0, 1), automatic: true, waitsFor: ["1 of 4 nodes has room"] }));
  assert.match(waiting, /by itself now: 1 of 4 nodes has room\nmerge blob-e0: cold/);
});

test("status: the bytes of a server's rows stand under a heading that says bytes", () => {
  const [head = "", row = ""] = serverTable({
    servers: [create(ServerInfoSchema, { server: "ps-1", up: true, load: { rowBytes: 2048n } })],
  }).split("\n");
  assert.equal(row.slice(head.indexOf("ROW BYTES")), "2.0 KiB");
});

test("table: columns are as wide as their widest cell, with nothing behind the last", () => {
  const rows = [
    ["a", 1, 2n],
    ["bbbb", "c c", ""],
  ];
  assert.equal(table(["HEAD", "X", "LONG HEAD"], rows), "HEAD  X    LONG HEAD\na     1    2\nbbbb  c c");
  assert.equal(table(["HEAD", "X"], []), "HEAD  X");
});
