import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Outcome, ok, rulesWithout } from "@stamp/base";
import type { Clock, World } from "@stamp/ports";
import type { ResultKind } from "../routing/router.ts";
import { ParentRows } from "./parent-rows.ts";

/** Answers each read when the test says so. */
class ScriptedRouter {
  readonly sent: ((outcome: Outcome<ResultKind>) => void)[] = [];

  execute(): Promise<Outcome<ResultKind>> {
    return new Promise((resolve) => {
      this.sent.push(resolve);
    });
  }

  answer(index: number, incarnation: bigint): void {
    this.sent[index]?.(ok({ case: "container", value: { incarnation } } as unknown as ResultKind));
  }
}

const clock: Clock = { monotonicMs: () => 0, wallMs: () => 0, suspendedMs: () => 0, after: () => ({ cancel: () => {} }) };
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function start(rules = allRules) {
  const router = new ScriptedRouter();
  const rows = new ParentRows({ clock, rules } as World, () => router.execute(), { readTimeoutMs: 1000 });
  const read = (name = "c") => rows.read("acct", name, { deadlineMs: 1000 });
  return { router, rows, read };
}

const incarnationOf = async (read: Promise<Outcome<ResultKind> | undefined>): Promise<bigint> => {
  const outcome = await read;
  assert.ok(outcome?.ok && outcome.value.case === "container");
  return outcome.value.value.incarnation;
};

test("a request that comes while a read is in flight does not use it, but the next one, with all that wait", async () => {
  const { router, read } = start();
  const first = read();
  const second = read();
  const third = read();
  assert.equal(router.sent.length, 1);
  router.answer(0, 1n);
  assert.equal(await incarnationOf(first), 1n);
  await settle();
  assert.equal(router.sent.length, 2);
  // Came after the second read was sent: a third one.
  const fourth = read();
  router.answer(1, 2n);
  assert.deepEqual(await Promise.all([second, third].map(incarnationOf)), [2n, 2n]);
  await settle();
  assert.equal(router.sent.length, 3);
  router.answer(2, 3n);
  assert.equal(await incarnationOf(fourth), 3n);
});

test("a read that throws is told to those who wait for it, and is not kept", async () => {
  let reads = 0;
  const readRow = (): Promise<Outcome<ResultKind>> => {
    reads += 1;
    if (reads <= 2) return Promise.reject(new Error(`read ${reads}`));
    return Promise.resolve(ok({ case: "container", value: { incarnation: 3n } } as unknown as ResultKind));
  };
  const rows = new ParentRows({ clock, rules: allRules } as World, readRow, { readTimeoutMs: 1000 });
  const read = () => rows.read("acct", "c", { deadlineMs: 1000 });
  await Promise.all([assert.rejects(read(), /read 1/), assert.rejects(read(), /read 2/)]);
  assert.equal(await incarnationOf(read()), 3n);
});

test("nothing is kept when nobody waits, and containers do not wait for each other", async () => {
  const { router, read } = start();
  const a = read("a");
  const b = read("b");
  assert.equal(router.sent.length, 2);
  router.answer(0, 1n);
  router.answer(1, 1n);
  await Promise.all([a, b]);
  await settle();
  const again = read("a");
  assert.equal(router.sent.length, 3);
  router.answer(2, 5n);
  assert.equal(await incarnationOf(again), 5n);
});

test("with the rule switched off an old row is used: what the simulator must notice", async () => {
  const { router, read } = start(rulesWithout("containerRowReadAfterArrival"));
  const first = read();
  router.answer(0, 1n);
  await first;
  await settle();
  assert.equal(await incarnationOf(read()), 1n);
  assert.equal(router.sent.length, 1);
});
