import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseTerm } from "./lease-term.ts";

const options = { durationMs: 15_000, marginMs: 1_500, renewEveryMs: 5_000, retryEveryMs: 750 };

test("term of a lease: renewed at a third; ends a margin before the duration, counted from when the request was sent", () => {
  const term = new LeaseTerm(options, 1_000);
  assert.deepEqual(term.next(1_000), { kind: "wait", untilMs: 6_000 });
  assert.deepEqual(term.next(6_000), { kind: "renew", untilMs: 14_500 });
  assert.deepEqual(term.next(6_001), { kind: "wait", untilMs: 14_500 }, "one renewal at a time");
  term.answered(6_000, { kind: "renewed" }, 9_000);
  assert.equal(term.endsMs, 6_000 + 13_500, "the answer took three seconds, which do not count");
  assert.deepEqual(term.next(9_000), { kind: "wait", untilMs: 11_000 });
});

test("term of a lease: a failed renewal is repeated and ends nothing before the term's end", () => {
  const term = new LeaseTerm(options, 0);
  term.next(5_000);
  term.answered(5_000, { kind: "failed" }, 8_000);
  assert.deepEqual(term.next(8_000), { kind: "wait", untilMs: 8_750 });
  assert.equal(term.next(8_750).kind, "renew");
  term.answered(8_750, { kind: "failed" }, 13_400);
  assert.deepEqual(term.next(13_400), { kind: "wait", untilMs: 13_500 });
  assert.equal(term.next(13_500).kind, "ended");
});

test("term of a lease: an answer after the end does not bring it back", () => {
  const term = new LeaseTerm(options, 0);
  term.next(5_000);
  term.answered(5_000, { kind: "renewed" }, 13_500);
  assert.equal(term.next(13_500).kind, "ended", "late by the clock, though nobody had asked");
  const asked = new LeaseTerm(options, 0);
  asked.next(5_000);
  assert.equal(asked.next(13_500).kind, "ended");
  asked.answered(5_000, { kind: "renewed" }, 13_600);
  assert.equal(asked.next(13_600).kind, "ended");
});

test("term of a lease: a proof of loss ends it at once", () => {
  const term = new LeaseTerm(options, 0);
  term.next(5_000);
  term.answered(5_000, { kind: "lost", why: "taken" }, 5_100);
  assert.deepEqual(term.next(5_100), { kind: "ended", why: "taken" });
});
