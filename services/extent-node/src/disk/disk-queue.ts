/**
 * Every operation on this node's disk that others could wait for goes through here; the order is decided by `IoScheduler`. One queue for
 * each disk: a journal on a disk of its own has its own.
 */
import { FailureError } from "@stamp/base";
import { type IoClass, type IoEffect, type IoLimits, IoScheduler } from "@stamp/extent";
import type { Timer, World } from "@stamp/ports";

/** Class and deadline of an operation (monotonic; absent: none). */
export interface Io {
  readonly class: IoClass;
  readonly deadlineMs?: number;
  /** Aborted: nobody wants it any more, and it is left out when its turn comes. */
  readonly caller?: Caller;
}

/** Caller of an operation: a call or its abort signal. */
export type Caller = Pick<AbortSignal, "aborted">;

export const appendIo: Io = { class: "append" };
export const repairIo: Io = { class: "repair" };
export const scrubIo: Io = { class: "scrub" };

interface Item {
  readonly work: () => Promise<unknown>;
  readonly caller: Caller | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class DiskQueue {
  readonly #world: World;
  readonly #scheduler: IoScheduler<Item>;
  #timer: { readonly atMs: number; readonly timer: Timer } | undefined;
  /** Operations refused since the start, because they would have ended too late or too many waited. */
  refused = 0;
  /** Operations of the journal, of appends and of clients' reads since the start. */
  clientOperations = 0;
  /** Operations left out since the start, because their caller had gone at their turn. */
  cancelled = 0;

  constructor(world: World, limits?: IoLimits) {
    this.#world = world;
    this.#scheduler = new IoScheduler(world.rules, limits);
  }

  get facts(): Readonly<Record<string, unknown>> {
    const { inHand, queued, expectedMs, figures } = this.#scheduler;
    const nowMs = this.#world.clock.monotonicMs();
    const { classes, heldBack, atStart } = figures;
    return {
      inHand,
      queued,
      expectedMs: tenths(expectedMs),
      oldestInHandMs: tenths(this.#scheduler.oldestInHandMs(nowMs)),
      oldestQueuedMs: tenths(this.#scheduler.oldestQueuedMs(nowMs)),
      refused: this.refused,
      cancelled: this.cancelled,
      heldBack: { ...heldBack },
      atStart: { expectedMsMax: tenths(atStart.expectedMsMax), oldestMsMax: tenths(atStart.oldestMsMax) },
      ...Object.fromEntries(
        Object.entries(classes).map(([name, { started, waitedMs, waitedMsMax }]) => [
          name,
          { started, waitedMs: tenths(waitedMs), waitedMsMax: tenths(waitedMsMax) },
        ]),
      ),
    };
  }

  /** Does `work` (one operation, of about `bytes`) when its turn comes. Throws FailureError when it would be too late. */
  run<T>(io: Io, bytes: number, work: () => Promise<T>): Promise<T> {
    if (io.class !== "repair" && io.class !== "scrub") this.clientOperations += 1;
    return new Promise<T>((resolve, reject) => {
      const item: Item = { work, caller: io.caller, resolve: resolve as (value: unknown) => void, reject };
      const request = { class: io.class, bytes, deadlineMs: io.deadlineMs ?? Number.POSITIVE_INFINITY, item };
      this.#take(this.#scheduler.submit(request, this.#world.clock.monotonicMs()));
    });
  }

  #take(effects: readonly IoEffect<Item>[]): void {
    for (const effect of effects) {
      const { operation } = effect;
      const { item } = operation;
      if (effect.kind === "refuse") {
        this.refused += 1;
        item.reject(tooLate(effect.why));
        continue;
      }
      if (item.caller?.aborted) {
        this.cancelled += 1;
        item.reject(notWanted());
        this.#take(this.#scheduler.abandoned(operation, this.#world.clock.monotonicMs()));
        continue;
      }
      const done = (): void => this.#take(this.#scheduler.finished(operation, this.#world.clock.monotonicMs()));
      item.work().then(
        (value) => {
          item.resolve(value);
          done();
        },
        (error: unknown) => {
          item.reject(error);
          done();
        },
      );
    }
    this.#watch();
  }

  /** Ends waiting operations at their deadline, also if the disk does not answer at all. */
  #watch(): void {
    if (this.#scheduler.queued === 0) return;
    const atMs = this.#scheduler.nextDeadlineMs;
    if (atMs === Number.POSITIVE_INFINITY || (this.#timer !== undefined && this.#timer.atMs <= atMs)) return;
    this.#timer?.timer.cancel();
    const { clock } = this.#world;
    const timer = clock.after(Math.max(1, atMs - clock.monotonicMs()), () => {
      this.#timer = undefined;
      this.#take(this.#scheduler.advance(clock.monotonicMs()));
    });
    this.#timer = { atMs, timer };
  }
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;

const notWanted = (): FailureError =>
  new FailureError({ code: "cancelled", reason: "cancelled", message: "the caller went away", applied: "no" });

function tooLate(why: "late" | "full"): FailureError {
  const message = why === "late" ? "the disk can't do it before the deadline" : "too much waits for the disk";
  return new FailureError({ code: "resourceExhausted", reason: "overloaded", message, applied: "no" });
}
