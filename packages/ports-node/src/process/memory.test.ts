import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { countBuffersAsHeap, growingPercent } from "./memory.ts";

test("V8 that knows the flag is told to count buffers as heap, an older one is left alone", () => {
  const given: string[] = [];
  countBuffersAsHeap("13.6.233.10-node.28", (flag) => void given.push(flag));
  assert.equal(given.length, 0);
  countBuffersAsHeap("14.6.202.34-node.34", (flag) => void given.push(flag));
  assert.deepEqual(given, ["--external-memory-accounted-in-global-limit", "--heap-growing-percent=200"]);
});

test("a small heap may grow by 48 MiB and not more than threefold, a large one by what V8 sees fit", () => {
  const mebibyte = 1024 * 1024;
  assert.deepEqual(
    [1, 24, 32, 48, 80, 81, 500].map((mebibytes) => growingPercent(mebibytes * mebibyte)),
    [200, 200, 150, 100, 60, 0, 0],
  );
});

/** Bytes pass through in 1 MiB buffers while 64 are held; prints mark-compacts, and the largest resident size in MiB. */
const churn = `
  import { countBuffersAsHeap } from ${JSON.stringify(new URL("./memory.ts", import.meta.url).href)};
  import { PerformanceObserver, constants } from "node:perf_hooks";
  if (process.argv[1] === "counted") countBuffersAsHeap();
  let marks = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) marks += 1;
  }).observe({ entryTypes: ["gc"] });
  // Work for a mark-compact, and what is passed on survives a while.
  globalThis.live = Array.from({ length: 100_000 }, (_, i) => ({ i, list: [i] }));
  const held = [];
  let largest = 0;
  for (let i = 0; i < 3000; i++) {
    held.push(Buffer.allocUnsafeSlow(1024 * 1024).fill(i));
    if (held.length > 64) held.shift();
    if (i % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (i % 100 === 0) largest = Math.max(largest, process.memoryUsage.rss() / 1024 / 1024);
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
  console.log(JSON.stringify({ marks, largest }));
`;

test("buffers that pass through cause few mark-compacts and stay bounded in memory", {
  skip: Number.parseInt(process.versions.v8, 10) < 14,
}, () => {
  const run = (how: string) =>
    JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", churn, how], { encoding: "utf8" })) as {
      marks: number;
      largest: number;
    };
  const asItComes = run("plain");
  const counted = run("counted");
  // With 16 held V8 makes 1 to 23 of them as it comes, with 64 30 to 50, and 14 to 31 counted: 20 runs, idle and at load 5.
  assert.ok(counted.marks < asItComes.marks, `${counted.marks} of ${asItComes.marks}`);
  assert.ok(counted.largest < 768, `${counted.largest} MiB resident`);
});
