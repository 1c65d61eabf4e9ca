import assert from "node:assert/strict";
import { test } from "node:test";
import type { Drills } from "@stamp/console-page";
import { DrillDesk } from "./drill-desk.ts";

const never = new AbortController().signal;

/** A desk with one drill, whose process writes the lines that the test gives it. */
function world({ whyNot = "" } = {}) {
  const begun: string[] = [];
  let write: (line: string | undefined) => void = () => {};
  const failure = Promise.withResolvers<string>();
  const desk = new DrillDesk({
    drills: [{ name: "kill-it", about: "kills it", aimMs: 5 }],
    whyNot: () => whyNot,
    begin: (drill) => {
      begun.push(drill);
      const waiting: PromiseWithResolvers<string | undefined>[] = [Promise.withResolvers()];
      write = (line) => {
        waiting.at(-1)?.resolve(line);
        waiting.push(Promise.withResolvers());
      };
      const lines = (async function* () {
        for (let at = 0; ; at++) {
          const line = await (waiting[at] as PromiseWithResolvers<string | undefined>).promise;
          if (line === undefined) return;
          yield line;
        }
      })();
      return { lines, failure: failure.promise };
    },
    wallMs: () => 17,
  });
  const start = async (drill: string): Promise<object | undefined> => desk.operations["/api/start-drill"]?.({ drill }, never);
  const tell = async (line: string | undefined): Promise<void> => {
    write(line);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const shown = (): Drills => desk.shown as Drills;
  return { desk, start, tell, shown, begun, fail: (words: string) => failure.resolve(words) };
}

test("drills: what a drill tells is shown as it comes, and its verdict at the end", async () => {
  const { desk, start, tell, shown, fail } = world();
  await start("kill-it");
  await tell('{"entry":{"atMs":0,"what":"kill -9 it"}}');
  await tell("(node:1) Warning: no event");
  await tell('{"writes":{"count":3,"longestMs":40}}');
  assert.equal(desk.isRunning, true);
  assert.deepEqual(shown().run?.entries, [{ atMs: 0, what: "kill -9 it" }]);
  assert.deepEqual(shown().run?.writes, [{ atMs: 17, count: 3, longestMs: 40 }]);
  await tell('{"report":{"verdict":"kept","conclusion":"kill-it: KEPT","broken":[]}}');
  fail("");
  await tell(undefined);
  assert.deepEqual([shown().run?.isOver, shown().run?.verdict, shown().run?.conclusion], [true, "kept", "kill-it: KEPT"]);
  await start("kill-it");
});

test("drills: a second one is refused while one runs, an unknown one always, and all on a stamp that takes no faults", async () => {
  const { start, begun } = world();
  await start("kill-it");
  await assert.rejects(start("kill-it"), /one runs at a time/);
  await assert.rejects(start("--attach"), /there is no drill --attach/);
  assert.deepEqual(begun, ["kill-it"]);
  const off = world({ whyNot: "this stamp was not started for faults" });
  await assert.rejects(off.start("kill-it"), /was not started for faults/);
  assert.equal(off.shown().whyNot, "this stamp was not started for faults");
  assert.deepEqual(off.begun, []);
});

test("drills: one that ends without a verdict has failed, with the words of its process", async () => {
  const { desk, start, tell, shown, fail } = world();
  await start("kill-it");
  fail("stamp: kill-it can't run here: it needs seven extent nodes");
  await tell(undefined);
  assert.equal(desk.isRunning, false);
  assert.deepEqual(
    [shown().run?.verdict, shown().run?.conclusion],
    ["failed", "stamp: kill-it can't run here: it needs seven extent nodes"],
  );
});

test("drills: a long drill keeps the newest entries and seconds", async () => {
  const { start, tell, shown } = world();
  await start("kill-it");
  for (let number = 0; number < 2_010; number++) {
    await tell(JSON.stringify({ entry: { atMs: number, what: "again" }, writes: { count: number, longestMs: null } }));
  }
  assert.deepEqual([shown().run?.entries.length, shown().run?.entries.at(-1)?.atMs], [2_000, 2_009]);
  assert.deepEqual([shown().run?.writes.length, shown().run?.writes.at(-1)?.count], [1_800, 2_009]);
});
