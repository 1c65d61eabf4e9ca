/** Ends of commands whose output goes to a reader that is slower than they, or gone. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

/** More than the 64 KiB that a pipe takes by itself. */
const lengthChars = 3_000_000;
const exit = JSON.stringify(join(import.meta.dirname, "exit.ts"));

const run = (program: string): ChildProcess =>
  spawn(process.execPath, ["--input-type=module", "-e", `import { endProcess } from ${exit}; ${program}`], {
    stdio: ["ignore", "pipe", "pipe"],
  });

test("end of a command: a slow reader gets all of both outputs, and the exit code", { timeout: 60_000 }, async () => {
  const child = run(`console.log("x".repeat(${lengthChars})); console.error("y".repeat(${lengthChars})); await endProcess(5);`);
  assert.ok(child.stdout && child.stderr);
  // The first bytes are in the pipe: the command has written, and waits for its reader.
  await once(child.stdout, "readable");
  await once(child.stderr, "readable");
  const [ended, out, err] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  assert.deepEqual([ended[0], out.length, err.length], [5, lengthChars + 1, lengthChars + 1]);
});

test("end of a command: sockets do not keep it, and a reader that has gone does not hold it", { timeout: 60_000 }, async () => {
  const child = run(
    `import { createServer } from "node:net"; createServer().listen(0, "127.0.0.1"); process.exitCode = 8;
     console.log("x".repeat(${lengthChars})); await endProcess();`,
  );
  assert.ok(child.stdout);
  await once(child.stdout, "readable");
  child.stdout.destroy();
  const [code] = await once(child, "exit");
  assert.equal(code, 8);
});
