import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LogFile } from "./log-file.ts";

test("log file, more than its limit: one older file is kept, the newest lines are in the file", () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-log-"));
  try {
    const path = join(folder, "x.log");
    const log = new LogFile(path, 1_000);
    for (let line = 0; line < 500; line++) log.write(Buffer.from(`line ${line}\n`));
    assert.ok(statSync(path).size <= 1_000);
    assert.ok(statSync(`${path}.1`).size <= 1_000);
    assert.ok(readFileSync(path, "utf8").endsWith("line 499\n"));
    assert.equal(log.tail(2), "line 498\nline 499");
    log.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("log file, output in pieces of any length: each line is in one file, and a note has a line of its own", () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-log-"));
  try {
    const lines = Array.from({ length: 300 }, (_, at) => `{"line":${at},"text":"${"x".repeat(at % 90)}"}\n`);
    const output = Buffer.from(lines.join(""));
    for (const pieceBytes of [5, 64, 100, 333, 1_500]) {
      const path = join(folder, `${pieceBytes}.log`);
      const log = new LogFile(path, 1_000);
      for (let at = 0; at < output.length; at += pieceBytes) {
        log.write(output.subarray(at, at + pieceBytes));
        const older = existsSync(`${path}.1`) ? readFileSync(`${path}.1`, "utf8") : "";
        const both = older + readFileSync(path, "utf8");
        assert.ok(
          output
            .subarray(0, at + pieceBytes)
            .toString()
            .endsWith(both),
          "nothing is lost between the two files",
        );
        assert.ok(older === "" || (older.startsWith("{") && older.endsWith("}\n")), `pieces of ${pieceBytes} bytes: ${older.slice(-100)}`);
        assert.ok(older.length < 1_000 + pieceBytes + 120);
      }
      log.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("log file, process that died inside a line: the note begins a new line, also after a start of the supervisor", () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-log-"));
  try {
    const path = join(folder, "x.log");
    const first = new LogFile(path, 1_000);
    first.write(Buffer.from("half a li"));
    first.note("ended: signal SIGKILL");
    first.write(Buffer.from("half another"));
    first.close();
    const second = new LogFile(path, 1_000);
    second.note("ended: exit code 1");
    second.close();
    const shown = readFileSync(path, "utf8").split("\n");
    assert.deepEqual(
      shown.map((line) => (line.startsWith("{") ? JSON.parse(line).msg : line)),
      ["half a li", "ended: signal SIGKILL", "half another", "ended: exit code 1", ""],
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("log file, line longer than the limit: the file is rotated all the same", () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-log-"));
  try {
    const path = join(folder, "x.log");
    const log = new LogFile(path, 1_000);
    for (let piece = 0; piece < 100; piece++) log.write(Buffer.alloc(100, "x"));
    assert.ok(statSync(path).size <= 2_100 && statSync(`${path}.1`).size <= 2_100);
    log.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
