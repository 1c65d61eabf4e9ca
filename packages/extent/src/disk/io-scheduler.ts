/**
 * Chooses the next operation of one disk. Pure: operations and the time in, what to start and what to refuse out.
 *
 *   journal   what appends wait for: the journal's own write, one at a time, and large appends on their way into extent files. Goes at
 *             once, but counts as work in hand
 *   append    extent files, their headers           ┐ by age
 *   read      clients wait for it                    ┘
 *   repair    copies, checksums of whole extents    one in hand, when no append or read waits
 *   scrub                                            one in hand, when nothing else waits
 *
 * The paper's rule against starvation (4.6.3): nothing new is started while the work in hand is expected to take over `expectedMsMax`, or
 * while an operation in hand has taken over `overdueMs`. A disk or its controller that favours some operations over others then comes to
 * those it neglected. Whatever has waited over `overdueMs` here goes before what came later, of any class, so that yielding never
 * becomes starving. With nothing in hand one operation always goes, whatever is expected of it.
 *
 * What an operation will take is learned: busy time of the disk for each unit of work, a unit being one operation and each 256 KiB.
 */
import { assert, type Rules } from "@stamp/base";

export type IoClass = "journal" | "append" | "read" | "repair" | "scrub";

export interface IoLimits {
  /** No new operation while more than this is expected to be in hand. */
  readonly expectedMsMax: number;
  /** No new operation while one in hand takes longer than this; one that waited longer goes next. */
  readonly overdueMs: number;
  readonly inHandMax: number;
  /** Queued operations of each class. */
  readonly queuedMax: number;
}

/** Node does file work on four threads: one stays for the journal. More in hand would only wait where nobody decides the order. */
export const defaultIoLimits: IoLimits = { expectedMsMax: 100, overdueMs: 200, inHandMax: 3, queuedMax: 4_096 };

export interface IoRequest<T> {
  readonly class: IoClass;
  readonly bytes: number;
  /** Time after which nobody waits for the operation. */
  readonly deadlineMs: number;
  readonly item: T;
}

export interface IoOperation<T> extends IoRequest<T> {
  readonly units: number;
  readonly arrivedMs: number;
  startedMs: number;
}

export type IoEffect<T> =
  | { readonly kind: "start"; readonly operation: IoOperation<T> }
  /** `late`: it would be, or is, later than its deadline. `full`: too many of its class wait. */
  | { readonly kind: "refuse"; readonly operation: IoOperation<T>; readonly why: "late" | "full" };

/** Why nothing more is given to the disk: too much is expected to be in hand, one takes too long, or enough are in hand. */
export type IoBound = "expected" | "overdue" | "hands";

/** Figures since the start, for people. */
export interface IoFigures {
  /** Numbers of operations by class: those given to the disk, and their waits in sum and at most. */
  readonly classes: Readonly<Record<IoClass, { readonly started: number; readonly waitedMs: number; readonly waitedMsMax: number }>>;
  /** Numbers of operations that had to wait when they came, by the bound that held them back. */
  readonly heldBack: Readonly<Record<IoBound, number>>;
  /** Highest when an operation, not the journal's, was given to a disk that had others in hand: below the limits unless a rule is off. */
  readonly atStart: { readonly expectedMsMax: number; readonly oldestMsMax: number };
}

type Queued = Exclude<IoClass, "journal">;
const foreground: readonly Queued[] = ["append", "read"];
const background: readonly Queued[] = ["repair", "scrub"];
const everyQueue: readonly Queued[] = [...foreground, ...background];
const isForeground = (name: Queued): boolean => name === "append" || name === "read";
const unitBytes = 256 * 1024;
const learnShare = 0.1;

export class IoScheduler<T> {
  readonly #rules: Rules;
  readonly #limits: IoLimits;
  readonly #queues: Readonly<Record<Queued, IoOperation<T>[]>> = { append: [], read: [], repair: [], scrub: [] };
  /** Operations in hand, in the order of their start. */
  readonly #inHand: Set<IoOperation<T>> = new Set();
  #unitsInHand = 0;
  #queuedUnits = 0;
  #unitMs = 0.2;
  #busySinceMs = 0;
  readonly #classes = { journal: noFigures(), append: noFigures(), read: noFigures(), repair: noFigures(), scrub: noFigures() };
  readonly #heldBack: Record<IoBound, number> = { expected: 0, overdue: 0, hands: 0 };
  readonly #atStart = { expectedMsMax: 0, oldestMsMax: 0 };

