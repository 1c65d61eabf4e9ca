/** Requests at the doors of a front-end whose event loop is slow, on counted time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DoorGate, type DoorGateOptions } from "./door-gate.ts";

const options: DoorGateOptions = {
  requestsMax: 100,
  accountShareMax: 0.8,
  startsMax: 4,
  startsMin: 2,
  turnTargetMs: 10,
  waitMaxMs: 100,
  waitAloneMaxMs: 1_000,
};

/** Its loop comes round when it is told to. */
class Loop {
  nowMs = 0;
  due: (() => void)[] = [];
  readonly gate: DoorGate;

  constructor(changed: Partial<DoorGateOptions> = {}) {
    const after = (_delayMs: number, callback: () => void) => {
      this.due.push(callback);
      return { cancel: () => {} };
    };
    this.gate = new DoorGate(
      { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs, suspendedMs: () => 0, after },
      { ...options, ...changed },
    );
  }

  async turn(tookMs: number): Promise<void> {
    this.nowMs += tookMs;
    for (const callback of this.due.splice(0)) callback();
    await Promise.resolve();
  }
}

/** Returns the events of this account's requests, in order. */
function ask(loop: Loop, account: string, count: number, address = "192.0.2.1"): string[] {
  const log: string[] = [];
  for (let i = 0; i < count; i++) {
    const entering = loop.gate.enter(account, address);
    const entered = (refusal: unknown) => log.push(refusal === undefined ? "in" : "refused");
    if (entering instanceof Promise) void entering.then(entered);
    else entered(entering);
  }
  return log;
}

const count = (log: readonly string[], what: string): number => log.filter((one) => one === what).length;

test("door gate: requests start at once, so many in a turn; the rest in the next turns, and a quiet account before who sent many", async () => {
  const loop = new Loop();
  const flood = ask(loop, "flood", 20);
  assert.equal(flood.length, 4);
  const quiet = ask(loop, "quiet", 2);
  assert.equal(quiet.length, 1, "an account that has nothing yet does not wait");
  await loop.turn(1);
  assert.equal(quiet.length, 2);
  assert.equal(flood.length, 7);
  for (let i = 0; i < 4; i++) await loop.turn(1);
  assert.deepEqual([count(flood, "in"), count(quiet, "in")], [20, 2]);
  assert.equal(loop.gate.figures.waiting, 0);
  await loop.turn(1);
  assert.equal(loop.due.length, 0, "nothing ticks while nobody asks");
});

test("door gate: while turns are long and another account is there fewer start in each; who waits too long is refused", async () => {
  const loop = new Loop({ requestsMax: 200 });
  ask(loop, "quiet", 1);
  const flood = ask(loop, "flood", 60);
  for (let i = 0; i < 40; i++) await loop.turn(60);
  assert.equal(loop.gate.figures.limit, options.startsMin);
  assert.equal(count(flood, "refused"), 0, "what waits already is served");
  assert.equal(count(flood, "in"), 60);
  const again = ask(loop, "flood", 12);
  for (let i = 0; i < 3; i++) await loop.turn(60);
  assert.ok(again.length < 12, "some of them wait for more than 100 ms");
  assert.deepEqual(ask(loop, "flood", 2), ["refused", "refused"]);
  assert.deepEqual(ask(loop, "quiet", 1), ["in"]);
});

test("door gate: a quick turn now and then does not hide that others wait for long ones", async () => {
  const loop = new Loop({ startsMax: 64, requestsMax: 100_000 });
  ask(loop, "quiet", 1);
  ask(loop, "flood", 64);
  for (let i = 0; i < 200; i++) {
    await loop.turn(i % 4 === 0 ? 1 : 20);
    ask(loop, "flood", loop.gate.figures.limit);
  }
  assert.equal(loop.gate.figures.limit, options.startsMin);
  assert.equal(loop.gate.figures.standing, true);
});

test("door gate: one account never has all the places, and gives back those it has", async () => {
  const loop = new Loop({ startsMax: 1_000, startsMin: 1_000 });
  const flood = Array.from({ length: 10 }, (_, i) => ask(loop, "flood", 9, `192.0.2.${i}`)).flat();
  assert.deepEqual([count(flood, "in"), count(flood, "refused")], [80, 10]);
  assert.equal(loop.gate.figures.refusedByShare, 10);
  assert.deepEqual(ask(loop, "quiet", 20), Array(20).fill("in"));
  loop.gate.leave("flood", "192.0.2.1");
  assert.deepEqual(ask(loop, "flood", 2, "192.0.2.77"), ["in", "refused"]);
});

test("door gate: addresses of one account take turns: who sends many waits for its own, another address starts in the next turn", async () => {
  const loop = new Loop({ requestsMax: 200 });
  const flood = ask(loop, "public", 60);
  const other = ask(loop, "public", 1, "192.0.2.2");
  await loop.turn(1);
  assert.deepEqual(other, ["in"]);
  assert.ok(count(flood, "in") < 20);
  for (let i = 0; i < 10; i++) await loop.turn(60);
  const late = ask(loop, "public", 1, "192.0.2.2");
  await loop.turn(60);
  assert.deepEqual(late, ["in"], "the waiting of the other address is not held against it");
});

test("door gate: one address never has all the places of an account: who holds few finds one, and so does it again when it gives back", () => {
  const loop = new Loop({ startsMax: 1_000, startsMin: 1_000 });
  const flood = ask(loop, "public", 90);
  assert.deepEqual([count(flood, "in"), count(flood, "refused")], [60, 30]);
  const other = ask(loop, "public", 10, "192.0.2.2");
  assert.deepEqual([count(other, "in"), count(other, "refused")], [8, 2]);
  assert.deepEqual(ask(loop, "another", 8), Array(8).fill("in"), "what an address has of one account does not count for another");
  for (let i = 0; i < 8; i++) loop.gate.leave("public", "192.0.2.1");
  assert.deepEqual(ask(loop, "public", 1), ["refused"], "its places are the others' now");
  for (let i = 0; i < 8; i++) loop.gate.leave("public", "192.0.2.2");
  assert.deepEqual(ask(loop, "public", 9), [...Array(8).fill("in"), "refused"]);
});
