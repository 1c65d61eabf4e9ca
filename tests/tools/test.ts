/**
 * `npm test`, and `./stamp test`: tests of files in parallel, in processes of their own. Slow ones (a real cluster, many seeds) are named
 * *.slow.ts and run by `.ci/run`.
 */
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run } from "node:test";
import { parseArgs } from "node:util";
import { report } from "./report.ts";

const root = resolve(import.meta.dirname, "../..");
const usage = `Usage: stamp test [part-of-a-path]... [--minutes N] [--at-once N]

Runs every *.test.ts of packages, services and tests, or those whose path has one of the parts. Slow ones, *.slow.ts,
run if they are named so. --minutes: time of a test that names none (3; with slow ones 10); --at-once: files beside
each other (one more than there are processors: some wait).`;
const { values, positionals } = parseArgs({
  options: {
    minutes: { type: "string" },
    "at-once": { type: "string", default: String(availableParallelism() + 1) },
    help: { type: "boolean", short: "h", default: false },
  },
  allowPositionals: true,
});
const numbers = [values.minutes ?? "1", values["at-once"]].map(Number);
if (values.help || !numbers.every((value) => value > 0)) {
  console.log(usage);
  process.exit(values.help ? 0 : 2);
}
const wanted = positionals.map((path) => path.replace(/^\.\//, ""));
/** Paths of the files of one kind, from the root. */
const all = (kind: "test" | "slow"): string[] => [
  // The longest first.
  ...globSync(`tests/**/*.${kind}.ts`, { cwd: root, exclude: ["**/node_modules/**"] }).sort(),
  ...globSync(`{packages,services}/*/src/**/*.${kind}.ts`, { cwd: root }).sort(),
];
const slow = wanted.some((path) => path.endsWith(".slow.ts"));
const known = [...all("test"), ...(slow ? all("slow") : [])];
const matches = (part: string): string[] =>
  known.filter((file) => file.includes(part) && file.endsWith(".slow.ts") === part.endsWith(".slow.ts"));
const missing = wanted.filter((part) => matches(part).length === 0);
if (missing.length > 0) {
  console.error(`no test file matches: ${missing.join(" ")}`);
  process.exit(2);
}
const files = wanted.length === 0 ? known : [...new Set(wanted.flatMap(matches))];
// Each file runs in a process of its own: all of them read what the first one compiled.
const compiled = mkdtempSync(join(tmpdir(), "stamp-compiled-"));
process.env.NODE_COMPILE_CACHE = compiled;
process.on("exit", () => rmSync(compiled, { recursive: true, force: true }));
const minutes = Number(values.minutes ?? (slow ? 10 : 3));
process.env.TEST_FILE_MINUTES = String(minutes * 4);
const startMs = performance.now();
const events = run({
  files: files.map((file) => resolve(root, file)),
  cwd: root,
  concurrency: Number(values["at-once"]),
  isolation: "process",
  timeout: minutes * 60_000,
  execArgv: ["--import", join(import.meta.dirname, "file-limit.ts")],
});
const { passed, failed, skipped } = await report(events, root, (text) => void process.stdout.write(text), { showOutput: slow });
const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
console.log(`\n${files.length} files, ${skipped} skipped, ${seconds} s`);
console.log(`${passed} passed, ${failed} failed`);
// Where a toolchain is missing all tests of a part may be skipped, each with its line.
process.exit(failed === 0 && passed + skipped > 0 ? 0 : 1);