  constructor(rules: Rules, limits: IoLimits = defaultIoLimits) {
    assert(limits.inHandMax >= 1 && limits.queuedMax >= 1, "I/O limits");
    this.#rules = rules;
    this.#limits = limits;
  }

  get inHand(): number {
    return this.#inHand.size;
  }
  get queued(): number {
    return this.#queues.append.length + this.#queues.read.length + this.#queues.repair.length + this.#queues.scrub.length;
  }
  /** Time that the work in hand is expected to take, in milliseconds. */
  get expectedMs(): number {
    return this.#unitsInHand * this.#unitMs;
  }

  get figures(): IoFigures {
    return { classes: this.#classes, heldBack: this.#heldBack, atStart: this.#atStart };
  }

  /** Returns how long the operation that is longest in hand has taken by now; 0 when there is none. */
  oldestInHandMs(nowMs: number): number {
    const oldest = this.#inHand.values().next().value;
    return oldest === undefined ? 0 : nowMs - oldest.startedMs;
  }

  /** Returns how long the operation that waits longest has waited by now; 0 when there is none. */
  oldestQueuedMs(nowMs: number): number {
    return Object.values(this.#queues).reduce((most, [first]) => Math.max(most, first === undefined ? 0 : nowMs - first.arrivedMs), 0);
  }

  /** Time at which the next queued operation reaches its deadline; infinite: none is queued. */
  get nextDeadlineMs(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const name of everyQueue) for (const each of this.#queues[name]) next = Math.min(next, each.deadlineMs);
    return next;
  }

  submit(request: IoRequest<T>, nowMs: number): IoEffect<T>[] {
    const units = 1 + request.bytes / unitBytes;
    const operation: IoOperation<T> = { ...request, units, arrivedMs: nowMs, startedMs: nowMs };
    if (request.class === "journal" || !this.#rules.on("diskWorkBounded")) return [this.#start(operation, nowMs)];
    if (this.#late(operation, nowMs)) return [{ kind: "refuse", operation, why: "late" }];
    const queue = this.#queues[request.class];
    if (queue.length >= this.#limits.queuedMax) return [{ kind: "refuse", operation, why: "full" }];
    const bound = this.#bound(nowMs);
    if (bound === undefined && this.queued === 0 && isForeground(request.class)) return [this.#start(operation, nowMs)];
    if (bound !== undefined) this.#heldBack[bound] += 1;
    queue.push(operation);
    this.#queuedUnits += units;
    return this.advance(nowMs);
  }

  finished(operation: IoOperation<T>, nowMs: number): IoEffect<T>[] {
    assert(this.#inHand.delete(operation), "a disk operation ends once");
    this.#unitsInHand = this.#inHand.size === 0 ? 0 : this.#unitsInHand - operation.units;
    const busyMs = Math.max(0, nowMs - this.#busySinceMs);
    this.#busySinceMs = nowMs;
    this.#unitMs = Math.max(0.001, this.#unitMs * (1 - learnShare) + (busyMs / operation.units) * learnShare);
    return this.advance(nowMs);
  }

  /** Ends an operation in hand that nobody wants any more: nothing is learned from its time. */
  abandoned(operation: IoOperation<T>, nowMs: number): IoEffect<T>[] {
    assert(this.#inHand.delete(operation), "a disk operation ends once");
    this.#unitsInHand = this.#inHand.size === 0 ? 0 : this.#unitsInHand - operation.units;
    return this.advance(nowMs);
  }

  /** Refuses what is too late and starts what may go. */
  advance(nowMs: number): IoEffect<T>[] {
    const effects: IoEffect<T>[] = [];
    if (this.queued === 0) return effects;
    for (const name of everyQueue) {
      const queue = this.#queues[name];
      for (let i = 0; i < queue.length; ) {
        const operation = queue[i] as IoOperation<T>;
        if (operation.deadlineMs > nowMs) {
          i += 1;
          continue;
        }
        queue.splice(i, 1);
        this.#queuedUnits -= operation.units;
        effects.push({ kind: "refuse", operation, why: "late" });
      }
    }
    while (this.#bound(nowMs) === undefined) {
      const name = this.#next(nowMs);
      if (name === undefined) break;
      const operation = this.#queues[name].shift() as IoOperation<T>;
      this.#queuedUnits -= operation.units;
      effects.push(this.#start(operation, nowMs));
    }
    return effects;
  }

  #start(operation: IoOperation<T>, nowMs: number): IoEffect<T> {
    this.#note(operation, nowMs);
    if (this.#inHand.size === 0) this.#busySinceMs = nowMs;
    operation.startedMs = nowMs;
    this.#inHand.add(operation);
    this.#unitsInHand += operation.units;
    return { kind: "start", operation };
  }

  #note(operation: IoOperation<T>, nowMs: number): void {
    const figures = this.#classes[operation.class];
    const waitedMs = nowMs - operation.arrivedMs;
    figures.started += 1;
    figures.waitedMs += waitedMs;
    figures.waitedMsMax = Math.max(figures.waitedMsMax, waitedMs);
    if (operation.class === "journal") return;
    this.#atStart.expectedMsMax = Math.max(this.#atStart.expectedMsMax, this.expectedMs);
    this.#atStart.oldestMsMax = Math.max(this.#atStart.oldestMsMax, this.oldestInHandMs(nowMs));
  }

  /**
   * Returns the bound that forbids to start another operation; undefined if none does. With nothing in hand one always
   * goes.
   */
  #bound(nowMs: number): IoBound | undefined {
    if (this.#inHand.size === 0) return undefined;
    const others = this.#inHand.size - (this.#hasInHand("journal") ? 1 : 0);
    if (this.expectedMs > this.#limits.expectedMsMax) return "expected";
    if (this.#overdueByMs(nowMs) > 0) return "overdue";
    return others >= this.#limits.inHandMax ? "hands" : undefined;
  }

  /** Returns how long the oldest operation in hand has taken, when that is too long; else 0. */
  #overdueByMs(nowMs: number): number {
    const tookMs = this.oldestInHandMs(nowMs);
    return tookMs > this.#limits.overdueMs ? tookMs : 0;
  }

  #next(nowMs: number): Queued | undefined {
    const held = (name: Queued): boolean => this.#queues[name].length > 0 && !(background.includes(name) && this.#hasInHand(name));
    const arrivedMs = (name: Queued): number => this.#queues[name][0]?.arrivedMs ?? Number.POSITIVE_INFINITY;
    const oldest = (names: readonly Queued[]): Queued | undefined =>
      names.filter(held).reduce<Queued | undefined>((best, name) => (best && arrivedMs(best) <= arrivedMs(name) ? best : name), undefined);
    const eldest = oldest(everyQueue);
    if (eldest !== undefined && nowMs - arrivedMs(eldest) > this.#limits.overdueMs) return eldest;
    return oldest(foreground) ?? background.find(held);
  }

  #hasInHand(name: IoClass): boolean {
    for (const operation of this.#inHand) if (operation.class === name) return true;
    return false;
  }

  /** True if a read's answer would come after its deadline: it is refused now, while another replica can still be asked in time. */
  #late(operation: IoOperation<T>, nowMs: number): boolean {
    if (operation.deadlineMs <= nowMs) return true;
    if (operation.class !== "read" || this.#inHand.size === 0 || !this.#rules.on("lateReadsRefused")) return false;
    // An operation that hangs is expected to take as long again as it has taken so far.
    const aheadMs = (this.#unitsInHand + this.#queuedUnits + operation.units) * this.#unitMs + this.#overdueByMs(nowMs);
    return nowMs + aheadMs > operation.deadlineMs;
  }
}

const noFigures = (): { started: number; waitedMs: number; waitedMsMax: number } => ({ started: 0, waitedMs: 0, waitedMsMax: 0 });
