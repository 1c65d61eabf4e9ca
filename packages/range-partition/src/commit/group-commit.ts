/**
 * Group commit: while one commit record is on its way to the log, everything that was decided meanwhile waits and becomes the next
 * record. No timers: alone, a transaction waits for nobody; under load, the time of an append sets the size of the group.
 *
 * Invariants: records reach the log in the order of their sequences (one append in flight, sequences without a gap); a transaction is
 * applied only after its record is durable, in sequence order; when an append fails the log is lost (the stream layer repeats everything
 * else itself), and nothing is ever committed again. One failure is none of the log: no disk has room, and no node took a byte. Then the
 * group did not happen, nor what was decided behind it, and its sequences are given again. At the end what was decided and is not durable
 * may go along in another record (`leave`): it happened when either is durable. Or the log is cut behind what it acknowledged (`cut`): it
 * did not happen.
 */
import { assert, type Failed, type Failure, type Histogram, type Outcome, ok, refused, unknownOutcome, WakeUp } from "@stamp/base";
import { encodeCommit, writesBytes } from "@stamp/lsm";
import { type Cause, causedTogether, type Timer, type World } from "@stamp/ports";
import type { OwnedStream, Place } from "@stamp/stream-client";
import type { RowWrite } from "../types.ts";

/** A group whose record is durable. */
export interface CommittedGroup {
  readonly firstSequence: number;
  readonly transactions: readonly (readonly RowWrite[])[];
  /** Place of the commit in the log, once it is durable. */
  readonly place?: Place;
  /** Size of the record in the log, in bytes. */
  readonly bytes: number;
}

/** Commits of a leaving partition that are decided and not durable. */
export interface UndurableCommits {
  /** Writes in the order of their commits. */
  readonly writes: readonly RowWrite[];
  readonly bytes: number;
  /** Sequence of the last of these commits; without commits that of the last durable one. */
  readonly lastSequence: number;
  /** Called with the outcome of the record that carries the commits. */
  readonly recorded: (outcome: Outcome<void>) => void;
}

/** Log that was cut for a split or merge. */
export interface LogCut {
  /** Resolves when all is applied that the log had acknowledged: at once, nothing is waited for. */
  readonly applied: Promise<void>;
  /** Called once it is known if the log was sealed where it was cut. */
  readonly sealed: (there: boolean) => void;
}

export interface GroupCommitOptions {
  readonly ownerEpoch: number;
  /** Size of one record, in bytes. A transaction that is larger alone is refused. */
  readonly groupBytesMax: number;
  /** Bytes of overdue commits from which on nothing more is queued. */
  readonly overdueBytesMax: number;
  readonly lastSequence: number;
  readonly lastTicket: number;
  /** Durations of the appends to the commit log. */
  readonly appends: Histogram;
  readonly apply: (committed: CommittedGroup) => void;
  /** Resolves when there is memory for another group. */
  readonly room: () => Promise<void>;
  readonly onLost: (failure: Failure) => void;
}

export interface CommitOptions {
  /** Called with true when the commit is durable, with false when it never will be. */
  readonly settled?: (durable: boolean) => void;
  /** Client's request that is committed, if there is one. */
  readonly cause?: Cause | undefined;
}

interface Queued {
  readonly writes: readonly RowWrite[];
  readonly bytes: number;
  readonly stays: boolean;
  readonly cause: Cause | undefined;
  /** True from the caller's deadline on: the caller was told `unknown`, and the commit still waits or is on its way. */
  overdue: boolean;
  readonly settle: (outcome: Outcome<void>) => void;
}

interface Group {
  readonly firstSequence: number;
  readonly queued: readonly Queued[];
}

const recordOverheadBytes = 64;

const bytesOf = (queued: readonly Queued[]): number => queued.reduce((sum, { bytes }) => sum + bytes, 0);

/** Returns the outcome of a commit that may have happened in two ways: it is certain not to have happened only if neither did. */
const neither = (one: Failed, other: Failed): Failed => (one.failure.applied === "no" ? other : one);

export class GroupCommit {
  readonly #world: World;
  readonly #log: OwnedStream;
  readonly #options: GroupCommitOptions;
  #queue: Queued[] = [];
  #running = false;
  #ended: Failure | undefined;
  #lastSequence: number;
  #lastTicket: number;
  #groups = 0;
  #commits = 0;
  #overdueBytes = 0;
  readonly #idle = new WakeUp();
  readonly #undurable = new Set<Group>();
  #appending: Promise<void> = Promise.resolve();
  /** True if the log is sealed where it was cut; false: it is not, or nobody can say. */
  #sealed: { readonly promise: Promise<boolean>; readonly resolve: (there: boolean) => void } | undefined;
  /** Outcome of the record that carries the undurable commits of a leaving partition; undefined until the partition leaves. */
  #elsewhere: Promise<Outcome<void>> | undefined;

  constructor(world: World, log: OwnedStream, options: GroupCommitOptions) {
    this.#world = world;
    this.#log = log;
    this.#options = options;
    this.#lastSequence = options.lastSequence;
    this.#lastTicket = options.lastTicket;
  }

