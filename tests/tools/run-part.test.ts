import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Part, run, runParts, secondsText } from "./run-part.ts";

const node = process.execPath;
const part = (title: string, script: string, more: Partial<Part> = {}): Part => ({
  title,
  guards: "",
  command: [node, "-e", script],
  timeoutMs: 600_000,
  ...more,
});
const record = `require("node:fs").appendFileSync(process.env.CI_FAILURES, JSON.stringify({ title: "t", where: "w:1", error: "e" }) + "\\n");`;

test("parts of CI: sums, exit codes and failed tests of each are told, also of those at the lowest priority", async () => {
  for (const how of [{ idle: true }, { alone: true }, {}]) {
    const given = [
      part("counts", `${record} console.log("7 passed, 1 failed"); process.exit(1)`, how),
      part("slow, and passes", "process.exit(8)", { ...how, passesWith: 8 }),
      part("breaks", `console.log("x FAILED y"); process.exit(3)`, how),
      part("is not here", "", { ...how, missing: "no engine" }),
    ];
    const results = await runParts(given, 1);
    assert.deepEqual(
      results.map(({ title, passed, failed, failures }) => [title, passed, failed, failures.length]),
      [
        ["counts", 7, 1, 1],
        ["slow, and passes", 1, 0, 0],
        ["breaks", 0, 1, 0],
      ],
    );
    assert.match(results[2]?.output ?? "", /x FAILED y/);
  }
});

test("parts of CI: two lanes run two at once, a failure is told of its own part, and what judges time runs when all others have ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-parts-"));
  const path = (name: string): string => JSON.stringify(join(folder, name));
  /** Ends when the other one has begun: in one lane this would take until the part's time is over. */
  const waits = (own: string, other: string): string =>
    `const fs = require("node:fs"); fs.writeFileSync(${path(own)}, "");
     const timer = setInterval(() => { if (fs.existsSync(${path(other)})) clearInterval(timer); }, 5);`;
  try {
    const results = await runParts(
      [
        part(
          "alone",
          `process.exit(["first", "second", "idle"].every((name) => require("node:fs").existsSync(${JSON.stringify(`${folder}/`)} + name)) ? 0 : 1)`,
          {
            alone: true,
          },
        ),
        part("first", `${record} ${waits("first", "second")}`, { timeoutMs: 60_000 }),
        part("second", waits("second", "first"), { timeoutMs: 60_000 }),
        part("idle", `setTimeout(() => require("node:fs").writeFileSync(${path("idle")}, ""), 300)`, { idle: true }),
      ],
      2,
    );
    const told = results.map(({ title, failed, failures }) => [title, failed, failures.length]);
    assert.deepEqual(told.toSorted(), [
      ["alone", 0, 0],
      ["first", 0, 1],
      ["idle", 0, 0],
      ["second", 0, 0],
    ]);
    assert.equal(told.at(-1)?.[0], "alone");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("parts of CI: at the lowest priority means that of the process, and of its session where Linux has one", async () => {
  const { output } = await run(["sh", "-c", "nice; cat /proc/self/autogroup 2>/dev/null || true"], 600_000, { shown: false, idle: true });
  assert.match(output, /^19\n(\/autogroup-\d+ nice 19\n)?$/);
});

test("parts of CI: a part at the lowest priority is ended in its time with everything that it started", { timeout: 120_000 }, async () => {
  const { output, code } = await run(["sh", "-c", "sleep 1000 & echo $!; wait"], 5_000, { shown: false, idle: true });
  assert.notEqual(code, 0);
  assert.match(output, /^ended after 5 s$/m);
  const pid = Number(/^\d+/.exec(output)?.[0]);
  // The kernel takes the processes away a moment after the signal.
  for (let tries = 0; tries < 1_000 && isThere(pid); tries++) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(isThere(pid), false);
});

test("parts of CI: seconds are told by part, the longest first", () => {
  const told = { passed: 1, failed: 0, failures: [], output: "" };
  assert.equal(
    secondsText([
      { ...told, title: "a", seconds: 3.2 },
      { ...told, title: "b", seconds: 120 },
    ]),
    "   120 s  b\n     3 s  a",
  );
});

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
