/**
 * Leases of containers and blobs ("Lease Blob", "Lease Container" of the REST reference): what an action does to a lease in each state,
 * and what a lease lets others do. Pure.
 *
 *   available ── acquire ──> leased ── its duration ends ──> expired ── a write by anybody ──> available
 *                              │ └──── release ──> available
 *                              └── break ──> breaking ── the break period ends ──> broken ── a write by anybody ──> available
 *
 * The row of what is leased holds who has the lease and for how long, not until when: times are counted by the partition server that has
 * the row, on its monotonic clock, so a renewal writes nothing. A server that loads the row restarts the lease in full (rule
 * leaseRestartedOnLoad): it can't know when the last renewal was, and a holder must never lose a lease early. So after a move a lease may
 * last longer than its holder thinks, and one that had run out unnoticed runs once more; two holders there are never.
 */
import type { Rules } from "@stamp/base";
import { type ServiceError, type ServiceErrorCode, serviceError } from "../../errors.ts";

/** Lease as a row holds it; undefined: the blob or container is available. */
export interface Lease {
  /** State of the lease; it stays `leased` after the lease's time has run out. */
  readonly state: "leased" | "breaking" | "broken";
  /** A GUID in lower case, with hyphens. */
  readonly id: string;
  /**
   * Duration of the lease, or the rest of it when it was broken, in milliseconds; `infinite` for a lease without end.
   */
  readonly durationMs: number;
  /** Sequence of the commit that wrote the lease; with the id it names the timer. */
  readonly grant: number;
}

export const infinite = -1;
const secondMs = 1000;

export type LeaseState = "available" | "leased" | "expired" | "breaking" | "broken";

/** Lease, as clients see it. */
export interface LeaseView {
  readonly state: LeaseState;
  readonly status: "locked" | "unlocked";
  /** Kind of duration of a held lease; empty if none is held. */
  readonly duration: "" | "infinite" | "fixed";
}

/**
 * When timed leases end, by the monotonic clock of the server that has the rows. In memory only.
 *
 * Two rows that another stamp shipped may have leases of one grant: two ranges there gave the same number. If both leases have one id as
 * well, they share a timer. It ends no lease early: a timer never goes back, and never ends before a full term after the load.
 */
export class LeaseTimers {
  #loadedMs: number;
  readonly #rules: Rules;
  /** Ends of leases by the monotonic clock, keyed by grant and id. */
  readonly #endsMs = new Map<string, number>();
  #sweepAt = 1024;

  /** `loadedMs`: time at which this server had the rows. No earlier server renews a lease after it. */
  constructor(rules: Rules, loadedMs: number) {
    this.#rules = rules;
    this.#loadedMs = loadedMs;
  }

  get size(): number {
    return this.#endsMs.size;
  }

  /** Makes every lease count from `nowMs` on, as after a load: somebody else renewed them until now. */
  restart(nowMs: number): void {
    this.#loadedMs = nowMs;
    this.#endsMs.clear();
  }

