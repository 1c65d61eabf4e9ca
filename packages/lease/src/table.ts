/**
 * The lock service's leases: event in, decision out. The shell makes `persist` durable before it gives the outcome to anyone.
 *
 * Invariants (partition-layer.md "Leases and epochs", model/move.pml):
 *  1. the epoch of a name only rises, one grant each;
 *  2. a lease that ran out, ended, or whose renewals are refused is never renewed;
 *  3. nobody is told that a lease ended before that is durable, and a restart does not extend such a lease;
 *  4. a restart extends every other lease by a full term, counted from the last moment at which its holder may have renewed it;
 *  5. a higher incarnation of the same holder ends the older one's lease at once: it holds the exclusive lock of the identity's folder,
 *     so the older process is gone. A process of the same name on another folder (left over from elsewhere, or made anew) is another
 *     holder: it waits for the lease's end as everybody does. So does a lower incarnation: a folder that was restored from an older copy. The SAME incarnation does not: its earlier request may arrive late, while the lease is held.
 */
import type { Failed, LeaseEpoch, Outcome, Rules } from "@stamp/base";
import { assert, leaseEpoch, ok, refused } from "@stamp/base";
import type { LeaseRecord } from "./record.ts";

export const leaseTermMinMs = 100;
export const leaseTermMaxMs = 300_000;
/**
 * Farthest that a grant goes above the last epoch because its caller asks for that. No receiver obeys a farther one without asking the lock
 * service (`unvouchedTermsMax`), so a higher request is a fault, and must not use up the numbers.
 */
export const leaseAheadMax = 16;

export interface LeaseRequest {
  readonly name: string;
  readonly holder: string;
  /** Identity of the process's folder. */
  readonly identity: string;
  /** Identity of this start of the process. */
  readonly instance: string;
  readonly incarnation: number;
  readonly address: string;
  readonly termMs: number;
  /** An epoch that some receiver obeys: the caller needs a higher one. */
  readonly above?: number;
}

export interface LeaseGranted {
  readonly epoch: LeaseEpoch;
  readonly termMs: number;
}

export interface LeaseView extends LeaseRecord {
  /** Time that the lease has left, in milliseconds; 0: it has ended. */
  readonly remainingMs: number;
}

export interface LeaseDecision<T> {
  readonly outcome: Outcome<T>;
  /** Must be durable before the outcome is told. */
  readonly persist?: LeaseRecord;
}

interface Entry {
  record: LeaseRecord;
  /** Time by this process's monotonic clock. */
  expiresAtMs: number;
}

export class LeaseTable {
  readonly #rules: Rules;
  readonly #entries = new Map<string, Entry>();
  /** Nothing can be made durable now: what would have to be is refused with this, and has not happened. */
  cannotRecord: Failed | undefined;
  /** While nothing can be: of these a record may get to the disk or not. Nobody is told anything of them. */
  undecided: ReadonlySet<string> = new Set();

