import assert from "node:assert/strict";
import { test } from "node:test";
import { recordsOf, WritersJudge } from "./writers-judge.ts";

const log = (content: string, work: (judge: WritersJudge) => void = () => {}): string => {
  const judge = new WritersJudge();
  for (const [i, { record, offset }] of recordsOf("[1][2][33]").entries())
    judge.appended({ record, offset, sentMs: 10 * i, answeredMs: 10 * i + 5 });
  judge.appended({ record: "[4]", offset: undefined, sentMs: 40, answeredMs: undefined });
  work(judge);
  return judge.checkLog(content) ?? "";
};

test("writers judge, log: every acknowledged record once, at its place, in the order of time", () => {
  assert.equal(log("[1][2][33]"), "");
  assert.equal(log("[1][2][33][4]"), "", "what was not answered may have happened");
  assert.match(log("[1][2]"), /33\] was acknowledged at offset 6, and is at none/);
  assert.match(log("[1][33][2]"), /acknowledged at offset/);
  assert.match(log("[1][2][33][4][4]"), /twice/);
  assert.match(log("[1][2][33][5]"), /nobody appended/);
  assert.match(log("[1][2][33]x"), /no record/);
  assert.match(
    log("[4][1][2][33]", (judge) => judge.appended({ record: "[5]", offset: 3, sentMs: 0, answeredMs: 1 })),
    /acknowledged/,
  );
  const early = new WritersJudge();
  early.appended({ record: "[1]", offset: 3, sentMs: 0, answeredMs: 5 });
  early.appended({ record: "[2]", offset: undefined, sentMs: 6, answeredMs: undefined });
  assert.match(early.checkLog("[2][1]") ?? "", /appended after \[1\] was acknowledged/);
});

test("writers judge, log: reads see a beginning with all that was acknowledged, and grow", () => {
  const read = (content: string, sentMs: number, answeredMs = sentMs + 1) => ({ content, sentMs, answeredMs });
  assert.equal(
    log("[1][2][33]", (judge) => judge.readLog(read("[1]", 6, 20))),
    "",
  );
  assert.match(
    log("[1][2][33]", (judge) => judge.readLog(read("[1]", 20))),
    /\[2\] was acknowledged before the log was read/,
  );
  assert.match(
    log("[1][2][33]", (judge) => judge.readLog(read("[2]", 6))),
    /other records/,
  );
  assert.match(
    log("[1][2][33]", (judge) => {
      judge.readLog(read("[1][2]", 11));
      judge.readLog(read("[1]", 13));
    }),
    /shorter at 13 ms/,
  );
});

test("writers judge, log: a refusal was because of a record that is there", () => {
  const behind = (position: number, answeredMs: number) =>
    log("[1][2][33][4]", (judge) => judge.refusedBehind({ position, sentMs: answeredMs - 1, answeredMs }));
  assert.equal(behind(3, 12), "");
  assert.match(behind(6, 19), /what made the log longer is lost/);
  assert.match(behind(13, 60), /what made the log longer is lost/);
});

test("writers judge, pages: the last value, or one that was written beside", () => {
  const judge = new WritersJudge();
  judge.writesPage("a", { value: 1, sentMs: 0 })(5);
  judge.writesPage("a", { value: 2, sentMs: 10 });
  judge.writesPage("a", { value: 3, sentMs: 20 })(25);
  const read = (value: number, sentMs: number) => judge.readPage("a", { value, sentMs, answeredMs: sentMs + 1 });
  assert.equal(read(0, 3), undefined);
  assert.match(read(0, 6) ?? "", /1 was written over it/);
  assert.equal(read(1, 15), undefined);
  assert.match(read(1, 30) ?? "", /3 was written over it/);
  assert.equal(read(2, 30), undefined, "it was not answered, and may have happened late");
  assert.match(read(7, 30) ?? "", /nobody wrote/);
});

test("writers judge, blocks: all that was acknowledged, and nothing else", () => {
  const judge = new WritersJudge();
  judge.putsBlock({ id: "a", sentMs: 0 })(5);
  judge.putsBlock({ id: "b", sentMs: 0 });
  const list = (...ids: string[]) => judge.listBlocks({ ids, sentMs: 10, answeredMs: 11 });
  assert.equal(list("a"), undefined);
  assert.equal(list("a", "b"), undefined);
  assert.match(list("b") ?? "", /block a was acknowledged/);
  assert.match(list("a", "c") ?? "", /nobody put it/);
  assert.match(list("a", "a") ?? "", /twice/);
});
