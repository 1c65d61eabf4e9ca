/**
 * The agenda of a simulation: a binary heap ordered by (time, sequence), so that events of one moment run in the order in which they
 * were made. A cancelled event loses its work and stays until it is met, or until the cancelled ones are the larger half.
 */
import { assert } from "@stamp/base";
import type { Incarnation } from "./process.ts";

export interface SimEvent {
  timeUs: number;
  sequence: number;
  /**
   * Owner of the event: it is dropped when that incarnation is dead, put off while it is paused. Undefined: the world's
   * own.
   */
  readonly owner: Incarnation | undefined;
  readonly kind: string;
  readonly detail: string;
  /** Work of the event; undefined once it ran or was cancelled. */
  work: (() => void) | undefined;
}

export class EventQueue {
  #heap: SimEvent[] = [];
  #sequence = 0;
  #cancelled = 0;

  get size(): number {
    return this.#heap.length - this.#cancelled;
  }

  add(timeUs: number, owner: Incarnation | undefined, kind: string, detail: string, work: () => void): SimEvent {
    const event: SimEvent = { timeUs, sequence: this.#sequence++, owner, kind, detail, work };
    this.#push(event);
    return event;
  }

  /** Puts an event that was taken out back, behind all others of that moment. */
  again(event: SimEvent, timeUs: number): void {
    event.timeUs = timeUs;
    event.sequence = this.#sequence++;
    this.#push(event);
  }

  cancel(event: SimEvent): void {
    if (event.work === undefined) return;
    event.work = undefined;
    this.#cancelled += 1;
    if (this.#cancelled > 1024 && this.#cancelled * 2 > this.#heap.length) this.#sweep();
  }

  /** Returns the next event that was not cancelled, taken out. */
  take(): SimEvent | undefined {
    const heap = this.#heap;
    while (heap.length > 0) {
      const first = heap[0] as SimEvent;
      const last = heap.pop() as SimEvent;
      if (heap.length > 0) this.#sink(0, last);
      if (first.work !== undefined) return first;
      this.#cancelled -= 1;
    }
    assert(this.#cancelled <= 0, "cancelled events were counted wrongly");
    this.#cancelled = 0;
    return undefined;
  }

  #push(event: SimEvent): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as SimEvent;
      if (before(parent, event)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #sink(from: number, event: SimEvent): void {
    const heap = this.#heap;
    const length = heap.length;
    let at = from;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= length) break;
      let child = heap[below] as SimEvent;
      if (below + 1 < length) {
        const right = heap[below + 1] as SimEvent;
        if (before(right, child)) {
          child = right;
          below += 1;
        }
      }
      if (before(event, child)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = event;
  }

  #sweep(): void {
    this.#heap = this.#heap.filter((event) => event.work !== undefined);
    this.#cancelled = 0;
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#sink(at, this.#heap[at] as SimEvent);
  }
}

const before = (a: SimEvent, b: SimEvent): boolean => a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.sequence < b.sequence);