  /** `records`: durable records at the start. `fromMs`: time before which no answered renewal was judged by this process. */
  constructor(records: Iterable<LeaseRecord>, fromMs: number, rules: Rules) {
    this.#rules = rules;
    const extended = rules.on("leasesExtendedOnRestart");
    for (const record of records) {
      assert(!this.#entries.has(record.name), "two records of one lease");
      this.#entries.set(record.name, { record, expiresAtMs: !record.ended && extended ? fromMs + record.termMs : fromMs });
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  acquire(request: LeaseRequest, nowMs: number): LeaseDecision<LeaseGranted> {
    if (request.termMs < leaseTermMinMs || request.termMs > leaseTermMaxMs) {
      return {
        outcome: refused("invalidArgument", "badRequest", `a term is ${leaseTermMinMs} to ${leaseTermMaxMs} ms, not ${request.termMs}`),
      };
    }
    const withheld = this.#withheld(request.name);
    if (withheld !== undefined) return withheld;
    const entry = this.#entries.get(request.name);
    if (entry !== undefined) {
      const { record } = entry;
      const sameHolder = record.holder === request.holder && (record.identity === request.identity || record.identity === "");
      const takesOver = sameHolder && request.incarnation > record.incarnation;
      if (!takesOver && this.#alive(entry, nowMs))
        return { outcome: this.#held(entry, nowMs, `held by ${record.holder} at ${record.address}`) };
    }
    if (this.cannotRecord !== undefined) return { outcome: this.cannotRecord };
    const { above = 0, ...holder } = request;
    const granted: LeaseRecord = {
      ...holder,
      epoch: leaseEpoch(this.#from(entry?.record.epoch ?? 0, above) + 1),
      ended: false,
      refused: false,
    };
    this.#entries.set(request.name, { record: granted, expiresAtMs: nowMs + granted.termMs });
    return { outcome: ok({ epoch: granted.epoch, termMs: granted.termMs }), persist: granted };
  }

  renew(name: string, epoch: number, nowMs: number): LeaseDecision<LeaseGranted> {
    const withheld = this.#withheld(name);
    if (withheld !== undefined) return withheld;
    const entry = this.#entries.get(name);
    if (entry === undefined || entry.record.epoch !== epoch) {
      return { outcome: refused("failedPrecondition", "leaseEnded", `lease ${name} has another epoch than ${epoch}`) };
    }
    if (!this.#alive(entry, nowMs) && (entry.record.ended || this.#rules.on("neverRenewEnded"))) {
      if (this.cannotRecord !== undefined && this.#endsUnrecorded(entry, nowMs)) return { outcome: this.cannotRecord };
      return {
        outcome: refused("failedPrecondition", "leaseEnded", `lease ${name} epoch ${epoch} has ended`),
        ...this.#recordEnd(entry, nowMs),
      };
    }
    if (entry.record.refused) {
      return { outcome: refused("failedPrecondition", "leaseRefused", `renewals of lease ${name} epoch ${epoch} are refused`) };
    }
    entry.expiresAtMs = nowMs + entry.record.termMs;
    return { outcome: ok({ epoch: entry.record.epoch, termMs: entry.record.termMs }) };
  }

  /** Ends a lease now. One of an older epoch ended before: nothing changes. */
  release(name: string, epoch: number, nowMs: number): LeaseDecision<LeaseView> {
    return this.#onEpoch(name, epoch, nowMs, (entry) => {
      entry.expiresAtMs = Math.min(entry.expiresAtMs, nowMs);
      return this.#recordEnd(entry, nowMs);
    });
  }

  refuseRenewals(name: string, epoch: number, nowMs: number): LeaseDecision<LeaseView> {
    return this.#onEpoch(name, epoch, nowMs, (entry) => {
      if (!this.#alive(entry, nowMs)) return this.#recordEnd(entry, nowMs);
      entry.record = { ...entry.record, refused: true };
      return this.#persist(entry);
    });
  }

  get(name: string, nowMs: number): LeaseDecision<LeaseView | undefined> {
    const withheld = this.#withheld(name);
    if (withheld !== undefined) return withheld;
    const entry = this.#entries.get(name);
    if (entry === undefined) return { outcome: ok<LeaseView | undefined>(undefined) };
    if (this.cannotRecord !== undefined && this.#endsUnrecorded(entry, nowMs)) return { outcome: this.cannotRecord };
    const persist = this.#alive(entry, nowMs) ? {} : this.#recordEnd(entry, nowMs);
    return { outcome: ok<LeaseView | undefined>(this.#view(entry, nowMs)), ...persist };
  }

  /** Returns a lease for people to look at. An end that it shows may not be recorded yet: nobody may act on it. */
  peek(name: string, nowMs: number): LeaseView | undefined {
    const entry = this.#entries.get(name);
    return entry && this.#view(entry, nowMs);
  }

  /** True if the end of the lease is recorded, or is about to be. */
  recordedEnd(name: string): boolean {
    return this.#entries.get(name)?.record.ended ?? false;
  }

  names(prefix: string): string[] {
    return [...this.#entries.keys()].filter((name) => name.startsWith(prefix)).sort();
  }

  /** Returns the fencing token that the metadata store compares; 0 when it was never granted. */
  epochOf(name: string): number {
    return this.#entries.get(name)?.record.epoch ?? 0;
  }

  /** Returns the process that was granted this epoch of the lease; undefined if it is not the newest. */
  holderOf(name: string, epoch: number): string | undefined {
    const record = this.#entries.get(name)?.record;
    return record?.epoch === epoch ? record.holder : undefined;
  }

  #onEpoch(name: string, epoch: number, nowMs: number, act: (entry: Entry) => { persist?: LeaseRecord }): LeaseDecision<LeaseView> {
    const withheld = this.#withheld(name);
    if (withheld !== undefined) return withheld;
    const entry = this.#entries.get(name);
    if (entry === undefined || epoch > entry.record.epoch) {
      return { outcome: refused("notFound", "leaseEnded", `lease ${name} has no epoch ${epoch}`) };
    }
    const changes = epoch === entry.record.epoch ? !entry.record.ended : this.#endsUnrecorded(entry, nowMs);
    if (this.cannotRecord !== undefined && changes) return { outcome: this.cannotRecord };
    const effect = epoch === entry.record.epoch ? act(entry) : this.#alive(entry, nowMs) ? {} : this.#recordEnd(entry, nowMs);
    return { outcome: ok(this.#view(entry, nowMs)), ...effect };
  }

  /** Returns the epoch that a grant goes above (rule leaseAheadBounded). */
  #from(last: number, above: number): number {
    const most = this.#rules.on("leaseAheadBounded") ? last + leaseAheadMax : above;
    return Math.max(last, Math.min(above, most));
  }

  #withheld(name: string): { readonly outcome: Failed } | undefined {
    return this.cannotRecord && this.undecided.has(name) ? { outcome: this.cannotRecord } : undefined;
  }

  #alive(entry: Entry, nowMs: number): boolean {
    return !entry.record.ended && nowMs < entry.expiresAtMs;
  }

  #endsUnrecorded(entry: Entry, nowMs: number): boolean {
    return !entry.record.ended && !this.#alive(entry, nowMs);
  }

  #recordEnd(entry: Entry, nowMs: number): { persist?: LeaseRecord } {
    assert(nowMs >= entry.expiresAtMs || entry.record.ended, "a running lease is not recorded as ended");
    if (entry.record.ended || !this.#rules.on("leaseEndRecorded")) return {};
    entry.record = { ...entry.record, ended: true };
    return this.#persist(entry);
  }

  #persist(entry: Entry): { persist: LeaseRecord } {
    return { persist: this.#rules.on("refusalDurable") ? entry.record : { ...entry.record, refused: false } };
  }

  #view(entry: Entry, nowMs: number): LeaseView {
    const alive = this.#alive(entry, nowMs);
    return { ...entry.record, ended: !alive, remainingMs: alive ? entry.expiresAtMs - nowMs : 0 };
  }

  #held(entry: Entry, nowMs: number, why: string): Outcome<never> {
    const { record } = entry;
    return refused("failedPrecondition", "leaseHeld", `lease ${record.name}: ${why}`, {
      holder: record.holder,
      address: record.address,
      instance: record.instance,
      leaseEpoch: String(record.epoch),
      remainingMs: String(Math.max(0, Math.ceil(entry.expiresAtMs - nowMs))),
    });
  }
}
