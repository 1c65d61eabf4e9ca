import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "@stamp/base";
import { latenciesOf, latencyTable } from "./latency.ts";

const clock = { monotonicMs: () => 100_000 };
function took(...ms: number[]): Histogram {
  const histogram = new Histogram(clock);
  for (const each of ms) histogram.since(100_000 - each);
  return histogram;
}
const asTold = (facts: object) => JSON.parse(JSON.stringify(facts)) as Record<string, unknown>;

test("latency: histograms among the facts of a role are found with the values of their labels; what nobody did is left out", () => {
  const facts = asTold({ took: { read: { "2xx": took(15) }, other: {} }, queue: { took: { write: { "5xx": took(60_000) } } }, table: {} });
  const all = [
    ...latenciesOf("front-end", "front-end-1", facts),
    ...latenciesOf("partition-server", "partition-server-1", asTold({ took: { read: took(0.05), scan: took() } })),
    ...latenciesOf("extent-node", "extent-node-1", asTold({ took: { appendDone: took(3), appendFailed: took() }, journalSync: took(1.5) })),
  ];
  assert.deepEqual(
    latencyTable(all)
      .split("\n")
      .map((line) => line.trim().split(/\s\s+/)),
    [
      ["PROCESS", "WHAT", "COUNT", "P50", "P99"],
      ["front-end-1", "blob read 2xx", "1", "15 ms", "20 ms"],
      ["front-end-1", "queue write 5xx", "1", "over 30 s", "over 30 s"],
      ["partition-server-1", "read", "1", "0.05 ms", "0.10 ms"],
      ["extent-node-1", "append", "1", "3.5 ms", "5.0 ms"],
      ["extent-node-1", "journal sync", "1", "1.5 ms", "2.0 ms"],
    ],
  );
});

test("latency: of very many the slowest are told", () => {
  const all = Array.from({ length: 100 }, (_, i) => ({ process: `p-${i}`, what: "read", count: 1, p50Ms: i, p99Ms: i }));
  const lines = latencyTable(all).split("\n");
  assert.equal(lines.length, 42);
  assert.match(lines[1] ?? "", /^p-99 /);
  assert.equal(lines.at(-1), "… and 60 that were quicker");
});
