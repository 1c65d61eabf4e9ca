/**
 * What is promised of messages, judged as the answers come. Times are those that the service tells, cut to seconds; that is all a client
 * can know of the queue's clock.
 *
 *   once        every hand-out of a message has its own count: two with the same count are one message in two hands
 *   hidden      the next hand-out acts no earlier than when the one before it (or an update of it) said that it is visible again
 *   deleted     after the answer to a delete nobody who asks later sees the message
 *   refused     who is told that a message is not found, or his receipt old, is told what stays so: nobody who asks later sees the message,
 *               or is handed it out next to that receipt
 *   fenced      a receipt that is older than one somebody got before he asked deletes and updates nothing
 *   expired     no hand-out acts after the message's end
 *   whole       a text is one that was put into this queue, by the put or the last update
 *   nothing lost  who was told that a message is in the queue finds it there in the end, unless it was deleted or expired
 */
import { BrokenPromise } from "./stage.ts";

export interface HandOut {
  readonly messageId: string;
  readonly text: string;
  readonly dequeueCount: number;
  /** Whole seconds since 1970, as told. */
  /** Not told by a peek. */
  readonly visibleS: number;
  readonly insertedS: number;
  readonly expiresS: number;
}

interface Known {
  readonly expiresS: number;
  /** It was put to live for less than an hour. */
  readonly brief: boolean;
  /** Texts that it may have. */
  readonly texts: Set<string>;
  /** By count: when it is visible again, as told last; undefined while an update of it is not answered, or was not. */
  readonly visibleS: Map<number, number | undefined>;
  /** The highest count that somebody was told, and when. */
  count: number;
  countToldAt: number;
  /** When a delete of it was answered. */
  deletedAt: number | undefined;
  /** When somebody was told that it is not there (any more). */
  notFoundAt: number | undefined;
  /** By count: when its receipt was first said to be old; not of hand-outs that were updated. */
  readonly oldAt: Map<number, number>;
  /** Hand-outs of which an update was called. */
  readonly updatedCounts: Set<number>;
  /** Deletes that are not answered, or never were: it may be gone at any time. */
  deletesOpen: number;
}

const broken = (what: string): BrokenPromise => new BrokenPromise(what);
/** Times are cut to seconds. */
const cutS = 1;

export class QueueJudge {
  readonly #name: string;
  readonly #messages = new Map<string, Known>();
  /** Texts whose put was not answered. */
  readonly #unanswered = new Set<string>();
  /** Those of them that were seen. */
  readonly #seenEarly = new Set<string>();

  constructor(name: string) {
    this.#name = name;
  }

  putUnanswered(text: string): void {
    this.#unanswered.add(text);
  }

