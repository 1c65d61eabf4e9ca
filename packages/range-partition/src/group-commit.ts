/**
 * Group commit: while one commit record is on its way to the log, everything that was decided meanwhile waits and becomes the next
 * record. No timers: alone, a transaction waits for nobody; under load, the append time sets the size of the group.
 *
 * Invariants: records reach the log in the order of their sequences (one append in flight); a transaction is applied only after its
 * record is durable, in sequence order; when an append fails the log is lost (the stream layer repeats everything else itself), and
 * nothing is ever committed again.
 */
import { type Failure, type Outcome, ok } from "@stamp/base";
import { encodeCommit, writesBytes } from "@stamp/lsm";
import type { World } from "@stamp/ports";
import type { OwnedStream, Place } from "@stamp/stream-client";
import type { RowWrite } from "./types.ts";

export interface Commit {
  readonly writes: readonly RowWrite[];
  /** Its record is about to be sent: it can't be taken back any more. */
  readonly onSent: () => void;
  readonly onDone: (outcome: Outcome<number>) => void;
}

interface Queued extends Commit {
  readonly bytes: number;
}

export interface GroupCommitParts {
  readonly world: World;
  readonly log: OwnedStream;
  readonly ownerEpoch: number;
  readonly groupBytesMax: number;
  /** The next `count` sequences. */
  readonly takeSequences: (count: number) => number;
  /** Durable: make it readable. */
  readonly apply: (firstSequence: number, group: readonly (readonly RowWrite[])[]) => void;
  /** After every group that was applied: where its record lies and how long it is. */
  readonly onApplied: (place: Place) => void;
  /** No group is sent while it holds, e.g. because memory is full; call `pump` when that has changed. */
  readonly mustWait: () => boolean;
}

const recordOverheadBytes = 64;

export class GroupCommit {
  readonly #parts: GroupCommitParts;
  #queue: Queued[] = [];
  #inFlight = false;
  #ended: Failure | undefined;
  #groups = 0;
  #commits = 0;
  #idle: (() => void)[] = [];

  constructor(parts: GroupCommitParts) {
    this.#parts = parts;
  }

  get groups(): number {
    return this.#groups;
  }
  get commits(): number {
    return this.#commits;
  }
  get ended(): Failure | undefined {
    return this.#ended;
  }

  /** The answer takes it back, if it was not sent yet. */
  add(commit: Commit): () => boolean {
    if (this.#ended !== undefined) {
      commit.onDone({ ok: false, failure: { ...this.#ended, applied: "no" } });
      return () => false;
    }
    const queued: Queued = { ...commit, bytes: writesBytes(commit.writes) };
    this.#queue.push(queued);
    this.pump();
    return () => {
      const at = this.#queue.indexOf(queued);
      if (at < 0) return false;
      this.#queue.splice(at, 1);
      this.#checkIdle();
      return true;
    };
  }

  pump(): void {
    if (this.#inFlight || this.#ended !== undefined || this.#queue.length === 0 || this.#parts.mustWait()) return;
    const group = this.#take();
    this.#inFlight = true;
    void this.#commit(group);
  }

  /** Nothing is committed any more; what waits did not happen. A record in flight is resolved by the stream layer. */
  end(failure: Failure): void {
    if (this.#ended !== undefined) return;
    this.#ended = failure;
    for (const { onDone } of this.#queue.splice(0)) onDone({ ok: false, failure: { ...failure, applied: "no" } });
    this.#checkIdle();
  }

  /** Resolves when nothing waits and nothing is in flight. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#checkIdle();
    });
  }

  #take(): Queued[] {
    let bytes = recordOverheadBytes;
    let count = 0;
    for (const queued of this.#queue) {
      if (count > 0 && bytes + queued.bytes > this.#parts.groupBytesMax) break;
      bytes += queued.bytes;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  async #commit(group: readonly Queued[]): Promise<void> {
    const { world, log, ownerEpoch, takeSequences, apply, onApplied } = this.#parts;
    const transactions = group.map(({ writes }) => writes);
    const firstSequence = takeSequences(group.length);
    for (const { onSent } of group) onSent();
    const record = encodeCommit({ ownerEpoch, firstSequence, transactions }, (bytes, seed) => world.digest.crc32c(bytes, seed));
    const outcome = await log.append([record], { timeoutMs: Number.POSITIVE_INFINITY });
    this.#inFlight = false;
    if (!outcome.ok) {
      for (const { onDone } of group) onDone(outcome);
      this.end(outcome.failure);
      this.#checkIdle();
      return;
    }
    this.#groups += 1;
    this.#commits += group.length;
    apply(firstSequence, transactions);
    onApplied(outcome.value[0] as Place);
    for (const [i, { onDone }] of group.entries()) onDone(ok(firstSequence + i));
    this.pump();
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#inFlight || this.#queue.length > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
