/** The checker against histories whose verdict is known, against brute force over many small ones, and what it says of a violation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import { checkHistory } from "./check.ts";
import type { Model, RecordedOperation } from "./history.ts";
import type { RegisterCall } from "./models/register.ts";
import { registerModel } from "./models/register.ts";
import { describeVerdict } from "./report.ts";
import { search } from "./search.ts";

const at = (calledAt: number, returnedAt: number | undefined, call: RegisterCall, client?: string): RecordedOperation<RegisterCall> => ({
  call,
  calledAt,
  returnedAt,
  ...(client === undefined ? {} : { client }),
});
const write = (value: number, key?: string): RegisterCall => ({ kind: "write", value, ...(key === undefined ? {} : { key }) });
const read = (value: number, key?: string): RegisterCall => ({ kind: "read", value, ...(key === undefined ? {} : { key }) });
const cas = (from: number, to: number, done: boolean | undefined): RegisterCall => ({ kind: "cas", from, to, done });

/** Each with its verdict; the first four are Herlihy and Wing's examples, read as registers. */
const known: readonly (readonly [name: string, good: boolean, history: readonly RecordedOperation<RegisterCall>[]])[] = [
  ["two writes at once, read as the later", true, [at(0, 10, write(1)), at(1, 9, write(2)), at(11, 12, read(2)), at(13, 14, read(2))]],
  ["two writes at once, read as either", true, [at(0, 10, write(1)), at(1, 9, write(2)), at(11, 12, read(1)), at(13, 14, read(1))]],
  [
    "two writes at once, read as one and then the other",
    false,
    [at(0, 10, write(1)), at(1, 9, write(2)), at(11, 12, read(1)), at(13, 14, read(2))],
  ],
  ["a read of what was overwritten before it began", false, [at(0, 1, write(1)), at(2, 3, write(2)), at(4, 5, read(1))]],
  ["new and old seen at once during a write", true, [at(0, 1, write(1)), at(2, 10, write(2)), at(3, 4, read(2)), at(3, 5, read(1))]],
  ["new, then old, during a write", false, [at(0, 1, write(1)), at(2, 10, write(2)), at(3, 4, read(2)), at(5, 6, read(1))]],
  ["a write that timed out takes effect long after", true, [at(0, undefined, write(1)), at(2, 3, read(0)), at(4, 5, read(1))]],
  ["a write that timed out never takes effect", true, [at(0, undefined, write(1)), at(2, 3, read(0))]],
  ["a write that timed out is seen and then taken back", false, [at(0, undefined, write(1)), at(2, 3, read(1)), at(4, 5, read(0))]],
  ["a write is seen before it was asked for", false, [at(0, 1, read(1)), at(2, 3, write(1))]],
  ["two of one compare-and-set succeed", false, [at(0, 9, cas(0, 1, true)), at(0, 9, cas(0, 2, true))]],
  ["one of two compare-and-sets succeeds", true, [at(0, 9, cas(0, 1, true)), at(0, 9, cas(0, 2, false))]],
  ["a chain of compare-and-sets in the wrong order of time", false, [at(0, 1, cas(1, 2, true)), at(2, 3, cas(0, 1, true))]],
  [
    "a compare-and-set that timed out explains a later value",
    true,
    [at(0, undefined, cas(0, 1, undefined)), at(1, 2, cas(1, 2, true)), at(3, 4, read(2))],
  ],
  ["at one moment a call comes before a return", true, [at(0, 5, write(1)), at(5, 6, read(0))]],
];

test("checker: histories whose verdict is known", () => {
  for (const [name, good, history] of known) {
    assert.equal(checkHistory(registerModel, history).kind, good ? "linearizable" : "violation", name);
  }
});

test("checker: keys are checked for themselves, and the one that is wrong is named", () => {
  const history = [at(0, 1, write(1, "a")), at(0, 1, write(1, "b")), at(2, 3, read(1, "a")), at(2, 3, read(0, "b"))];
  const verdict = checkHistory(registerModel, history);
  assert.equal(verdict.partitions, 2);
  assert.deepEqual(
    verdict.violations.map((violation) => violation.partition),
    ["b"],
  );
});

test("checker: the order that it found explains every answer and keeps the order of time", () => {
  for (let seed = 0; seed < 300; seed++) {
    const history = randomHistory(new Prng(seed), 8);
    const result = search(registerModel, history);
    if (result.kind !== "linearizable") continue;
    assert.ok(
      explains(
        registerModel,
        result.order.map((index) => history[index] as RecordedOperation<RegisterCall>),
      ),
      `seed ${seed}`,
    );
    history.forEach((operation, index) => {
      assert.ok(operation.returnedAt === undefined || result.order.includes(index), `seed ${seed}: ${index} returned and has no place`);
    });
  }
});

test("checker: says the same as brute force over every order, for thousands of small histories", () => {
  const seen = { linearizable: 0, violation: 0, unknown: 0 };
  for (let seed = 0; seed < 3_000; seed++) {
    const history = randomHistory(new Prng(seed), 2 + (seed % 5));
    const { kind } = search(registerModel, history);
    seen[kind] += 1;
    assert.equal(kind, bruteForce(registerModel, history) ? "linearizable" : "violation", `seed ${seed}: ${JSON.stringify(history)}`);
  }
  assert.ok(seen.linearizable > 500 && seen.violation > 500 && seen.unknown === 0, JSON.stringify(seen));
});

