import assert from "node:assert/strict";
import { test } from "node:test";
import { type Granted, LeaseJudge } from "./lease-judge.ts";

const granted = (id: string, sentMs: number, more: Partial<Granted> = {}): Granted => ({
  of: "b",
  id,
  by: "acquire",
  durationMs: 15_000,
  sentMs,
  answeredMs: sentMs + 10,
  ...more,
});
function judged(work: (judge: LeaseJudge) => void): string {
  const judge = new LeaseJudge();
  judge.granted(granted("one", 0));
  work(judge);
  return judge.check() ?? "";
}
const asked = (sentMs: number, answeredMs = sentMs + 10) => ({ of: "b", sentMs, answeredMs });

test("lease judge: a second holder is seen until the first one's time is over, and not after", () => {
  assert.match(
    judged((judge) => judge.granted(granted("two", 10_000))),
    /two holders/,
  );
  assert.match(
    judged((judge) => {
      judge.granted(granted("one", 14_000, { by: "renew" }));
      judge.granted(granted("two", 20_000));
    }),
    /two holders/,
  );
  assert.equal(
    judged((judge) => judge.granted(granted("two", 15_000))),
    "",
  );
  assert.equal(
    judged((judge) => judge.granted(granted("two", 5, { answeredMs: 20 }))),
    "",
    "at the same time nothing is certain",
  );
  assert.equal(
    judged((judge) => judge.granted(granted("two", 10_000, { of: "other" }))),
    "",
  );
});

test("lease judge: writes without the lease, and refusals of its holder", () => {
  assert.match(
    judged((judge) => judge.wroteWithout(asked(5_000))),
    /without its lease/,
  );
  assert.equal(
    judged((judge) => judge.wroteWithout(asked(16_000))),
    "",
  );
  assert.match(
    judged((judge) => judge.refused({ ...asked(5_000), id: "one", code: "LeaseLost" })),
    /refused \(LeaseLost\)/,
  );
  assert.equal(
    judged((judge) => judge.refused({ ...asked(5_000), id: "two", code: "LeaseAlreadyPresent" })),
    "",
  );
});

test("lease judge: what was released or broken is nobody's", () => {
  const late = granted("two", 10_000);
  assert.equal(
    judged((judge) => {
      judge.released("one", 9_000);
      judge.granted(late);
    }),
    "",
  );
  assert.equal(
    judged((judge) => {
      judge.broken("b", 9_000, 9_500);
      judge.granted(late);
    }),
    "",
  );
  assert.match(
    judged((judge) => {
      judge.broken("b", -2_000, -1_000);
      judge.granted(late);
    }),
    /two holders/,
    "what was broken before it was granted says nothing",
  );
});
