/**
 * Judges the promises about messages as the answers come. Times are those that the service tells, cut to seconds; that is all a client
 * can know of the queue's clock.
 *
 *   once        every hand-out of a message has its own count: two with the same count are one message in two hands
 *   hidden      the next hand-out acts no earlier than when the one before it (or an update of it) said that it is visible again
 *   deleted     after the answer to a delete nobody who asks later sees the message
 *   refused     a receipt that found no message finds none later: the message is gone, or was handed out after that receipt. Nobody who asks
 *               later sees the message as it was under that receipt, gets the next hand-out, or acts by that receipt
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
  /** Time until the message is visible; not told by a peek. */
  readonly visibleS: number;
  readonly insertedS: number;
  readonly expiresS: number;
}

interface Known {
  readonly expiresS: number;
  /** True if the message's time to live is less than an hour. */
  readonly brief: boolean;
  /** Texts that the message may have. */
  readonly texts: Set<string>;
  /** Keyed by count: when it is visible again, as told last; undefined while an update of it is not answered, or was not. */
  readonly visibleS: Map<number, number | undefined>;
  /** Highest dequeue count that a client was told, and the time of it. */
  count: number;
  countToldAt: number;
  /** Time at which a deletion of the message was answered; undefined: none was. */
  deletedAt: number | undefined;
  /** Keyed by count: time at which the last receipt given for the hand-out first found no message. */
  readonly notFoundAt: Map<number, number>;
  /** Keyed by count: number of updates that are not answered, or never were. Such an update may have given a receipt that nobody was told. */
  readonly updatesOpen: Map<number, number>;
  /** Deletes that are not answered, or never were: it may be gone at any time. */
  deletesOpen: number;
}

const broken = (what: string): BrokenPromise => new BrokenPromise(what);
/** Times are cut to seconds. */
const cutS = 1;

/**
 * True if a message that was handed out `count` times can't be there for a request called at `calledAt`. The client that is refused holds the
 * last receipt of the hand-out, unless an update of it is open.
 */
const notFound = ({ notFoundAt, updatesOpen }: Known, count: number, calledAt: number): boolean =>
  [...notFoundAt].some(([refused, at]) => at < calledAt && (refused > count || (refused === count && !updatesOpen.get(refused))));

export class QueueJudge {
  readonly #name: string;
  readonly #messages = new Map<string, Known>();
  /** Texts whose put was not answered. */
  readonly #unanswered = new Set<string>();
  /** Texts of unanswered puts that were seen in messages. */
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
    if (notFound(known, dequeueCount - 1, calledAt)) throw broken(`${what}: it is the next one after a receipt that found no message`);
    known.visibleS.set(dequeueCount, visibleS);
    if (dequeueCount > known.count) {
      known.count = dequeueCount;
      known.countToldAt = returnedAt;
    }
  }

  peeked(handOut: HandOut, calledAt: number): void {
    const known = this.#seen(handOut, calledAt);
    if (notFound(known, handOut.dequeueCount, calledAt)) {
      throw broken(`${this.#name}: message ${handOut.messageId} is seen after the receipt of its last hand-out found no message`);
    }
  }

  deleteCalled(messageId: string): void {
    this.#of(messageId).deletesOpen++;
  }

  /** Notes the deletion of a message with the receipt of this dequeue count. */
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
    known.updatesOpen.set(count, (known.updatesOpen.get(count) ?? 0) + 1);
  }

  updateRefused(messageId: string, count: number, code: string, returnedAt: number): void {
    this.#updateAnswered(messageId, count);
    this.#refused(messageId, count, code, returnedAt);
  }

  updated(messageId: string, count: number, calledAt: number): void {
    this.#updateAnswered(messageId, count);
    this.#fenced(messageId, count, calledAt, "updated");
  }

  /** Returns what is missing after all messages were taken. The queue's clock decides when a short life ends. */
  missing(): string[] {
    const gone = ({ deletedAt, deletesOpen, brief }: Known): boolean => deletedAt !== undefined || deletesOpen > 0 || brief;
    return [...this.#messages].filter(([, known]) => !gone(known)).map(([messageId]) => messageId);
  }

  #refused(messageId: string, count: number, code: string, returnedAt: number): void {
    const { notFoundAt } = this.#of(messageId);
    if (code === "MessageNotFound") notFoundAt.set(count, Math.min(notFoundAt.get(count) ?? Number.POSITIVE_INFINITY, returnedAt));
  }

  #updateAnswered(messageId: string, count: number): void {
    const { updatesOpen } = this.#of(messageId);
    updatesOpen.set(count, (updatesOpen.get(count) ?? 1) - 1);
  }

  #fenced(messageId: string, count: number, calledAt: number, done: string): Known {
    const known = this.#of(messageId);
    if (known.count > count && known.countToldAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} was ${done} by hand-out ${count} after hand-out ${known.count}`);
    }
    if (known.deletedAt !== undefined && known.deletedAt < calledAt) {
      throw broken(`${this.#name}: message ${messageId} was ${done} after its deletion was answered`);
    }
    if (notFound(known, count, calledAt)) {
      throw broken(`${this.#name}: message ${messageId} was ${done} by hand-out ${count} after its receipt found no message`);
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
      notFoundAt: new Map(),
      updatesOpen: new Map(),
      deletesOpen: 0,
    };
    this.#messages.set(messageId, known);
    return known;
  }
}