test("checker: a violation is cut down to the answers that contradict each other", () => {
  const noise = Array.from({ length: 30 }, (_, i) => [
    at(10 * i, 10 * i + 4, write(100 + i), "w"),
    at(10 * i + 5, 10 * i + 6, read(100 + i), "r"),
  ]).flat();
  const wrong = [at(1_000, 1_001, write(7), "x"), at(1_002, 1_003, write(8), "x"), at(1_004, 1_005, read(7), "y")];
  const after = [at(2_000, 2_001, write(9)), at(2_002, 2_003, read(9))];
  const { violations } = checkHistory(registerModel, [...noise, ...wrong, ...after]);
  const [violation] = violations;
  assert.ok(violation);
  assert.deepEqual(
    violation.contradiction.map(({ call }) => call),
    wrong.map(({ call }) => call),
    "had 7 not returned before 8 was asked for, it might have come after it",
  );
  const text = describeVerdict(registerModel, { kind: "violation", violations, unknown: [], partitions: 1, operations: 65 });
  assert.match(text, /no order explains these 3 answers/);
  assert.match(text, /! 1004\.000\.\.1005\.000 y read 7/);
  assert.match(text, /leaves value 8/);
  assert.ok(!text.includes("write 9"), "nothing from after the contradiction");
});

test("checker: a search that meets its bound is unknown, and says so loudly", () => {
  // Many writes at once, and a read that none of them explains: every subset in every order ends elsewhere.
  const writes = Array.from({ length: 24 }, (_, i) => at(0, 100, cas(i, i + 1, undefined)));
  const history = [
    ...writes.map((each) => ({ ...each, returnedAt: undefined })),
    ...Array.from({ length: 14 }, (_, i) => at(0, 100, write(i))),
    at(101, 102, read(999)),
  ];
  for (const bounds of [{ stepsMax: 5_000 }, { configurationsMax: 1_000 }, { timeMaxMs: 5, nowMs: tick() }]) {
    const verdict = checkHistory(registerModel, history, bounds);
    assert.equal(verdict.kind, "unknown", JSON.stringify(bounds));
    assert.match(describeVerdict(registerModel, verdict), /NOT DECIDED.*39 operations.*given up after more than .*no proof/);
  }
});

test("checker: sixty timeouts on one key are decided, right and wrong", () => {
  const lost = Array.from({ length: 60 }, (_, i) => at(i, undefined, write(1 + i)));
  const seen = [17, 3, 44, 45, 2].map((value, i) => at(100 + 10 * i, 105 + 10 * i, read(value)));
  assert.equal(checkHistory(registerModel, [...lost, ...seen]).kind, "linearizable");
  const backAgain = at(200, 205, read(17));
  const { kind, violations } = checkHistory(registerModel, [...lost, ...seen, backAgain]);
  assert.equal(kind, "violation");
  assert.deepEqual(
    violations[0]?.contradiction.map(({ call }) => call),
    [read(17), read(3), read(17)],
    "one write of 17 is seen twice with another value between",
  );
});

test("checker: a long history with little at once is decided in about a step an operation", () => {
  const history: RecordedOperation<RegisterCall>[] = [];
  for (let i = 0; i < 5_000; i++) history.push(at(10 * i, 10 * i + 3, write(i + 1)), at(10 * i + 2, 10 * i + 9, read(i + 1)));
  const result = search(registerModel, history);
  assert.equal(result.kind, "linearizable");
  assert.ok(result.steps < 40_000, `${result.steps} steps`);
});

function tick(): () => number {
  let now = 0;
  return () => ++now * 3;
}

/** Intervals and answers at random: about half of them have an explanation. */
function randomHistory(prng: Prng, count: number): RecordedOperation<RegisterCall>[] {
  return Array.from({ length: count }, () => {
    const calledAt = prng.below(12);
    const call: RegisterCall =
      prng.below(3) === 0
        ? { kind: "write", value: 1 + prng.below(3) }
        : prng.below(2) === 0
          ? { kind: "read", value: prng.below(3) }
          : { kind: "cas", from: prng.below(3), to: 1 + prng.below(3), done: prng.chance(0.5) };
    const lost = call.kind !== "read" && prng.chance(0.2);
    const known: RegisterCall = lost && call.kind === "cas" ? { ...call, done: undefined } : call;
    return at(calledAt, lost ? undefined : calledAt + 1 + prng.below(6), known);
  });
}

function explains<State, Call>(model: Model<State, Call>, order: readonly RecordedOperation<Call>[]): boolean {
  let state: State | undefined = model.initial;
  for (const [i, operation] of order.entries()) {
    // Nobody earlier in the order was called after this one had returned.
    if (order.slice(0, i).some((before) => operation.returnedAt !== undefined && before.calledAt > operation.returnedAt)) return false;
    state = model.step(state, operation.call);
    if (state === undefined) return false;
  }
  return true;
}

/** Every order of every choice of those that may not have happened. */
function bruteForce<State, Call>(model: Model<State, Call>, history: readonly RecordedOperation<Call>[]): boolean {
  const extend = (order: readonly RecordedOperation<Call>[], rest: readonly RecordedOperation<Call>[]): boolean => {
    if (rest.every((operation) => operation.returnedAt === undefined)) return true;
    return rest.some(
      (next) =>
        explains(model, [...order, next]) &&
        extend(
          [...order, next],
          rest.filter((each) => each !== next),
        ),
    );
  };
  return extend([], history);
}
