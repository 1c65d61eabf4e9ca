import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, type Profile, rowsOf } from "./fold.ts";

const profileOf = (...nodes: readonly (readonly [name: string, url: string, hitCount?: number])[]): Profile => ({
  nodes: nodes.map(([functionName, url, hitCount]) => ({
    callFrame: { functionName, url },
    ...(hitCount === undefined ? {} : { hitCount }),
  })),
});

test("fold: samples of one function are added up over callers, folders and processes of a role, and not over roles", () => {
  const folded = fold([
    ["FE", profileOf(["encode", "file:///a/codec.ts", 3], ["encode", "file:///a/codec.ts", 4], ["encode", "file:///a/other.ts", 1])],
    [
      "FE",
      profileOf(["encode", "file:///b/codec.ts", 5], ["", "file:///b/codec.ts", 2], ["writev", "", 6], ["never", "file:///b/codec.ts"]),
    ],
    ["EN", profileOf(["encode", "file:///a/codec.ts", 9], ["crc", "wasm://wasm/1234", 7])],
  ]);
  assert.deepEqual(Object.fromEntries(folded.functions), {
    "FE `encode` codec.ts": 12,
    "FE `encode` other.ts": 1,
    "FE `(anonymous)` codec.ts": 2,
    "FE `writev` native": 6,
    "EN `encode` codec.ts": 9,
    "EN `crc` WebAssembly": 7,
  });
  assert.equal(folded.busy, 37);
});

test("fold: waiting and native code of no function are not busy, garbage collection is", () => {
  const folded = fold([["PS", profileOf(["(root)", "", 1], ["(idle)", "", 50], ["(program)", "", 20], ["(garbage collector)", "", 8])]]);
  assert.deepEqual(folded, { functions: new Map([["PS garbage collection", 8]]), busy: 8, idle: 50, program: 20 });
});

test("rowsOf: each side is sorted by its own samples, and tells the share on the other side or that there is none", () => {
  const before = fold([["FE", profileOf(["old", "file:///x.ts", 60], ["kept", "file:///x.ts", 40])]]);
  const after = fold([["FE", profileOf(["kept", "file:///moved/x.ts", 15], ["new", "file:///x.ts", 5])]]);
  assert.deepEqual(rowsOf(before, after, 3), [
    "| 1 | FE `old` x.ts | 60.0 | – | FE `kept` x.ts | 75.0 | 40.0 |",
    "| 2 | FE `kept` x.ts | 40.0 | 75.0 | FE `new` x.ts | 25.0 | – |",
    "| 3 |  |  |  |  |  |  |",
  ]);
});
