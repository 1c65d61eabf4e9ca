/** The checker itself: it accepts what can be, and refuses what can't. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import type { RecordedOperation } from "../history.ts";
import type { BlobAnswer, BlobCall, BlobCondition as Condition } from "./blob.ts";
import { checkBlob } from "./blob.ts";

const none: Condition = { kind: "none" };
const ok = (etag: string, write?: number): BlobAnswer => ({ kind: "ok", etag, ...(write === undefined ? {} : { write }) });
const put = (write: number, answer: BlobAnswer, condition: Condition = none): BlobCall => ({ kind: "put", write, condition, answer });
const get = (answer: BlobAnswer): BlobCall => ({ kind: "get", answer });
const at = (calledAt: number, returnedAt: number | undefined, call: BlobCall): RecordedOperation<BlobCall> => ({
  call,
  calledAt,
  returnedAt,
});
const unknown: BlobAnswer = { kind: "unknown" };
const accepted = (...history: RecordedOperation<BlobCall>[]): void => assert.deepEqual(checkBlob(history, true), { kind: "linearizable" });
const refusedBy = (...history: RecordedOperation<BlobCall>[]): void => assert.equal(checkBlob(history, true).kind, "violation");

test("blob checker: a read sees the last write, or a concurrent one", () => {
  accepted(at(0, 1, put(1, ok("a"))), at(2, 3, get(ok("a", 1))));
  accepted(at(0, 10, put(1, ok("a"))), at(2, 3, get({ kind: "noBlob" })), at(4, 5, get(ok("a", 1))));
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 3, get({ kind: "noBlob" })));
  refusedBy(at(0, 10, put(1, ok("a"))), at(2, 3, get(ok("a", 1))), at(4, 5, get({ kind: "noBlob" })));
});

test("blob checker: a lost or stale write is refused", () => {
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 3, put(2, ok("b"))), at(4, 5, get(ok("a", 1))));
  accepted(at(0, 4, put(1, ok("a"))), at(2, 3, put(2, ok("b"))), at(4, 5, get(ok("a", 1))));
});

test("blob checker: an unknown write may happen late, or never, but not be taken back", () => {
  accepted(at(0, undefined, put(1, unknown)), at(2, 3, get({ kind: "noBlob" })), at(4, 5, get(ok("a", 1))));
  accepted(at(0, undefined, put(1, unknown)), at(2, 3, get({ kind: "noBlob" })));
  refusedBy(at(0, undefined, put(1, unknown)), at(2, 3, get(ok("a", 1))), at(4, 5, get({ kind: "noBlob" })));
});

test("blob checker: of two updates under one ETag one is refused", () => {
  const match: Condition = { kind: "match", etag: "a" };
  accepted(at(0, 1, put(1, ok("a"))), at(2, 9, put(2, ok("b"), match)), at(2, 9, put(3, { kind: "conditionNotMet" }, match)));
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 9, put(2, ok("b"), match)), at(2, 9, put(3, ok("c"), match)));
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 3, put(2, { kind: "conditionNotMet" }, match)));
});

test("blob checker: an ETag stands for one content", () => {
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 3, put(2, ok("a"))));
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 3, get(ok("x", 1))));
});

test("blob checker: what was in a deleted container does not come back with its name", () => {
  const create: BlobCall = { kind: "createContainer", answer: { kind: "ok" } };
  const remove: BlobCall = { kind: "deleteContainer", answer: { kind: "ok" } };
  accepted(
    at(0, 1, put(1, ok("a"))),
    at(2, 3, remove),
    at(4, 5, get({ kind: "noContainer" })),
    at(6, 7, create),
    at(8, 9, get({ kind: "noBlob" })),
  );
  refusedBy(at(0, 1, put(1, ok("a"))), at(2, 3, remove), at(6, 7, create), at(8, 9, get(ok("a", 1))));
  refusedBy(at(2, 3, remove), at(4, 5, put(1, ok("a"))));
  accepted(at(2, 5, remove), at(4, 6, put(1, ok("a"))));
});

/** Runs operations on a real register at one moment inside each interval, so the history is right; `spoil` breaks one answer. */
function randomHistory(seed: number, spoil: boolean): RecordedOperation<BlobCall>[] {
  const prng = new Prng(seed);
  const plans = Array.from({ length: 40 }, (_, i) => {
    const calledAt = prng.below(1000);
    const length = 1 + prng.below(80);
    return {
      write: i + 1,
      calledAt,
      at: calledAt + prng.float() * length,
      returnedAt: calledAt + length,
      kind: prng.pick(["put", "get", "delete", "cas"]),
    };
  });
  let state: { write: number; etag: string } | undefined;
  let lastEtag = "none";
  const history: RecordedOperation<BlobCall>[] = [];
  for (const plan of plans.sort((a, b) => a.at - b.at)) {
    const lose = prng.chance(0.15);
    const answer = (given: BlobAnswer): BlobAnswer => (lose ? unknown : given);
    let call: BlobCall;
    if (plan.kind === "get") {
      call = get(answer(state ? ok(state.etag, state.write) : { kind: "noBlob" }));
    } else if (plan.kind === "delete") {
      call = { kind: "delete", condition: none, answer: answer(state ? { kind: "ok" } : { kind: "noBlob" }) };
      state = undefined;
    } else {
      const condition: Condition = plan.kind === "cas" ? { kind: "match", etag: lastEtag } : none;
      const applies = condition.kind === "none" || state?.etag === lastEtag;
      call = put(plan.write, answer(applies ? ok(`e${plan.write}`) : { kind: "conditionNotMet" }), condition);
      if (applies) {
        state = { write: plan.write, etag: `e${plan.write}` };
        if (prng.chance(0.7)) lastEtag = state.etag;
      }
    }
    history.push(at(plan.calledAt, lose ? undefined : plan.returnedAt, call));
  }
  if (spoil) {
    // After everything else, a read of a write that was overwritten by an acknowledged one long before.
    const puts = history.filter(({ call, returnedAt }) => call.kind === "put" && call.answer.kind === "ok" && returnedAt !== undefined);
    const first = puts.reduce((a, b) => ((a.returnedAt as number) < (b.returnedAt as number) ? a : b));
    const later = puts.some((each) => each.calledAt > (first.returnedAt as number));
    assert.ok(later);
    history.push(at(5000, 5001, get(ok(`e${(first.call as { write: number }).write}`, (first.call as { write: number }).write))));
  }
  return history;
}

test("blob checker: right histories pass, spoiled ones don't, over many seeds", () => {
  for (let seed = 0; seed < 100; seed++) {
    assert.deepEqual(checkBlob(randomHistory(seed, false), true), { kind: "linearizable" }, `seed ${seed}`);
    assert.equal(checkBlob(randomHistory(seed, true), true).kind, "violation", `spoiled seed ${seed}`);
  }
});
