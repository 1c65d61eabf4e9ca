/** Histories of a tree whose verdict is known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeldEntry, Step, TreeOperation } from "@stamp/objects";
import { TreeJudge } from "./tree-judge.ts";

class History {
  nowMs = 0;
  readonly judge: TreeJudge = new TreeJudge(() => this.nowMs, ["a", "b"]);

  /** One decision at `path`, "directory/name". */
  decided(path: string, expectedId: string | undefined, operation: Partial<TreeOperation>, isAnswered = true) {
    const [directory = "", name = ""] = path.split("/");
    const at = { kind: "entry", directory, name } as const;
    const id = `${path} at ${this.nowMs}`;
    const whole: TreeOperation = { id, beganMs: 0, participants: [], ...operation };
    const steps: Step[] = [
      { kind: "begin", at, operation: whole, expectedId },
      { kind: "decide", at, operation: whole },
    ];
    const machine = this.judge.recorded(
      (function* () {
        for (const step of steps) yield [step];
      })(),
    );
    machine.next();
    machine.next([{ done: true }]);
    this.nowMs++;
    machine.next([isAnswered ? { done: true } : undefined]);
    this.nowMs++;
  }

  read(path: string, id: string | undefined): void {
    const [directory = "", name = ""] = path.split("/");
    this.judge.read({ directory, name, id, calledAt: this.nowMs, returnedAt: this.nowMs + 1 });
    this.nowMs += 2;
  }

  verdict(...reached: string[]): string | undefined {
    return this.judge.check(new Map(["root", ...reached].map((id) => [id, []])), () => assert.fail("not decided"));
  }
}

const held = (id: string, kind: HeldEntry["kind"] = "directory"): HeldEntry => ({ kind, id, name: "a" });
const entry = (directory: string, name: string) => ({ kind: "entry", directory, name }) as const;

test("judge of trees, a rename that was answered, breaks when its source is still read", () => {
  for (const [isAnswered, source, isGood] of [
    [true, undefined, true],
    [true, "d", false],
    [false, "d", true],
  ] as const) {
    const history = new History();
    history.decided("root/a", undefined, { next: held("d") });
    history.decided("root/b", undefined, { next: held("d"), participants: [{ at: entry("root", "a"), fate: "take" }] }, isAnswered);
    history.read("root/a", source);
    assert.equal(history.verdict() === undefined, isGood);
  }
});

test("judge of trees, something is created in a directory that was removed as empty, breaks", () => {
  const history = new History();
  history.decided("root/a", undefined, { next: held("d") });
  history.decided("root/a", "d", { participants: [{ at: { kind: "directory", id: "d" }, fate: "take" }] });
  assert.equal(history.verdict(), undefined);
  history.decided("d/a", undefined, { next: held("f", "file") });
  assert.match(history.verdict() ?? "", /no order explains/);
});

test("judge of trees, names below a directory that was removed with them, are judged where they can be reached", () => {
  const history = new History();
  history.decided("root/a", undefined, { next: held("d") });
  history.decided("d/a", undefined, { next: held("e") });
  history.decided("e/a", undefined, { next: held("f", "file") });
  history.decided("root/a", "d", { participants: [{ at: { kind: "directory", id: "d" }, fate: "condemn" }] });
  history.read("e/a", undefined);
  assert.equal(history.verdict(), undefined);
  assert.notEqual(history.verdict("e"), undefined);
});

test("judge of trees, a list does not tell of what stayed, breaks", () => {
  for (const [told, isGood] of [
    [["d", "f"], true],
    [["d"], false],
    [["d", "f", "f"], false],
  ] as const) {
    const history = new History();
    history.decided("root/a", undefined, { next: held("d") });
    history.decided("d/a", undefined, { next: held("f", "file") });
    history.judge.listed({ root: "root", calledAt: history.nowMs, returnedAt: history.nowMs + 5, told });
    assert.equal(history.verdict() === undefined, isGood);
  }
});
