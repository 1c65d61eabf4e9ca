/**
 * Row order: at most one holder per lock key, first come first served. Several keys are taken in one order by everybody, so that two who
 * want the same ones never wait for each other.
 */
import { assert, compareBytes } from "@stamp/base";
import type { Clock } from "@stamp/ports";
import { nameOfKey } from "./pipelines.ts";

type Waiter = () => void;

export class KeyLocks {
  readonly #clock: Clock;
  /** A key that is here is held; its waiters, in order. */
  readonly #held = new Map<string, Waiter[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get held(): number {
    return this.#held.size;
  }

  /** Resolves to the release, or to undefined when the time is over first. */
  acquire(key: Uint8Array, timeoutMs: number): Promise<(() => void) | undefined> {
    const name = nameOfKey(key);
    const release = (): void => this.#release(name);
    const waiters = this.#held.get(name);
    if (waiters === undefined) {
      this.#held.set(name, []);
      return Promise.resolve(release);
    }
    return new Promise((resolve) => {
      const waiter = (): void => {
        timer.cancel();
        resolve(release);
      };
      const timer = this.#clock.after(timeoutMs, () => {
        const at = waiters.indexOf(waiter);
        assert(at >= 0, "a waiter whose time is over still waits");
        waiters.splice(at, 1);
        resolve(undefined);
      });
      waiters.push(waiter);
    });
  }

  /** Acquires all locks, each once; undefined: none was acquired. */
  async acquireAll(keys: readonly Uint8Array[], timeoutMs: number): Promise<(() => void) | undefined> {
    const deadlineMs = this.#clock.monotonicMs() + timeoutMs;
    const held: (() => void)[] = [];
    const release = (): void => {
      for (const one of held) one();
    };
    let last: Uint8Array | undefined;
    for (const key of [...keys].sort(compareBytes)) {
      if (last && compareBytes(last, key) === 0) continue;
      last = key;
      const one = await this.acquire(key, Math.max(0, deadlineMs - this.#clock.monotonicMs()));
      if (!one) {
        release();
        return undefined;
      }
      held.push(one);
    }
    return release;
  }

  #release(name: string): void {
    const waiters = this.#held.get(name);
    assert(waiters !== undefined, "released once, by its holder");
    const next = waiters.shift();
    if (next === undefined) this.#held.delete(name);
    else next();
  }
}
