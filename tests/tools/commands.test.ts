import assert from "node:assert/strict";
import { test } from "node:test";
import { runStamp } from "./commands.ts";

const node = (program: string, timeoutMs = 0) => runStamp([program], { program: [process.execPath, "-e"], timeoutMs });

test("command of a test: all of a large output is kept, and the command ends by itself", async () => {
  const { code, out, err } = await node(`console.log("x".repeat(5_000_000)); console.error("y".repeat(2_000_000));`);
  assert.deepEqual([code, out.length, err.length], [0, 5_000_001, 2_000_001]);
});

test("command of a test: one that a signal ended says so", async () => {
  const { code, output } = await node(`console.log("begun"); process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 60_000);`);
  assert.equal(code, -1);
  assert.match(output, /ended by SIGTERM\n$/);
});

test("command of a test: its exit code and both outputs are told", async () => {
  const { code, output } = await node(`console.log("out"); console.error("err"); process.exitCode = 4;`);
  assert.deepEqual([code, output], [4, "out\nerr\n"]);
});
