import assert from "node:assert/strict";
import { test } from "node:test";
import { headsToEnd } from "./held-heads.ts";

const head = (connection: string, address: string, bytes: number) => ({ connection, address, bytes });

test("held heads: nobody ends while all of them are within the bound", () => {
  assert.deepEqual(headsToEnd([head("a", "1", 50), head("b", "2", 50)], 100), []);
  assert.deepEqual(headsToEnd([], 0), []);
});

test("held heads: the address that holds most gives up its largest, no more than needed", () => {
  const heads = [head("small", "1", 10), head("x", "2", 40), head("y", "2", 60), head("z", "2", 50), head("other", "3", 90)];
  assert.deepEqual(headsToEnd(heads, 249), ["y"]);
  assert.deepEqual(headsToEnd(heads, 140), ["y", "z"]);
  assert.deepEqual(headsToEnd(heads, 99), ["y", "z", "x", "other"]);
});

test("held heads: many addresses with one each are ended, largest first", () => {
  const heads = Array.from({ length: 1_000 }, (_, at) => head(`c${at}`, `address ${at}`, at));
  const ended = headsToEnd(heads, 100_000);
  assert.equal(ended[0], "c999");
  const left = heads.filter(({ connection }) => !ended.includes(connection)).reduce((sum, { bytes }) => sum + bytes, 0);
  assert.ok(left <= 100_000 && left > 99_000, String(left));
});
