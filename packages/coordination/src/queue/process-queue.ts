/**
 * A worker of a queue: takes messages, keeps each invisible to others while its handler runs, deletes it when the handler has succeeded.
 *
 * A message is handled at least once: after a crash, or when its pop receipt was lost, it comes back. Handlers must be idempotent.
 *
 * Invariants:
 * - A handler's signal is aborted when its message may be visible to others: the pop receipt was refused, or no extension succeeded in time.
 * - A message is deleted only with the last receipt that the service gave, after its handler succeeded or the message was set aside.
 * - After an abort no message is taken; handlers get `drainMs` to end, then their signals are aborted. From then on no message is extended
 *   or deleted: another worker gets it.
 */
import type { DequeuedMessageItem, QueueClient } from "@azure/storage-queue";
import { requireInteger, requireNumber } from "../errors.ts";
import { isBeingDeleted, isMissing, isPermanent, refusalOf } from "../storage/classify.ts";
import { backoffMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, TimeoutError, unlessAborted, withTimeout } from "../time/clock.ts";

export interface QueueMessage {
  readonly id: string;
  readonly text: string;
  /** How often the message was taken, this time included. */
  readonly dequeueCount: number;
  readonly insertedOn: Date;
}

export type MessageHandler = (message: QueueMessage, signal: AbortSignal) => Promise<void>;

export interface QueueWorkerOptions {
  /** Messages that are handled at once. Default 1. */
  readonly concurrency?: number;
  /** Time for which a taken message is invisible to others, in seconds; extended while its handler runs. Default 30. */
  readonly visibilitySeconds?: number;
  /** A message that was taken more often is set aside. Default 5. */
  readonly dequeueCountMax?: number;
  /** Queue for messages that are set aside, created if it is missing. Undefined: they are told to `onPoison` and deleted. */
  readonly poisonQueue?: QueueClient;
  /** Called with each message that is set aside. Must not throw. */
  readonly onPoison?: (message: QueueMessage) => void;
  /** Longest delay between two looks at an empty queue, in milliseconds. Default 2,000. */
  readonly emptyDelayMaxMs?: number;
  /** Time that handlers have to end after an abort, in milliseconds. Default: `visibilitySeconds`. */
  readonly drainMs?: number;
  /** Called with each error that a handler threw or that is retried. Must not throw. */
  readonly onError?: (error: unknown, during: "receive" | "handle" | "extend" | "delete" | "poison", message?: QueueMessage) => void;
  readonly clock?: Clock;
}

/** Largest number of messages that one request takes. */
const batchMax = 32;
const emptyFirstMs = 100;

/**
 * Works on the queue until `signal` is aborted and the handlers have ended. A missing queue is created. Rejects only with an error of the
 * service that no repetition mends (bad name, no permission).
 */
export async function processQueue(
  queue: QueueClient,
  handler: MessageHandler,
  signal: AbortSignal,
  options: QueueWorkerOptions = {},
): Promise<void> {
  await new QueueWorker(queue, handler, options).run(signal);
}

class QueueWorker {
  readonly #queue: QueueClient;
  readonly #handler: MessageHandler;
  readonly #options: QueueWorkerOptions;
  readonly #clock: Clock;
  readonly #visibilitySeconds: number;
  readonly #concurrency: number;
  readonly #dequeueCountMax: number;
  readonly #emptyDelayMaxMs: number;
  readonly #drainMs: number;
  readonly #running = new Set<Promise<void>>();
  /** Ended when handlers must not go on after an abort. */
  readonly #drained = new AbortController();

  constructor(queue: QueueClient, handler: MessageHandler, options: QueueWorkerOptions) {
    const { concurrency = 1, visibilitySeconds = 30, dequeueCountMax = 5, emptyDelayMaxMs = 2_000 } = options;
    const drainMs = options.drainMs ?? visibilitySeconds * 1000;
    requireInteger("concurrency", concurrency, 1, 1_000);
    requireInteger("visibilitySeconds", visibilitySeconds, 2, 604_800);
    requireInteger("dequeueCountMax", dequeueCountMax, 1, 1_000_000);
    requireNumber("emptyDelayMaxMs", emptyDelayMaxMs, 1, 3_600_000);
    requireNumber("drainMs", drainMs, 0, 86_400_000);
    this.#queue = queue;
    this.#handler = handler;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#concurrency = concurrency;
    this.#visibilitySeconds = visibilitySeconds;
    this.#dequeueCountMax = dequeueCountMax;
    this.#emptyDelayMaxMs = emptyDelayMaxMs;
    this.#drainMs = drainMs;
  }

