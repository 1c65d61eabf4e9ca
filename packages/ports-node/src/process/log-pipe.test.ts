import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { LogPipe } from "./log-pipe.ts";

/** A pipe with room for so many bytes, until it is read. */
function pipeOf(roomBytes: number) {
  const held = { text: "", room: roomBytes };
  const write = (_: number, bytes: Uint8Array): number => {
    if (held.room === 0) throw Object.assign(new Error("full"), { code: "EAGAIN" });
    const part = bytes.subarray(0, held.room);
    held.room -= part.length;
    held.text += Buffer.from(part).toString();
    return part.length;
  };
  return { held, write };
}

test("log pipe: lines are written at once while there is room; what waits is written in order, and nothing is left out within the bound", async () => {
  const { held, write } = pipeOf(25);
  const pipe = new LogPipe(1, { write });
  pipe.write("line 1\n");
  assert.ok(held.text === "line 1\n", "before write returns");
  for (let i = 2; i < 10; i++) pipe.write(`line ${i}\n`);
  assert.deepEqual(held.text.split("\n"), ["line 1", "line 2", "line 3", "line"]);
  held.room = 10_000;
  while (!held.text.includes("line 9")) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(held.text, Array.from({ length: 9 }, (_, i) => `line ${i + 1}\n`).join(""));
  pipe.write("line 10\n");
  assert.ok(held.text.endsWith("line 9\nline 10\n"));
});

test("log pipe: beyond the bound lines are left out, and that is told when there is room; a pipe that nobody reads ends nothing", () => {
  const { held, write } = pipeOf(3);
  const pipe = new LogPipe(1, { write, bufferedBytesMax: 70 });
  for (let i = 10; i < 30; i++) pipe.write(`line ${i}\n`);
  held.room = 10_000;
  pipe.write("after\n");
  assert.match(held.text, /^line 10\nline 11\nline 12\n/);
  const lines = held.text.trimEnd().split("\n");
  assert.equal(lines.length, 11, held.text);
  assert.deepEqual(
    { ...JSON.parse(lines[9] ?? ""), time: 0 },
    { level: "warn", time: 0, lines: 11, msg: "lines were left out of this log" },
  );
  assert.equal(lines[10], "after");
  const broken = new LogPipe(1, {
    write: () => {
      throw Object.assign(new Error("gone"), { code: "EPIPE" });
    },
  });
  for (let i = 0; i < 3; i++) broken.write("line\n");
});

test("logger: a process whose log nobody reads goes on, and says the last lines when it ends", async () => {
  const logger = new URL("./logger.ts", import.meta.url);
  const script = `
    const { nodeLogger } = await import(${JSON.stringify(logger.href)});
    const logger = nodeLogger();
    for (let i = 0; i < 2_000; i++) logger.info("a line", { number: i, text: "x".repeat(200) });
    process.stderr.write("goes on");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    logger.info("last line");
    process.exit(0);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  // Nothing of its standard output is read before this.
  await new Promise((resolve) => child.stderr.once("data", resolve));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part) => {
    text += part;
  });
  child.stdin.write("go\n");
  await ended;
  const numbers = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(numbers.length, 2_001);
  assert.ok(numbers.slice(0, -1).every(({ number }, i) => number === i));
  assert.equal(numbers.at(-1)?.msg, "last line");
});

test("log pipe: all loggers of a process write to one pipe, with one listener for the end of the process", () => {
  const before = process.listenerCount("exit");
  const pipes = Array.from({ length: 20 }, () => LogPipe.of(2));
  assert.deepEqual([new Set(pipes).size, process.listenerCount("exit") - before], [1, 1]);
  assert.notEqual(LogPipe.of(1), LogPipe.of(2));
});
