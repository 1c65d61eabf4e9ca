/**
 * `npm test [part-of-a-path …]`: every *.test.ts of packages, services and tests, files in parallel, in processes of their own. Slow ones
 * (a real cluster, many seeds) are named *.slow.ts and run by `.ci/run`.
 */
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { run } from "node:test";
import { report } from "./report.ts";

const root = resolve(import.meta.dirname, "../..");
const wanted = process.argv.slice(2).map((path) => path.replace(/^\.\//, ""));
const slow = wanted.some((path) => path.endsWith(".slow.ts"));
const all = globSync(`{packages,services}/*/src/**/*.${slow ? "slow" : "test"}.ts`, { cwd: root })
  .concat(globSync(`tests/**/*.${slow ? "slow" : "test"}.ts`, { cwd: root, exclude: ["**/node_modules/**"] }))
  .sort();
const files = wanted.length === 0 ? all : all.filter((file) => wanted.some((part) => file.includes(part)));

if (files.length === 0) {
  console.error(`no test file matches: ${wanted.join(" ")}`);
  process.exit(2);
}
const startMs = performance.now();
const events = run({
  files: files.map((file) => resolve(root, file)),
  cwd: root,
  concurrency: availableParallelism(),
  isolation: "process",
  timeout: 180_000,
});
const { passed, failed, skipped } = await report(events, root, (text) => void process.stdout.write(text), { showOutput: slow });
const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
console.log(`\n${files.length} files, ${skipped} skipped, ${seconds} s`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
