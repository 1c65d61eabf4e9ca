/**
 * The leader's view of one follower (figure 2: nextIndex, matchIndex), and the flow control towards it.
 *
 *     probe ──accepted──▶ replicate       probe: one append at a time, until the logs are known to agree
 *       ▲  ◀──refused─────    │           replicate: appends are sent ahead, up to the window
 *       └──────installed── snapshot ◀──   snapshot: the entries that it needs are not in the leader's log any more
 *
 * Invariants:
 * - match < next. In `probe` at most one append waits for its answer; in `snapshot` none is sent.
 * - `fullMatch` <= `match`: what the follower acknowledged while it had its standing.
 */
import type { Match } from "../quorum.ts";

export interface WindowBounds {
  /** Bound of the appends with entries that wait for an answer. */
  readonly inFlightMax: number;
  /** Bound of the bytes of these appends. A single larger append goes out alone. */
  readonly inFlightBytesMax: number;
}

export class Progress {
  state: "probe" | "replicate" | "snapshot" = "probe";
  match = 0;
  fullMatch = 0;
  next: number;
  /** In `probe`: an append waits for its answer. A heartbeat's answer ends the wait, for the append may be lost. */
  paused = false;
  /** In `replicate`: the next append goes out even if it is empty or the window is full, to find out whether one was lost. */
  nudged = false;
  /** True if the follower answered since the last check of the quorum. */
  active = true;
  /** True if it answered between that check and the one before. */
  wasActive = false;
  /** Start of the follower that was heard last; undefined: none yet. */
  session: number | undefined;
  full = false;
  /** Last round of heartbeats that it answered, and the last one that it answered while it had its standing. */
  round = 0;
  fullRound = 0;
  /** Snapshot that is on its way, in state `snapshot`: its index, and the bytes that the follower has. Undefined offset: not answered yet. */
  snapshotIndex = 0;
  offsetBytes: number | undefined;
  /** Answered heartbeats since the last sign of life of the snapshot's stream. */
  idleHeartbeats = 0;
  /** Commit index that was last sent to the member. */
  toldCommit = 0;
  /** A learner catches up in rounds (dissertation, section 4.2.1): the leader's last index as the round began, and the ticks since. */
  roundTarget: number;
  roundTicks = 0;
  caughtUp = false;
  #flights: { readonly last: number; readonly bytes: number }[] = [];
  #flightBytes = 0;

  constructor(lastIndex: number) {
    this.next = lastIndex + 1;
    this.roundTarget = lastIndex;
  }

  /** True if the follower answers: right after a check its next answer is on its way. */
  get answers(): boolean {
    return this.active || this.wasActive;
  }

  /** Notes a check of the quorum: from now on only new answers count. */
  checked(): void {
    this.wasActive = this.active;
    this.active = false;
  }

  get acknowledged(): Match {
    return { any: this.match, full: this.fullMatch };
  }

  /** Notes who answers. A new start is a new follower: it may have less than its earlier start acknowledged. */
  heard(session: number, full: boolean, lastIndex: number): void {
    this.active = true;
    if (this.session !== undefined && this.session !== session) {
      this.match = 0;
      this.fullMatch = 0;
      this.round = 0;
      this.fullRound = 0;
      this.caughtUp = false;
      this.roundTarget = lastIndex;
      this.roundTicks = 0;
      this.toProbe(lastIndex + 1);
    }
    this.session = session;
    this.full = full;
  }

  canSend({ inFlightMax, inFlightBytesMax }: WindowBounds): boolean {
    if (this.state === "probe") return !this.paused;
    if (this.state === "snapshot") return false;
    return this.#flights.length < inFlightMax && (this.#flightBytes < inFlightBytesMax || this.#flights.length === 0);
  }

  /** Notes an append with these entries as sent. */
  sent(count: number, bytes: number): void {
    if (this.state === "probe") this.paused = true;
    else if (count > 0) {
      this.next += count;
      this.#flights.push({ last: this.next - 1, bytes });
      this.#flightBytes += bytes;
    }
  }

  /** Notes that the log of the follower equals the leader's up to `index`. */
  accepted(index: number, full: boolean): void {
    this.match = Math.max(this.match, index);
    if (full) this.fullMatch = Math.max(this.fullMatch, index);
    this.next = Math.max(this.next, this.match + 1);
    while (this.#flights[0] !== undefined && this.#flights[0].last <= index) this.#flightBytes -= this.#flights.shift()?.bytes ?? 0;
    if (this.state === "snapshot" && this.match < this.snapshotIndex) return;
    if (this.state !== "replicate") this.#forget("replicate");
    this.next = Math.max(this.next, this.match + 1);
  }

  /** Returns false if the refusal is an old one. */
  refused(index: number, agreement: number): boolean {
    if (this.state === "snapshot" || index <= this.match) return false;
    if (this.state === "probe" && index !== this.next - 1) return false;
    this.toProbe(Math.max(this.match + 1, Math.min(index, agreement + 1)));
    return true;
  }

  toProbe(next: number): void {
    this.#forget("probe");
    this.next = Math.max(this.match + 1, next);
  }

  toSnapshot(index: number): void {
    this.#forget("snapshot");
    this.snapshotIndex = index;
    this.offsetBytes = undefined;
    this.idleHeartbeats = 0;
  }

  /** Notes that a heartbeat was answered: the append that `probe` waits for may be lost, and so may the last one that was sent ahead. */
  heartbeatAnswered(): void {
    this.paused = false;
    if (this.state === "replicate" && this.match < this.next - 1) this.nudged = true;
  }

  /** Counts a tick of a learner's round; a round that took no longer than an election timeout means that it keeps up. */
  tickRound(lastIndex: number, electionTicks: number): void {
    this.roundTicks += 1;
    if (this.match >= this.roundTarget) {
      this.caughtUp = this.roundTicks <= electionTicks;
      this.roundTarget = lastIndex;
      this.roundTicks = 0;
    } else if (this.roundTicks > electionTicks) this.caughtUp = false;
  }

  #forget(state: "probe" | "replicate" | "snapshot"): void {
    this.state = state;
    this.paused = false;
    this.nudged = false;
    this.#flights = [];
    this.#flightBytes = 0;
  }
}