  async run(signal: AbortSignal): Promise<void> {
    let fatal: unknown;
    let idle = 0;
    while (!signal.aborted) {
      if (this.#running.size >= this.#concurrency) {
        // Ended by an abort, too: the time of the drain begins then, and not when a handler happens to end.
        await unlessAborted(Promise.race(this.#running), signal).catch(() => {});
        continue;
      }
      try {
        const messages = await this.#receive(signal);
        idle = messages.length > 0 ? 0 : idle + 1;
        for (const { message, sentMs } of messages) this.#start(message, sentMs);
      } catch (error) {
        if (signal.aborted) break;
        if (isPermanent(error)) {
          fatal = error;
          break;
        }
        this.#options.onError?.(error, "receive");
        idle++;
      }
      if (idle > 0) await sleep(this.#clock, this.#idleMs(idle), signal).catch(() => {});
    }
    await this.#drain();
    if (fatal !== undefined) throw fatal;
  }

  #idleMs(idle: number): number {
    const bound = Math.min(this.#emptyDelayMaxMs, emptyFirstMs * 2 ** Math.min(idle - 1, 20));
    return bound / 2 + backoffMs(this.#clock, { firstMs: bound / 2, maxMs: bound / 2 }, 0);
  }

  async #receive(signal: AbortSignal): Promise<{ message: DequeuedMessageItem; sentMs: number }[]> {
    const sentMs = this.#clock.monotonicMs();
    const numberOfMessages = Math.min(batchMax, this.#concurrency - this.#running.size);
    try {
      // An abort cuts the request off: messages of an answer that was on its way come back when their time is over, taken once more.
      const timeoutMs = this.#visibilitySeconds * 1000;
      const { receivedMessageItems } = await withTimeout(this.#clock, timeoutMs, signal, (each) =>
        this.#queue.receiveMessages({ numberOfMessages, visibilityTimeout: this.#visibilitySeconds, abortSignal: each }),
      );
      return receivedMessageItems.map((message) => ({ message, sentMs }));
    } catch (error) {
      if (!isMissing(error) || isBeingDeleted(error)) throw error;
      await this.#queue.createIfNotExists({ abortSignal: signal });
      return [];
    }
  }

  #start(item: DequeuedMessageItem, sentMs: number): void {
    const work = this.#handle(item, sentMs).finally(() => this.#running.delete(work));
    this.#running.add(work);
  }

  async #handle(item: DequeuedMessageItem, sentMs: number): Promise<void> {
    const message: QueueMessage = {
      id: item.messageId,
      text: item.messageText,
      dequeueCount: item.dequeueCount,
      insertedOn: item.insertedOn,
    };
    const lost = new AbortController();
    const ended = new AbortController();
    const receipt = { value: item.popReceipt };
    const extending = this.#extend(message, receipt, sentMs, ended.signal, lost);
    let done = false;
    try {
      if (item.dequeueCount > this.#dequeueCountMax) await this.#setAside(item, message);
      else await this.#handler(message, AbortSignal.any([lost.signal, this.#drained.signal]));
      done = true;
    } catch (error) {
      // The message comes back when its time is over: a delay that a failing message needs anyway.
      this.#options.onError?.(error, item.dequeueCount > this.#dequeueCountMax ? "poison" : "handle", message);
    }
    ended.abort();
    await extending;
    // A handler that returns because its signal was aborted may not have finished: its message comes back.
    if (done && !lost.signal.aborted && !this.#drained.signal.aborted) await this.#delete(message, receipt.value);
  }

  async #setAside(item: DequeuedMessageItem, message: QueueMessage): Promise<void> {
    this.#options.onPoison?.(message);
    const { poisonQueue } = this.#options;
    if (poisonQueue === undefined) return;
    await withTimeout(this.#clock, this.#visibilitySeconds * 1000, this.#drained.signal, async (abortSignal) => {
      const send = () => poisonQueue.sendMessage(item.messageText, { messageTimeToLive: -1, abortSignal });
      try {
        await send();
      } catch (error) {
        if (!isMissing(error)) throw error;
        await poisonQueue.createIfNotExists({ abortSignal });
        await send();
      }
    });
  }

  /**
   * Extends the message's invisibility at each third of it, until `ended` or the end of the drain. Aborts `lost` when others may see the
   * message.
   */
  async #extend(
    message: QueueMessage,
    receipt: { value: string },
    sentMs: number,
    ended: AbortSignal,
    lost: AbortController,
  ): Promise<void> {
    const durationMs = this.#visibilitySeconds * 1000;
    let endsMs = sentMs + durationMs;
    let atMs = sentMs + durationMs / 3;
    while (!ended.aborted && !this.#drained.signal.aborted) {
      const nowMs = this.#clock.monotonicMs();
      if (nowMs >= endsMs) {
        lost.abort(new Error(`message ${message.id} may be visible to others: its time was not extended`));
        return;
      }
      if (nowMs < atMs) {
        await sleep(this.#clock, Math.min(atMs, endsMs) - nowMs, ended).catch(() => {});
        continue;
      }
      try {
        // Not cut off when the handler ends: the receipt that it brings is needed for the deletion.
        const { popReceipt } = await withTimeout(this.#clock, Math.min(durationMs / 3, endsMs - nowMs), undefined, (each) =>
          this.#queue.updateMessage(message.id, receipt.value, undefined, this.#visibilitySeconds, { abortSignal: each }),
        );
        if (popReceipt !== undefined) receipt.value = popReceipt;
        endsMs = nowMs + durationMs;
        atMs = nowMs + durationMs / 3;
      } catch (error) {
        if (isReceiptLost(error)) {
          lost.abort(new Error(`message ${message.id} was taken by somebody else`, { cause: error }));
          return;
        }
        this.#options.onError?.(error, "extend", message);
        atMs = this.#clock.monotonicMs() + Math.min(1_000, durationMs / 10);
      }
    }
  }

  async #delete(message: QueueMessage, popReceipt: string): Promise<void> {
    for (let attempt = 0; attempt < deleteAttemptsMax; attempt++) {
      try {
        await withTimeout(this.#clock, this.#visibilitySeconds * 1000, undefined, (each) =>
          this.#queue.deleteMessage(message.id, popReceipt, { abortSignal: each }),
        );
        return;
      } catch (error) {
        // Gone: by an earlier attempt whose answer was lost, or taken by others. Either way there is nothing left to delete.
        if (isReceiptLost(error)) return;
        this.#options.onError?.(error, "delete", message);
        if (isPermanent(error)) return;
        await sleep(this.#clock, backoffMs(this.#clock, { firstMs: 200, maxMs: 2_000 }, attempt));
      }
    }
  }

  async #drain(): Promise<void> {
    if (this.#running.size === 0) return;
    await this.#endedWithin(this.#drainMs);
    this.#drained.abort(new Error("the worker is stopping"));
    await this.#endedWithin(afterDrainMs);
  }

  /** Waits for the handlers, for this time at most. */
  async #endedWithin(timeoutMs: number): Promise<void> {
    try {
      await withTimeout(this.#clock, timeoutMs, undefined, () => Promise.all(this.#running));
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
    }
  }
}

/** Time that handlers have to end after their signals were aborted, in milliseconds. One that ignores its signal is left behind. */
const afterDrainMs = 5_000;

/** Attempts of a deletion. After them the message comes back and is handled again. */
const deleteAttemptsMax = 5;

/** True if the pop receipt is not the message's any more. */
function isReceiptLost(error: unknown): boolean {
  const { status, code } = refusalOf(error);
  return status === 404 || (status === 400 && (code === "PopReceiptMismatch" || code === "InvalidQueryParameterValue"));
}
