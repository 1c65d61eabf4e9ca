import assert from "node:assert/strict";
import fs, { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { rotateAt } from "./rotate.ts";

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

test("console: of two consoles that see the log full, one rotates it", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-console-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "console.log");
  writeFileSync(path, "1234567890");
  // The other console does all of its work between the look of this one and what follows.
  const { statSync } = fs;
  let isFirst = true;
  t.mock.method(fs, "statSync", (...given: Parameters<typeof statSync>) => {
    const found = statSync(...given);
    if (isFirst) {
      isFirst = false;
      rotateAt(path, 10);
      writeFileSync(path, "new");
    }
    return found;
  });
  syncBuiltinESMExports();
  try {
    rotateAt(path, 10);
  } finally {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  }
  assert.deepEqual([readFileSync(path, "utf8"), readFileSync(`${path}.1`, "utf8")], ["new", "1234567890"]);
});

test("console: a log is not rotated in the turn of another console; the turn of a dead one ends", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-console-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [path, turn] = [join(folder, "console.log"), join(folder, "console.log.turn")];
  writeFileSync(path, "1234567890");
  mkdirSync(turn);
  rotateAt(path, 10);
  assert.deepEqual([existsSync(path), existsSync(turn)], [true, true]);
  utimesSync(turn, 0, 0);
  rotateAt(path, 10);
  rotateAt(path, 10);
  assert.deepEqual([existsSync(path), existsSync(turn), readFileSync(`${path}.1`, "utf8")], [false, false, "1234567890"]);
});
