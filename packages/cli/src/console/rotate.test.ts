import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { rotateAt } from "./console-command.ts";

test("console: its log takes the place of the older one when it has reached its limit, and not before", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-console-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "console.log");
  rotateAt(path, 10);
  writeFileSync(path, "123456789");
  rotateAt(path, 10);
  assert.equal(existsSync(`${path}.1`), false);
  writeFileSync(path, "1234567890");
  writeFileSync(`${path}.1`, "older");
  rotateAt(path, 10);
  assert.deepEqual([existsSync(path), readFileSync(`${path}.1`, "utf8")], [false, "1234567890"]);
});
