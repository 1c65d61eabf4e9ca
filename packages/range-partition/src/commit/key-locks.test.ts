import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import type { Clock } from "@stamp/ports";
import { KeyLocks } from "./key-locks.ts";

/** Timers run when the test says so. */
class TestClock implements Clock {
  nowMs = 0;
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];

  monotonicMs(): number {
    return this.nowMs;
  }
  wallMs(): number {
    return this.nowMs;
  }
  suspendedMs(): number {
    return 0;
  }
  after(delayMs: number, run: () => void) {
    const timer = { atMs: this.nowMs + delayMs, run };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((one) => one !== timer);
      },
    };
  }
  advance(ms: number): void {
    this.nowMs += ms;
    for (const timer of this.#timers.filter(({ atMs }) => atMs <= this.nowMs)) {
      this.#timers = this.#timers.filter((one) => one !== timer);
      timer.run();
    }
  }
}

const keys = (...names: string[]): Uint8Array[] => names.map((name) => utf8(name));
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("who wants the same keys in different orders waits for the other, and both go on", async () => {
  const locks = new KeyLocks(new TestClock());
  const inside = new Set<string>();
  let done = 0;
  const work = async (...wanted: string[]): Promise<void> => {
    const release = await locks.acquireAll(keys(...wanted), 1_000);
    assert.ok(release);
    for (const key of wanted) {
      assert.ok(!inside.has(key), `one holder of ${key}`);
      inside.add(key);
    }
    await settled();
    for (const key of wanted) inside.delete(key);
    done++;
    release();
  };
  await Promise.all([work("a", "b", "c"), work("c", "b", "a"), work("b"), work("d"), work("c", "a")]);
  assert.equal(done, 5);
  assert.equal(locks.held, 0);
});

test("a key that is named twice is taken once", async () => {
  const locks = new KeyLocks(new TestClock());
  const release = await locks.acquireAll(keys("a", "a"), 1_000);
  assert.equal(locks.held, 1);
  release?.();
  assert.equal(locks.held, 0);
});

test("whose time is over gives back what was taken", async () => {
  const clock = new TestClock();
  const locks = new KeyLocks(clock);
  const held = await locks.acquire(utf8("b"), 1_000);
  const late = locks.acquireAll(keys("a", "b"), 1_000);
  await settled();
  assert.equal(locks.held, 2);
  clock.advance(1_000);
  assert.equal(await late, undefined);
  assert.equal(locks.held, 1);
  held?.();
  assert.equal(locks.held, 0);
});
