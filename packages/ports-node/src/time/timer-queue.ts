/**
 * Timers of one clock, in the order of their due times, behind one timer of Node: a heap.
 *
 * setTimeout counts from when the event loop looked at the time last, so it may be early by about a millisecond. With a timer of Node for each
 * timer here, nearly every one would wake the process twice. Here longer waits get a millisecond more, and no order is lost.
 *
 * Invariants:
 *   - A timer never runs early, and never before one that is due earlier. Timers of one due time run in the order in which they were made.
 *   - Microtasks and ticks of one timer are over before the next one runs, as between timers of Node.
 *   - A turn runs what was due when it began. What is made meanwhile waits for another turn, also without a delay: sockets, files and immediates
 *     come between, or a loop that gives way by a timer would give way to nobody.
 *   - The process is not kept alive.
 */
import type { Timer } from "@stamp/ports";

/** The longest delay that setTimeout takes, in milliseconds. Longer ones are armed again. */
const delayMaxMs = 2 ** 31 - 1;
/** Waits from this length on may end a millisecond later, in milliseconds. */
const lateFromMs = 10;

interface Queued {
  readonly dueMs: number;
  /** Number of timers that were made before. */
  readonly order: number;
  readonly run: () => void;
  /** Index in the heap; -1: it has run or is cancelled. */
  at: number;
}

export class TimerQueue {
  readonly #heap: Queued[] = [];
  #made = 0;
  #handle: NodeJS.Timeout | undefined;
  /** Time at which Node's timer is due; infinite without one. By `performance.now()`. */
  #armedMs = Number.POSITIVE_INFINITY;
  /** Time at which the turn began whose timers run now. */
  #turnMs = 0;
  /** True while due timers run. */
  #running = false;

  /** Adds a timer; `dueMs`: its time by `performance.now()`. */
  add(dueMs: number, run: () => void): Timer {
    const queued: Queued = { dueMs, order: this.#made++, run, at: -1 };
    this.#rise(queued, this.#heap.length);
    if (!this.#running && dueMs < this.#armedMs) this.#arm(dueMs);
    return { cancel: () => this.#remove(queued) };
  }

  #remove(queued: Queued): void {
    const { at } = queued;
    if (at < 0) return;
    queued.at = -1;
    const last = this.#heap.pop() as Queued;
    if (last !== queued) {
      this.#rise(last, at);
      this.#sink(last, last.at);
    } else if (this.#heap.length === 0) this.#disarm();
  }

  #arm(dueMs: number): void {
    const leftMs = Math.max(0, dueMs - performance.now());
    this.#disarm();
    this.#armedMs = dueMs;
    this.#handle = setTimeout(this.#fire, Math.min(Math.ceil(leftMs) + (leftMs >= lateFromMs ? 1 : 0), delayMaxMs));
    this.#handle.unref();
  }

  #disarm(): void {
    // Node keeps the empty list of timers without a reference, and wakes for it.
    this.#handle?.ref();
    clearTimeout(this.#handle);
    this.#handle = undefined;
    this.#armedMs = Number.POSITIVE_INFINITY;
  }

  readonly #fire = (): void => {
    this.#handle = undefined;
    this.#armedMs = Number.POSITIVE_INFINITY;
    this.#running = true;
    this.#turnMs = performance.now();
    this.#next();
  };

  readonly #next = (): void => {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs > this.#turnMs) {
      this.#running = false;
      if (first !== undefined) this.#arm(first.dueMs);
      return;
    }
    this.#remove(first);
    // The next one runs behind the microtasks and ticks of this one, also if this one throws.
    queueMicrotask(() => process.nextTick(this.#next));
    first.run();
  };

  /** Puts a timer into the free place `at`, or above. */
  #rise(queued: Queued, at: number): void {
    const heap = this.#heap;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as Queued;
      if (!isBefore(queued, parent)) break;
      heap[at] = parent;
      parent.at = at;
      at = above;
    }
    heap[at] = queued;
    queued.at = at;
  }

  #sink(queued: Queued, at: number): void {
    const heap = this.#heap;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Queued, heap[below] as Queued)) below += 1;
      const child = heap[below] as Queued;
      if (!isBefore(child, queued)) break;
      heap[at] = child;
      child.at = at;
      at = below;
    }
    heap[at] = queued;
    queued.at = at;
  }
}

const isBefore = (a: Queued, b: Queued): boolean => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
