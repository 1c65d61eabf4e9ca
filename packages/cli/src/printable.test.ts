import assert from "node:assert/strict";
import { test } from "node:test";
import { table, toJson, toLine } from "./print.ts";
import { say, warn } from "./say.ts";

/** A name by which a client moves a cursor: an escape sequence, its form of one character, marks of direction, a line of its own. */
const hostile = "a\u001b[2J\u009b31m\u202e\u200f\u061c\nb\tc\u0000";
const moves = /[^\P{C}\n\t]/u;

test("terminal: no name moves the cursor, in words, in tables and in JSON, which comes back whole", (t) => {
  const printed: string[] = [];
  for (const stream of ["log", "error"] as const) t.mock.method(console, stream, (text: string) => void printed.push(text));
  say(`name ${hostile}`);
  warn(`no container ${hostile}`);
  for (const text of printed) {
    assert.doesNotMatch(text, moves);
    assert.match(text, /a\\u001b\[2J\\u009b31m\\u202e\\u200f\\u061c\nb\tc\\u0000$/);
  }
  assert.equal(printed.length, 2);
  const drawn = table(["NAME", "SIZE"], [[hostile, 1]]);
  assert.doesNotMatch(drawn, moves);
  assert.equal(drawn.split("\n").length, 2);
  for (const json of [toJson({ hostile }), toLine({ hostile })]) {
    assert.doesNotMatch(json, moves);
    assert.deepEqual(JSON.parse(json), { hostile });
  }
});
