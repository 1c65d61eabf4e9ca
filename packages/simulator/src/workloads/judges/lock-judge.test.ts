/** The judge of leases sees each promise broken, and nothing where all is well. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokenPromise } from "@stamp/histories";
import { LockJudge } from "./lock-judge.ts";

const at = (calledAt: number, returnedAt = calledAt + 10) => ({ calledAt, returnedAt });
const running = { ended: false, refused: false };
const over = { ended: true, refused: false };
const refusedOne = { ended: false, refused: true };

/** Epoch 1 is granted at 0 for 1,000 ms; the lock service serves since long ago. */
function start(servedSince = 0): LockJudge {
  const judge = new LockJudge("l", () => servedSince);
  judge.granted(1, 1_000, at(0));
  return judge;
}

const stories: Readonly<Record<string, (judge: LockJudge) => void>> = {
  "granted twice": (judge) => judge.granted(1, 1_000, at(5_000)),
  "told of after epoch 2": (judge) => {
    judge.granted(2, 1_000, at(2_000));
    judge.shown({ epoch: 1, ...over }, at(3_000));
  },
  "its holder has it until 1000": (judge) => judge.granted(2, 1_000, at(500)),
  "its holder has it until 1900": (judge) => {
    judge.renewed(1, at(900));
    judge.shown({ epoch: 1, ...over }, at(1_800));
  },
  "renewed after it was said to have ended": (judge) => {
    judge.shown({ epoch: 1, ...over }, at(1_100));
    judge.renewed(1, at(1_200));
  },
  "running after it was said to have ended": (judge) => {
    judge.shown({ epoch: 1, ...over }, at(1_100));
    judge.shown({ epoch: 1, ...running }, at(1_200));
  },
  "renewals were said to be refused": (judge) => {
    judge.shown({ epoch: 1, ...refusedOne }, at(100));
    judge.renewed(1, at(200));
  },
  "renewals are not refused any more": (judge) => {
    judge.shown({ epoch: 1, ...refusedOne }, at(100));
    judge.shown({ epoch: 1, ...running }, at(200));
  },
  "ran out by 1010": (judge) => judge.renewed(1, at(1_100)),
};

for (const [what, story] of Object.entries(stories)) {
  test(`lock judge: ${what}`, () => {
    assert.throws(
      () => story(start()),
      (error) => error instanceof BrokenPromise && error.message.includes(what),
    );
  });
}

test("lock judge: a life as it should be", () => {
  const judge = start();
  judge.renewed(1, at(900));
  judge.shown({ epoch: 1, ...running }, at(1_000));
  judge.shown({ epoch: 1, ...refusedOne }, at(1_100));
  // This renewal was sent before the refusal was shown.
  judge.renewed(1, at(1_105));
  judge.shown({ epoch: 1, ...over }, at(2_200));
  judge.granted(2, 1_000, at(2_300));
  judge.releaseCalled(2);
  judge.shown({ epoch: 2, ...over }, at(2_400));
  judge.granted(3, 1_000, at(2_500));
});

test("lock judge: what a restart may have extended, or a renewal without an answer, is not over", () => {
  start(5_000).renewed(1, at(5_900));
  const judge = start();
  judge.renewalUnanswered(1);
  judge.renewed(1, at(3_000));
});
