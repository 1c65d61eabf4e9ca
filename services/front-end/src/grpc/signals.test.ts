import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Availability } from "./availability.ts";
import { Signals } from "./signals.ts";

const never = new AbortController().signal;

test("signals: reach the listeners of the topic and of the account, and nobody else; nothing is kept", async () => {
  const signals = new Signals(10);
  assert.equal(signals.publish("a", "start"), 0);
  const [mine, too, other, foreign] = [
    ["a", "start"],
    ["a", "start"],
    ["a", "stop"],
    ["b", "start"],
  ].map(([account = "", topic = ""]) => signals.subscribe(account, topic));
  assert.equal(signals.publish("a", "start"), 2);
  assert.deepEqual(await Promise.all([mine?.next(never), too?.next(never)]), [1, 1]);
  const stop = new AbortController();
  const waiting = [other?.next(stop.signal), foreign?.next(stop.signal)];
  stop.abort();
  assert.deepEqual(await Promise.all(waiting), [0, 0]);
});

test("signals: a listener that is woken many times leaves nothing at its call's signal", async () => {
  const signals = new Signals(10);
  const listener = signals.subscribe("a", "t");
  const call = new AbortController();
  for (let sent = 0; sent < 100; sent++) {
    const waiting = listener?.next(call.signal);
    signals.publish("a", "t");
    assert.equal(await waiting, 1);
  }
  assert.equal(getEventListeners(call.signal, "abort").length, 0);
});

test("signals: those that come before a listener reads become one; a waiting one is woken", async () => {
  const signals = new Signals(10);
  const listener = signals.subscribe("a", "t");
  for (let sent = 0; sent < 1_000; sent++) signals.publish("a", "t");
  assert.equal(await listener?.next(never), 1_000);
  const waiting = listener?.next(never);
  signals.publish("a", "t");
  assert.equal(await waiting, 1);
});

test("signals: listeners are bounded, one account to a half; who leaves makes room, once", () => {
  const signals = new Signals(4);
  const mine = [signals.subscribe("a", "t"), signals.subscribe("a", "u")];
  assert.equal(signals.subscribe("a", "v"), undefined);
  assert.ok(signals.subscribe("b", "t"));
  assert.ok(signals.subscribe("c", "t"));
  assert.equal(signals.subscribe("d", "t"), undefined);
  mine[0]?.close();
  mine[0]?.close();
  assert.deepEqual(signals.figures, { listeners: 3, published: 0 });
  assert.ok(signals.subscribe("a", "v"));
  assert.equal(signals.publish("a", "t"), 0);
});

test("availability: waits, fills up, is disabled; says yes again with room to spare only", () => {
  let nowMs = 0;
  let requests = 0;
  let waitingFor: string[] = ["the partition map"];
  const clock = { monotonicMs: () => nowMs } as ConstructorParameters<typeof Availability>[0]["clock"];
  const availability = new Availability({ clock, waitingFor: () => waitingFor, requests: () => requests, requestsMax: 100 });
  assert.equal(availability.reason(), "it waits for the partition map");
  waitingFor = [];
  const at = (count: number): string => {
    requests = count;
    return availability.reason();
  };
  assert.deepEqual(
    [at(90), at(91), at(80), at(70), at(80)],
    ["", "91 of 100 requests are in progress", "80 of 100 requests are in progress", "", ""],
  );
  availability.disable(1_500);
  assert.equal(availability.reason(), "disabled for 2 s more");
  nowMs = 1_500;
  assert.equal(availability.reason(), "");
});
