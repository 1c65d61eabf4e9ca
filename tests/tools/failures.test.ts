import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "./commands.ts";
import { failuresText, takeFailures } from "./failures.ts";

test("failures of CI: a run of tests writes every failed test to the file, and the last lines name file, title and error", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-failures-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const before = process.env.CI_FAILURES;
  process.env.CI_FAILURES = join(folder, "failures");
  t.after(() => {
    if (before === undefined) delete process.env.CI_FAILURES;
    else process.env.CI_FAILURES = before;
  });
  const file = join(folder, "some.ts");
  const lines = [
    'import assert from "node:assert/strict";',
    'import { describe, it, test } from "node:test";',
    'test("is well", () => {});',
    'test("counts apples", () => assert.equal(1, 2));',
    'describe("pears", () => it("are ripe", () => { throw new Error("one is green\\nat the top"); }));',
  ];
  writeFileSync(file, lines.join("\n"));
  // node:test runs no files inside a test: another process does.
  const driver = join(folder, "driver.ts");
  writeFileSync(
    driver,
    [
      'import { run } from "node:test";',
      `import { report } from ${JSON.stringify(join(root, "tests/tools/report.ts"))};`,
      `const events = run({ files: [${JSON.stringify(file)}], cwd: ${JSON.stringify(folder)}, isolation: "process" });`,
      `console.log(JSON.stringify(await report(events, ${JSON.stringify(folder)}, () => undefined, { showOutput: false })));`,
    ].join("\n"),
  );
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const said = execFileSync(process.execPath, [driver], { env, encoding: "utf8" });
  assert.deepEqual(JSON.parse(said), { passed: 1, failed: 2, skipped: 0 });
  const failures = takeFailures();
  assert.deepEqual(
    failures.map(({ title, where }) => [title, where]),
    [
      ["counts apples", "some.ts:4"],
      ["are ripe", "some.ts:5"],
    ],
  );
  assert.match(failures[0]?.error ?? "", /^AssertionError: Expected values to be strictly equal: \| 1 !== 2$/);
  assert.equal(failures[1]?.error, "Error: one is green | at the top");
  assert.deepEqual(takeFailures(), []);
  assert.equal(
    failuresText([{ title: "fruit", failures, output: "not shown" }]),
    [
      "Failed:",
      "== fruit",
      "  ✖ counts apples",
      "    some.ts:4",
      "    AssertionError: Expected values to be strictly equal: | 1 !== 2",
      "  ✖ are ripe",
      "    some.ts:5",
      "    Error: one is green | at the top",
      "",
    ].join("\n"),
  );
});

test("failures of CI: a part without tests shows the lines that tell what failed, or else its last lines", () => {
  const noise = Array.from({ length: 40 }, (_, at) => `line ${at}`);
  const output = ["KEPT. Every promise was kept.", "kill: BROKEN. One promise was broken: x", "  y", ...noise].join("\n");
  assert.equal(
    failuresText([{ title: "drills", failures: [], output }]),
    "Failed:\n== drills\n  kill: BROKEN. One promise was broken: x\n    y\n",
  );
  assert.equal(
    failuresText([{ title: "drills", failures: [], output: noise.join("\n") }])
      .split("\n")
      .at(-2),
    "  line 39",
  );
  assert.equal(failuresText([]), "");
});