  get groups(): number {
    return this.#groups;
  }
  get commits(): number {
    return this.#commits;
  }
  /** The largest ticket given. */
  get lastTicket(): number {
    return this.#lastTicket;
  }

  /** Returns a number that no transaction had before, also under earlier owners. */
  takeTicket(): number {
    this.#lastTicket += 1;
    return this.#lastTicket;
  }

  /** Gives no ticket up to this one any more. */
  raiseTicket(ticket: number): void {
    this.#lastTicket = Math.max(this.#lastTicket, ticket);
  }

  /**
   * Why no writes can be queued now, whatever they are; undefined when writes can be queued, or never again. The callers of overdue commits have gone and
   * send more, so these commits are the only ones whose number the operations at work do not bound.
   */
  get noRoom(): Failed | undefined {
    const { overdueBytesMax } = this.#options;
    if (this.#ended !== undefined) return undefined;
    if (this.#log.noRoom !== undefined || this.#overdueBytes < overdueBytesMax) return this.#log.noRoom;
    return refused(
      "resourceExhausted",
      "overloaded",
      `${this.#overdueBytes} bytes of overdue commits wait for the log, the limit is ${overdueBytesMax}`,
    );
  }

  /** Returns why these writes can't be queued; undefined: they can. */
  refusal(writes: readonly RowWrite[]): Failed | undefined {
    if (this.#ended !== undefined) return { ok: false, failure: { ...this.#ended, applied: "no" } };
    const { noRoom } = this;
    if (noRoom !== undefined) return noRoom;
    const bytes = writesBytes(writes);
    const { groupBytesMax } = this.#options;
    if (bytes + recordOverheadBytes <= groupBytesMax) return undefined;
    return refused("invalidArgument", "messageTooLarge", `a transaction of ${bytes} bytes, at most ${groupBytesMax}`);
  }

  /**
   * Commits the writes in one record with all that waits. `leave` runs when the outcome is certain: at once with the answer, or, when the
   * caller was told `unknown` at its deadline, later, or never when nobody can say. With `settled`, others have seen what it writes: it is
   * not taken back at its deadline, and `settled` says whether it became durable (and is applied).
   */
  commit(writes: readonly RowWrite[], timeoutMs: number, leave: () => void, options: CommitOptions = {}): Promise<Outcome<void>> {
    const { settled, cause } = options;
    const refusal = this.refusal(writes);
    if (refusal !== undefined) {
      leave();
      settled?.(false);
      return Promise.resolve(refusal);
    }
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const queued: Queued = {
        writes,
        bytes: writesBytes(writes),
        stays: settled !== undefined,
        cause,
        overdue: false,
        settle: (outcome) => {
          timer?.cancel();
          if (queued.overdue) this.#overdueBytes -= queued.bytes;
          settled?.(outcome.ok);
          if (outcome.ok || outcome.failure.applied === "no") leave();
          resolve(outcome);
        },
      };
      timer = this.#world.clock.after(timeoutMs, () => this.#late(queued, resolve));
      this.#queue.push(queued);
      void this.#run();
    });
  }

  /** Ends commits: waiting ones did not happen. The stream layer resolves a record in flight. */
  end(failure: Failure): void {
    this.#sealed?.resolve(false);
    if (this.#ended !== undefined) return;
    this.#ended = failure;
    for (const { settle } of this.#queue.splice(0)) settle({ ok: false, failure: { ...failure, applied: "no" } });
    this.#checkIdle();
  }

  /**
   * The log ends where it is acknowledged to (`OwnedStream.cut`), and from now on nothing is acknowledged because of it (rule
   * cutNotAcknowledged). What waits did not happen. What is on its way did not either once the log is sealed there, and is unknown until
   * then (rule redoneWhenChanged). For once; undefined when where the log ends is not known.
   */
  cut(failure: Failure): LogCut | undefined {
    const { rules } = this.#world;
    if (!this.#log.cut()) return undefined;
    this.end(failure);
    this.#sealed = Promise.withResolvers<boolean>();
    if (!rules.on("redoneWhenChanged")) this.#sealed.resolve(true);
    if (!rules.on("cutNotAcknowledged")) return { applied: Promise.resolve(), sealed: this.#sealed.resolve };
    this.#log.abandon();
    return { applied: this.#appending, sealed: this.#sealed.resolve };
  }

  /** Bytes of the commits that are decided and not durable. */
  get undurableBytes(): number {
    let bytes = bytesOf(this.#queue);
    for (const { queued } of this.#undurable) bytes += bytesOf(queued);
    return bytes;
  }

  /**
   * Nothing more goes to the log: what waits, and what is on its way there, goes along in the record that the caller appends to another
   * stream of this owner. For once, when nothing is decided any more.
   */
  leave(): UndurableCommits {
    assert(this.#elsewhere === undefined, "it leaves once");
    const { promise, resolve } = Promise.withResolvers<Outcome<void>>();
    this.#elsewhere = promise;
    const waiting: Group = { firstSequence: this.#lastSequence + 1, queued: this.#queue.splice(0) };
    this.#lastSequence += waiting.queued.length;
    this.#undurable.add(waiting);
    const groups = [...this.#undurable];
    return {
      writes: groups.flatMap(({ queued }) => queued.flatMap(({ writes }) => writes)),
      bytes: groups.reduce((sum, { queued }) => sum + bytesOf(queued), 0),
      lastSequence: this.#lastSequence,
      recorded: (outcome) => {
        if (outcome.ok) for (const group of groups) this.#durable(group, { bytes: 0 });
        else this.#fail(waiting, outcome);
        resolve(outcome);
      },
    };
  }

  /** Resolves when nothing waits and nothing is in flight. */
  whenIdle(): Promise<void> {
    const idle = this.#idle.next;
    this.#checkIdle();
    return idle;
  }

  #late(queued: Queued, resolve: (outcome: Outcome<void>) => void): void {
    const at = this.#queue.indexOf(queued);
    if (at >= 0 && !queued.stays) {
      this.#queue.splice(at, 1);
      queued.settle(refused("deadlineExceeded", "timeout", "the commit was not sent in time"));
      return;
    }
    queued.overdue = true;
    this.#overdueBytes += queued.bytes;
    resolve(unknownOutcome("deadlineExceeded", "timeout", "the commit was not acknowledged in time"));
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    while (this.#queue.length > 0) {
      await this.#options.room();
      const group = this.#take();
      // Waiting commits may have run out of time, or the end may have come.
      if (group.length === 0) continue;
      this.#appending = this.#append(group);
      await this.#appending;
    }
    this.#running = false;
    this.#checkIdle();
  }

  #take(): Queued[] {
    let bytes = recordOverheadBytes;
    let count = 0;
    for (const queued of this.#queue) {
      if (bytes + queued.bytes > this.#options.groupBytesMax) break;
      bytes += queued.bytes;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  async #append(queued: readonly Queued[]): Promise<void> {
    const { ownerEpoch, appends, onLost } = this.#options;
    const transactions = queued.map(({ writes }) => writes);
    const firstSequence = this.#lastSequence + 1;
    this.#lastSequence += queued.length;
    const group: Group = { firstSequence, queued };
    this.#undurable.add(group);
    const record = encodeCommit({ ownerEpoch, firstSequence, lastTicket: this.#lastTicket, transactions }, (part, seed) =>
      this.#world.digest.crc32c(part, seed),
    );
    const sinceMs = this.#world.clock.monotonicMs();
    const cause = causedTogether(queued.map((each) => each.cause));
    const placed = await this.#log.append([record], { timeoutMs: Number.POSITIVE_INFINITY, refusedWithoutRoom: true, cause });
    appends.since(sinceMs);
    if (placed.ok) {
      this.#durable(group, { place: placed.value[0] as Place, bytes: record.length });
      return;
    }
    if (this.#sealed !== undefined && this.#ended !== undefined) {
      const { promise } = this.#sealed;
      const didNot: Failed = { ok: false, failure: { ...this.#ended, applied: "no" } };
      if (placed.failure.applied === "no") this.#fail(group, didNot);
      else void promise.then((there) => this.#fail(group, there ? didNot : placed));
      return;
    }
    const isTakenBack = this.#ended === undefined && placed.failure.applied === "no" && placed.failure.reason === "noPlacement";
    if (isTakenBack && this.#elsewhere === undefined) {
      this.#takeBack(group, placed);
      return;
    }
    if (!isTakenBack) this.end(placed.failure);
    if (this.#elsewhere === undefined) this.#fail(group, placed);
    else void this.#elsewhere.then((recorded) => recorded.ok || this.#fail(group, neither(placed, recorded)));
    if (!isTakenBack) onLost(placed.failure);
  }

  /**
   * No byte of the group's record was taken anywhere. What waits was decided behind the group, perhaps by what the group writes, and goes
   * with it (rule takenBackTogether). A transaction that is being decided by it is refused when it is decided (`Transactions`, rule
   * decidedByLostRefused).
   */
  #takeBack(group: Group, failed: Failed): void {
    this.#lastSequence = group.firstSequence - 1;
    const waiting = this.#world.rules.on("takenBackTogether") ? this.#queue.splice(0) : [];
    this.#fail(group, failed);
    for (const { settle } of waiting) settle(failed);
  }

  /** Takes note that a group is durable, at its first moment. */
  #durable(group: Group, where: Pick<CommittedGroup, "place" | "bytes">): void {
    if (!this.#undurable.delete(group)) return;
    const { firstSequence, queued } = group;
    if (queued.length === 0) return;
    this.#groups += 1;
    this.#commits += queued.length;
    this.#options.apply({ firstSequence, transactions: queued.map(({ writes }) => writes), ...where });
    for (const { settle } of queued) settle(ok());
  }

  #fail(group: Group, failed: Failed): void {
    this.#undurable.delete(group);
    for (const { settle } of group.queued) settle(failed);
  }

  #checkIdle(): void {
    if (this.#running || this.#queue.length > 0) return;
    this.#idle.notify();
  }
}