  put(message: Omit<HandOut, "dequeueCount">): void {
    const { messageId, text, visibleS } = message;
    const seen = this.#messages.get(messageId);
    // Others may have seen it before its put was answered.
    if (seen?.texts.has(text) && this.#seenEarly.delete(text)) return;
    if (seen) throw broken(`${this.#name}: two messages are called ${messageId}`);
    this.#unanswered.delete(text);
    this.#add(message).visibleS.set(0, visibleS);
  }

  /** `calledAt`, `returnedAt`: of the request, by the simulation's clock. */
  taken(handOut: HandOut, timeoutS: number, calledAt: number, returnedAt: number): void {
    const { messageId, dequeueCount, visibleS } = handOut;
    const known = this.#seen(handOut, calledAt);
    const actedS = visibleS - timeoutS;
    const what = `${this.#name}: message ${messageId}, hand-out ${dequeueCount}`;
    if (known.visibleS.has(dequeueCount)) throw broken(`${what}: it was handed out twice`);
    if (actedS > handOut.expiresS + cutS) throw broken(`${what}: it had expired at ${handOut.expiresS}, and it was ${actedS}`);
    const before = known.visibleS.get(dequeueCount - 1);
    if (before !== undefined && actedS + cutS < before) throw broken(`${what}: hidden until ${before}, handed out at ${actedS}`);
    if ((known.oldAt.get(dequeueCount - 1) ?? Number.POSITIVE_INFINITY) < calledAt && !known.updatedCounts.has(dequeueCount - 1)) {
      throw broken(`${what}: it is the next one after a receipt that was said to be old before`);
    }
    known.visibleS.set(dequeueCount, visibleS);
    if (dequeueCount > known.count) {
      known.count = dequeueCount;
      known.countToldAt = returnedAt;
    }
  }

  peeked(handOut: HandOut, calledAt: number): void {
    this.#seen(handOut, calledAt);
  }

  deleteCalled(messageId: string): void {
    this.#of(messageId).deletesOpen++;
  }

  /** With the receipt of this count. */
  deleted(messageId: string, count: number, calledAt: number, returnedAt: number): void {
    const known = this.#fenced(messageId, count, calledAt, "deleted");
    known.deletedAt = Math.min(known.deletedAt ?? Number.POSITIVE_INFINITY, returnedAt);
  }

  deleteRefused(messageId: string, count: number, code: string, returnedAt: number): void {
    this.#of(messageId).deletesOpen--;
    this.#refused(messageId, count, code, returnedAt);
  }

  updateCalled(messageId: string, count: number, text: string): void {
    const known = this.#of(messageId);
    known.texts.add(text);
    known.visibleS.set(count, undefined);
    known.updatedCounts.add(count);
  }

  updateRefused(messageId: string, count: number, code: string, returnedAt: number): void {
    this.#refused(messageId, count, code, returnedAt);
  }

  updated(messageId: string, count: number, calledAt: number): void {
    this.#fenced(messageId, count, calledAt, "updated");
  }

  /** In the end, when everything that is in the queue was taken: what is missing. When a short life ends is for the queue's clock to say. */
  missing(): string[] {
    const gone = ({ deletedAt, deletesOpen, brief }: Known): boolean => deletedAt !== undefined || deletesOpen > 0 || brief;
    return [...this.#messages].filter(([, known]) => !gone(known)).map(([messageId]) => messageId);
  }

  #refused(messageId: string, count: number, code: string, returnedAt: number): void {
    const known = this.#of(messageId);
    if (code === "MessageNotFound") known.notFoundAt = Math.min(known.notFoundAt ?? Number.POSITIVE_INFINITY, returnedAt);
    if (code === "PopReceiptMismatch") known.oldAt.set(count, Math.min(known.oldAt.get(count) ?? Number.POSITIVE_INFINITY, returnedAt));
  }

  #fenced(messageId: string, count: number, calledAt: number, done: string): Known {
    const known = this.#of(messageId);
    if (known.count > count && known.countToldAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} was ${done} by hand-out ${count} after hand-out ${known.count}`);
    }
    if (known.deletedAt !== undefined && known.deletedAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} was ${done} after its deletion was answered`);
    }
    if (known.notFoundAt !== undefined && known.notFoundAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} was ${done} after it was said not to be there`);
    }
    return known;
  }

  #seen(handOut: HandOut, calledAt: number): Known {
    const { messageId, text, expiresS } = handOut;
    let known = this.#messages.get(messageId);
    if (!known) {
      this.#seenEarly.add(text);
      if (!this.#unanswered.delete(text)) throw broken(`${this.#name}: message ${messageId} says ${text}, which nobody put`);
      known = this.#add(handOut);
    }
    if (known.expiresS !== expiresS)
      throw broken(`${this.#name}: message ${messageId} expires at ${expiresS}, no longer at ${known.expiresS}`);
    if (!known.texts.has(text)) throw broken(`${this.#name}: message ${messageId} says ${text}`);
    if (known.deletedAt !== undefined && known.deletedAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} is seen after its deletion was answered`);
    }
    if (known.notFoundAt !== undefined && known.notFoundAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} is seen after it was said not to be there`);
    }
    return known;
  }

  #of(messageId: string): Known {
    const known = this.#messages.get(messageId);
    if (!known) throw broken(`${this.#name}: nobody knows message ${messageId}`);
    return known;
  }

  #add({ messageId, text, insertedS, expiresS }: Omit<HandOut, "dequeueCount">): Known {
    const known: Known = {
      expiresS,
      brief: expiresS - insertedS < 3_600,
      texts: new Set([text]),
      visibleS: new Map(),
      count: 0,
      countToldAt: 0,
      deletedAt: undefined,
      notFoundAt: undefined,
      oldAt: new Map(),
      updatedCounts: new Set(),
      deletesOpen: 0,
    };
    this.#messages.set(messageId, known);
    return known;
  }
}
