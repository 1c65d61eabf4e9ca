/** The judge of queues sees each promise broken, and nothing where all is well. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type HandOut, QueueJudge } from "./queue-judge.ts";
import { BrokenPromise } from "./stage.ts";

const week = 604_800;

const told = (messageId: string, text: string, expiresS: number) => ({ messageId, text, visibleS: 100, insertedS: 100, expiresS });

/** A message put at second 100 of the queue's clock. */
function start(): QueueJudge {
  const judge = new QueueJudge("q");
  judge.putUnanswered("text");
  judge.put(told("m", "text", 100 + week));
  return judge;
}

const handOut = (change: Partial<HandOut> = {}): HandOut => ({
  messageId: "m",
  text: "text",
  dequeueCount: 1,
  visibleS: 130,
  insertedS: 100,
  expiresS: 100 + week,
  ...change,
});

const stories: Readonly<Record<string, (judge: QueueJudge) => void>> = {
  "handed out twice": (judge) => {
    judge.taken(handOut(), 30, 1, 2);
    judge.taken(handOut(), 30, 1, 2);
  },
  "hidden until 130": (judge) => {
    judge.taken(handOut(), 30, 1, 2);
    judge.taken(handOut({ dequeueCount: 2, visibleS: 150 }), 30, 3, 4);
  },
  "seen after its deletion": (judge) => {
    judge.taken(handOut(), 30, 1, 2);
    judge.deleteCalled("m");
    judge.deleted("m", 1, 3, 4);
    judge.peeked(handOut(), 5);
  },
  "seen after the receipt of its last hand-out found no message": (judge) => {
    judge.deleteCalled("m");
    judge.deleteRefused("m", 0, "MessageNotFound", 2);
    judge.peeked(handOut({ dequeueCount: 0 }), 3);
  },
  "deleted by hand-out 0 after its receipt found no message": (judge) => {
    judge.updateCalled("m", 0, "new");
    judge.updateRefused("m", 0, "MessageNotFound", 2);
    judge.deleteCalled("m");
    judge.deleted("m", 0, 3, 4);
  },
  "hand-out 1: it is the next one after a receipt that found no message": (judge) => {
    judge.deleteCalled("m");
    judge.deleteRefused("m", 0, "MessageNotFound", 2);
    judge.taken(handOut(), 30, 3, 4);
  },
  "hand-out 2: it is the next one after a receipt that found no message": (judge) => {
    judge.taken(handOut(), 30, 1, 2);
    judge.updateCalled("m", 1, "text");
    judge.updated("m", 1, 3);
    judge.deleteCalled("m");
    judge.deleteRefused("m", 1, "MessageNotFound", 4);
    judge.taken(handOut({ dequeueCount: 2, visibleS: 170 }), 30, 5, 6);
  },
  "deleted by hand-out 1 after hand-out 2": (judge) => {
    judge.taken(handOut(), 30, 1, 2);
    judge.taken(handOut({ dequeueCount: 2, visibleS: 170 }), 30, 3, 4);
    judge.deleteCalled("m");
    judge.deleted("m", 1, 5, 6);
  },
  "updated by hand-out 0 after hand-out 1": (judge) => {
    judge.taken(handOut(), 30, 1, 2);
    judge.updateCalled("m", 0, "new");
    judge.updated("m", 0, 5);
  },
  "had expired": (judge) => {
    judge.putUnanswered("short");
    judge.put(told("s", "short", 105));
    judge.taken(handOut({ messageId: "s", text: "short", expiresS: 105, visibleS: 140 }), 30, 1, 2);
  },
  "which nobody put": (judge) => judge.taken(handOut({ messageId: "other", text: "other" }), 30, 1, 2),
  "says other": (judge) => judge.peeked(handOut({ text: "other" }), 1),
  "expires at 7": (judge) => judge.peeked(handOut({ expiresS: 7 }), 1),
  "two messages are called m": (judge) => judge.put(told("m", "text", 100 + week)),
};

for (const [what, story] of Object.entries(stories)) {
  test(`queue judge: ${what}`, () => {
    assert.throws(
      () => story(start()),
      (error) => error instanceof BrokenPromise && error.message.includes(what),
    );
  });
}

test("queue judge: a life as it should be, and what is missing in the end", () => {
  const judge = start();
  judge.taken(handOut(), 30, 1, 2);
  judge.updateCalled("m", 1, "new");
  judge.updated("m", 1, 3);
  judge.taken(handOut({ dequeueCount: 2, text: "new", visibleS: 131 }), 30, 4, 5);
  judge.deleteCalled("m");
  judge.deleteRefused("m", 1, "MessageNotFound", 5);
  assert.deepEqual(judge.missing(), ["m"]);
  judge.deleteCalled("m");
  judge.deleted("m", 2, 6, 7);
  // This peek was sent before the deletion was answered.
  judge.peeked(handOut({ dequeueCount: 2, text: "new" }), 6);
  assert.deepEqual(judge.missing(), []);
});

test("queue judge: a message that is seen before its put is answered is one message", () => {
  const judge = start();
  judge.putUnanswered("early");
  judge.taken(handOut({ messageId: "e", text: "early" }), 30, 1, 2);
  judge.put(told("e", "early", 100 + week));
  assert.deepEqual(judge.missing(), ["m", "e"]);
});

test("queue judge: a short life may have ended, also of a message that was only peeked at", () => {
  const judge = new QueueJudge("q");
  judge.putUnanswered("short");
  judge.peeked(handOut({ messageId: "s", text: "short", visibleS: 0, expiresS: 105 }), 1);
  assert.deepEqual(judge.missing(), []);
});

test("queue judge: a receipt finds no message that was handed out since, or updated by a request whose answer is lost", () => {
  const judge = start();
  judge.deleteCalled("m");
  // This deletion was sent before the call above was answered.
  judge.deleteRefused("m", 0, "MessageNotFound", 4);
  judge.taken(handOut(), 30, 3, 5);
  judge.updateCalled("m", 1, "new");
  judge.deleteCalled("m");
  judge.deleteRefused("m", 1, "MessageNotFound", 7);
  judge.peeked(handOut({ text: "new" }), 8);
  judge.taken(handOut({ dequeueCount: 2, text: "new", visibleS: 170 }), 30, 8, 9);
  assert.deepEqual(judge.missing(), ["m"]);
});

test("queue judge: an update or delete without an answer leaves both open", () => {
  const judge = start();
  judge.taken(handOut(), 30, 1, 2);
  judge.updateCalled("m", 1, "new");
  judge.taken(handOut({ dequeueCount: 2, text: "new", visibleS: 131 }), 30, 4, 5);
  judge.deleteCalled("m");
  assert.deepEqual(judge.missing(), []);
});