  endsMs(lease: Lease): number {
    if (lease.durationMs === infinite) return Number.POSITIVE_INFINITY;
    const sinceLoadMs = this.#rules.on("leaseRestartedOnLoad") ? this.#loadedMs + lease.durationMs : this.#loadedMs;
    return Math.max(sinceLoadMs, this.#endsMs.get(nameOf(lease)) ?? sinceLoadMs);
  }

  /**
   * Ended leases are dropped when many were added since the last time. An ended one is older than the load and a full
   * term, so it is ended without a timer, too.
   */
  set(lease: NamedLease, endsMs: number, nowMs: number): void {
    const name = nameOf(lease);
    this.#endsMs.set(name, Math.max(endsMs, this.#endsMs.get(name) ?? endsMs));
    if (this.#endsMs.size < this.#sweepAt) return;
    for (const [old, ends] of this.#endsMs) if (ends <= nowMs) this.#endsMs.delete(old);
    this.#sweepAt = Math.max(1024, 2 * this.#endsMs.size);
  }
}

/** Fields of a lease that name its timer. */
export type NamedLease = Pick<Lease, "id" | "grant">;

const nameOf = ({ id, grant }: NamedLease): string => `${grant} ${id}`;

/** The time that a plan may know: `nowMs` by the monotonic clock. */
export interface LeaseClock {
  readonly nowMs: number;
  endsMs(lease: Lease): number;
}

export function leaseStateOf(lease: Lease | undefined, clock: LeaseClock): LeaseState {
  if (!lease) return "available";
  if (lease.state === "broken") return "broken";
  const ended = clock.endsMs(lease) <= clock.nowMs;
  if (lease.state === "leased") return ended ? "expired" : "leased";
  return ended ? "broken" : "breaking";
}

export function viewOf(lease: Lease | undefined, clock: LeaseClock): LeaseView {
  const state = leaseStateOf(lease, clock);
  const held = state === "leased" || state === "breaking";
  const duration = state !== "leased" ? "" : lease?.durationMs === infinite ? "infinite" : "fixed";
  return { state, status: held ? "locked" : "unlocked", duration };
}

/** Returns the lease after a write that ends it: its former holder can't renew it. */
export const afterWrite = (lease: Lease | undefined, clock: LeaseClock): Lease | undefined => {
  const state = leaseStateOf(lease, clock);
  return state === "leased" || state === "breaking" ? lease : undefined;
};

export type LeaseAction = "acquire" | "renew" | "change" | "release" | "break";

export interface LeaseRequest {
  readonly action: LeaseAction;
  /** Lease id of the caller; empty for acquire and break. */
  readonly leaseId: string;
  /** Id to have from now on: acquire and change. */
  readonly proposedLeaseId: string;
  /** Duration of acquire, 15 to 60 seconds, or `infinite`. */
  readonly durationSeconds: number;
  /** Break period of break, 0 to 60 seconds. */
  readonly breakPeriodSeconds?: number | undefined;
}

/** Result of a lease action. */
export type LeaseOutcome =
  | {
      readonly kind: "done";
      /** The lease from now on; undefined means available. */
      readonly lease: Lease | undefined;
      /** True if the row has to be written. */
      readonly written: boolean;
      /** New end of the lease's timer in milliseconds; undefined: the timer stays. */
      readonly endsMs?: number;
      /** Time until a broken lease ends, in whole seconds. */
      readonly leftSeconds?: number;
    }
  | { readonly kind: "refused"; readonly error: ServiceError };

const refuse = (code: ServiceErrorCode): LeaseOutcome => ({ kind: "refused", error: serviceError(code) });

/** Decides a lease action; `sequence`: sequence of the commit that would write it. */
export function actOnLease(request: LeaseRequest, lease: Lease | undefined, clock: LeaseClock, sequence: number): LeaseOutcome {
  const state = leaseStateOf(lease, clock);
  switch (request.action) {
    case "acquire":
      return acquire(request, lease, state, clock, sequence);
    case "renew":
      return renew(request, lease, state, clock);
    case "change":
      return change(request, lease, state, clock, sequence);
    case "release":
      if (!lease || lease.id !== request.leaseId) return refuse("LeaseIdMismatchWithLeaseOperation");
      return { kind: "done", lease: undefined, written: true };
    case "break":
      return lease ? breakLease(request, lease, state, clock, sequence) : refuse("LeaseNotPresentWithLeaseOperation");
  }
}

function acquire(request: LeaseRequest, lease: Lease | undefined, state: LeaseState, clock: LeaseClock, sequence: number): LeaseOutcome {
  if (lease && (state === "leased" || state === "breaking")) {
    if (lease.id !== request.proposedLeaseId) return refuse("LeaseAlreadyPresent");
    if (state === "breaking") return refuse("LeaseIsBreakingAndCannotBeAcquired");
  }
  const durationMs = request.durationSeconds === infinite ? infinite : request.durationSeconds * secondMs;
  return granted({ state: "leased", id: request.proposedLeaseId, durationMs, grant: sequence }, clock);
}

const granted = (lease: Lease, clock: LeaseClock): LeaseOutcome => ({
  kind: "done",
  lease,
  written: true,
  ...(lease.durationMs === infinite ? {} : { endsMs: clock.nowMs + lease.durationMs }),
});

/** Renews a lease: its timer starts anew and nothing is written. */
function renew(request: LeaseRequest, lease: Lease | undefined, state: LeaseState, clock: LeaseClock): LeaseOutcome {
  if (!lease || lease.id !== request.leaseId) return refuse("LeaseIdMismatchWithLeaseOperation");
  if (state === "breaking" || state === "broken") return refuse("LeaseIsBrokenAndCannotBeRenewed");
  if (lease.durationMs === infinite) return { kind: "done", lease, written: false };
  return { kind: "done", lease, written: false, endsMs: clock.nowMs + lease.durationMs };
}

/** Changes the id of a lease; the time that is left stays. */
function change(request: LeaseRequest, lease: Lease | undefined, state: LeaseState, clock: LeaseClock, sequence: number): LeaseOutcome {
  if (!lease || state === "broken" || state === "expired") return refuse("LeaseNotPresentWithLeaseOperation");
  const { leaseId, proposedLeaseId } = request;
  if (state === "breaking") {
    return refuse(lease.id === leaseId ? "LeaseIsBreakingAndCannotBeChanged" : "LeaseIdMismatchWithLeaseOperation");
  }
  if (lease.id === proposedLeaseId) return { kind: "done", lease, written: false };
  if (lease.id !== leaseId) return refuse("LeaseIdMismatchWithLeaseOperation");
  const changed: Lease = { ...lease, id: proposedLeaseId, grant: sequence };
  const endsMs = clock.endsMs(lease);
  return { kind: "done", lease: changed, written: true, ...(lease.durationMs === infinite ? {} : { endsMs }) };
}

function breakLease(request: LeaseRequest, lease: Lease, state: LeaseState, clock: LeaseClock, sequence: number): LeaseOutcome {
  const broken: Lease = { ...lease, state: "broken", durationMs: 0, grant: sequence };
  if (state === "broken") return { kind: "done", lease, written: false, leftSeconds: 0 };
  if (state === "expired") return { kind: "done", lease: broken, written: true, leftSeconds: 0 };
  const left = clock.endsMs(lease) - clock.nowMs;
  const period = request.breakPeriodSeconds === undefined ? undefined : request.breakPeriodSeconds * secondMs;
  const untilBroken = Math.min(left, period ?? (left === Number.POSITIVE_INFINITY ? 0 : left));
  if (untilBroken <= 0) return { kind: "done", lease: broken, written: true, leftSeconds: 0 };
  const leftSeconds = Math.ceil(untilBroken / secondMs);
  if (state === "breaking" && untilBroken === left) return { kind: "done", lease, written: false, leftSeconds };
  const breaking: Lease = { ...lease, state: "breaking", durationMs: Math.ceil(untilBroken), grant: sequence };
  return { kind: "done", lease: breaking, written: true, endsMs: clock.nowMs + untilBroken, leftSeconds };
}

/** Kind of the leased object, in the error codes of the service. */
export type LeasedKind = "Blob" | "Container";

/** Checks that the lease that a read names is the held one. */
export function checkLeaseOfRead(
  of: LeasedKind,
  leaseId: string | undefined,
  lease: Lease | undefined,
  clock: LeaseClock,
): ServiceError | undefined {
  if (leaseId === undefined) return undefined;
  const state = leaseStateOf(lease, clock);
  if (!lease || state === "available") return serviceError(`LeaseNotPresentWith${of}Operation`);
  if (state === "broken" || state === "expired") {
    return serviceError(lease.id === leaseId ? "LeaseLost" : `LeaseNotPresentWith${of}Operation`);
  }
  return lease.id === leaseId ? undefined : serviceError(`LeaseIdMismatchWith${of}Operation`);
}

/** Checks the lease of what a copy overwrites: without a lease or under an infinite one a copy may take as long as it likes. */
export const checkLeaseOfCopy = (lease: Lease | undefined, clock: LeaseClock): ServiceError | undefined => {
  const state = leaseStateOf(lease, clock);
  const held = state === "leased" || state === "breaking";
  return held && lease?.durationMs !== infinite ? serviceError("InfiniteLeaseDurationRequired") : undefined;
};

/** Checks the lease of a write: it must name the lease that is held. */
export function checkLeaseOfWrite(
  of: LeasedKind,
  leaseId: string | undefined,
  lease: Lease | undefined,
  clock: LeaseClock,
): ServiceError | undefined {
  const state = leaseStateOf(lease, clock);
  if (leaseId === undefined && (state === "leased" || state === "breaking")) return serviceError("LeaseIdMissing");
  return checkLeaseOfRead(of, leaseId, lease, clock);
}
