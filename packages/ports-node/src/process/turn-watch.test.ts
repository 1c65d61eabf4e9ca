import assert from "node:assert/strict";
import { test } from "node:test";
import { TurnWatch } from "./turn-watch.ts";

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

function work(ms: number): void {
  const untilMs = cpuMs() + ms;
  while (cpuMs() < untilMs);
}

/** A later turn of the loop: behind the watch, which looks once a turn. */
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

test("turn watch: the longest turn is told in processor time, whatever kind of callback works, and once", async (t) => {
  const watch = new TurnWatch();
  t.after(() => watch.stop());
  assert.equal(watch.take().watching, false, "nobody has asked before");
  await turn();
  for (const begin of [setImmediate, (run: () => void) => setTimeout(run, 1), (run: () => void) => void turn().then(run)]) {
    await new Promise<void>((resolve) =>
      begin(() => {
        work(40);
        resolve();
      }),
    );
    await turn();
    await turn();
    const { watching, longestCpuMs, turns } = watch.take();
    assert.equal(watching, true);
    assert.ok(longestCpuMs >= 40, `told as ${longestCpuMs} ms`);
    assert.ok(turns >= 2);
  }
});

test("turn watch: two turns are not added up, and waiting is no work", async (t) => {
  const watch = new TurnWatch();
  t.after(() => watch.stop());
  watch.take();
  await turn();
  const beforeMs = cpuMs();
  for (let i = 0; i < 10; i++) {
    work(10);
    await turn();
  }
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120);
  await turn();
  const workedMs = cpuMs() - beforeMs;
  const { longestCpuMs } = watch.take();
  assert.ok(longestCpuMs >= 10 && longestCpuMs < workedMs - 60, `${longestCpuMs} of ${workedMs} ms`);
});

test("turn watch: a turn that is asked in the middle counts up to there, and its rest for the next one who asks", async (t) => {
  const watch = new TurnWatch();
  t.after(() => watch.stop());
  watch.take();
  await turn();
  work(30);
  const first = watch.take();
  work(60);
  const second = watch.take();
  assert.ok(first.longestCpuMs >= 30 && second.longestCpuMs >= 60, JSON.stringify([first, second]));
});

test("turn watch: when nobody has asked for a minute the watch ends, and a question begins it again", async (t) => {
  const watch = new TurnWatch();
  t.after(() => watch.stop());
  watch.take();
  let nowMs = performance.now();
  t.mock.method(performance, "now", () => nowMs);
  await turn();
  assert.equal(watch.take().watching, true);
  nowMs += 61_000;
  await turn();
  await turn();
  assert.equal(watch.take().watching, false);
  await turn();
  assert.equal(watch.take().watching, true);
});

test("turn watch: it does not wake an idle loop", async (t) => {
  const watch = new TurnWatch();
  t.after(() => watch.stop());
  watch.take();
  await new Promise((resolve) => setTimeout(resolve, 60));
  const { watching, turns } = watch.take();
  assert.equal(watching, true);
  // A loop that is kept awake makes some ten thousand turns in this time.
  assert.ok(turns < 200, `${turns} turns`);
});
