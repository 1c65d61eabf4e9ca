import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
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
