/**
 * An operation as a plan: a generator that says which rows it has to see and, in the end, what is answered and written. It does no I/O
 * and looks at no clock; the partition server runs it, for writes inside the row's order, for reads at a snapshot.
 */
import { assert, concatBytes, type Failure, FailureError, type Outcome, type Rules } from "@stamp/base";
import type { Seals } from "./accounts/seals.ts";
import type { LeaseClock } from "./blobs/protect/leases.ts";
import { type ServiceError, type ServiceErrorCode, serviceError } from "./errors.ts";
import type { BlobPolicy } from "./operation.ts";
import type { OperationResult } from "./results.ts";
import type { Place } from "./rows/row.ts";

export interface RowEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

export type Read =
  | { readonly kind: "get"; readonly key: Uint8Array }
  | ({ readonly kind: "scan"; readonly low: Uint8Array; readonly high: Uint8Array } & ScanLimits)
  /**
   * Row after row from `low` (inclusive) to `high` (exclusive): `visit` says from which key on to look for the next one, behind the row it
   * was given, or undefined to stop. What lies between is not read.
   */
  | { readonly kind: "walk"; readonly low: Uint8Array; readonly high: Uint8Array; readonly visit: VisitRow }
  /** Nothing is read: others may go first, if the plan has worked for long. */
  | { readonly kind: "pause" };

export type VisitRow = (row: RowEntry) => Uint8Array | undefined;

/** Limits of a scan of rows from `low` (inclusive) to `high` (exclusive). */
export interface ScanLimits {
  readonly rowsMax: number;
  /** Bound of the bytes of rows; at least one row is returned if there is any. */
  readonly bytesMax: number;
  /** Deleted rows to step over, which cost as much as rows; beyond, the scan stops and says where. Without it all are. */
  readonly deletedMax?: number;
}

export type ReadAnswer =
  | { readonly kind: "get"; readonly value: Uint8Array | undefined }
  | ({ readonly kind: "scan" } & ScanAnswer)
  | { readonly kind: "walk" }
  | { readonly kind: "pause" };

export interface ScanAnswer {
  readonly rows: readonly RowEntry[];
  /** True if the scan stopped at a limit, not at `high`. */
  readonly more: boolean;
  /** Number of deleted rows that the scan stepped over. */
  readonly deleted: number;
  /** Key at which the scan stopped because of `deletedMax`: nothing lies between the last row (or `low`) and it. */
  readonly stoppedAt?: Uint8Array | undefined;
}

export type RowWrite =
  | { readonly kind: "put"; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly kind: "delete"; readonly key: Uint8Array };

/** A refusal by this stamp's own rules, not by the service's. */
export type PlanRefusal = { readonly reason: "badPlace" | "badRequest" | "conflict"; readonly message: string };

/**
 * Timer of a lease that starts, or starts anew (blobs/leases.ts). It is set in row order, before any other decision
 * about the row.
 */
export interface TimerChange {
  /** Id of the lease whose timer changes. */
  readonly id: string;
  readonly grant: number;
  readonly endsMs: number;
}

export interface Decision {
  readonly result: OperationResult;
  readonly writes: readonly RowWrite[];
  readonly timer?: TimerChange | undefined;
  /** Instead of a result: the caller has to do something else. Nothing is written then. */
  readonly refusal?: PlanRefusal;
}

export type Plan<T = Decision> = Generator<Read, T, ReadAnswer>;

/**
 * True if rows may be written that a feature level of the stamp brings (`neededLevels`). False: a release that may come back can't read them. Undefined:
 * the level is not known yet.
 */
export type MayWrite = (level: number) => boolean | undefined;

/** Everything that a plan may know besides rows. */
export interface PlanContext {
  readonly rules: Rules;
  readonly wallMs: number;
  /** Sequence number of the commit that this plan becomes; unused by reads. */
  readonly sequence: number;
  /** The range that is asked: low inclusive, high exclusive; empty high: no end. */
  readonly range: { readonly low: Uint8Array; readonly high: Uint8Array };
  /** True if a row may refer to the place: its extent is in this partition's blob stream and stays there. */
  readonly mayReferTo: (place: Place) => boolean;
  /** Service properties of the account for blobs and containers. */
  readonly policy: BlobPolicy;
  readonly leases: LeaseClock;
  /** Returns the time at which queue `name` acts, in milliseconds since 1970; never before `clockMs`, the latest time that its rows record (queues/queue-clocks.ts). */
  readonly queueMs: (name: string, clockMs: number) => number;
  /** Makes 16 random bytes that nobody can guess: what the pop receipts of one operation on a queue carry. */
  readonly receiptSecret: () => Uint8Array;
  /** Function object that seals secrets of accounts in their rows. */
  readonly seals: Seals;
  readonly mayWrite: MayWrite;
  /** Returns memory for a page of this length, which is used again after the answer was sent; undefined: the page has memory of its own. */
  readonly pageMemory?: ((lengthBytes: number) => Uint8Array<ArrayBuffer> | undefined) | undefined;
}

export function* getRow(key: Uint8Array): Plan<Uint8Array | undefined> {
  const answer = yield { kind: "get", key };
  assert(answer.kind === "get", "a get is answered by a get");
  return answer.value;
}

export function* scanRows(low: Uint8Array, high: Uint8Array, limits: ScanLimits): Plan<ScanAnswer> {
  const answer = yield { kind: "scan", low, high, ...limits };
  assert(answer.kind === "scan", "a scan is answered by a scan");
  return answer;
}

export function* walkRows(low: Uint8Array, high: Uint8Array, visit: VisitRow): Plan<void> {
  const answer = yield { kind: "walk", low, high, visit };
  assert(answer.kind === "walk", "a walk is answered by a walk");
}

/** Items of a long loop between two pauses: at most about a millisecond of work. */
export const itemsPerPause = 500;

/** Works on the items one after another, with pauses: whoever runs the plan lets others go first. */
export function* withPauses<T>(items: Iterable<T>, work: (item: T) => void): Plan<void> {
  let worked = 0;
  for (const item of items) {
    if (++worked % itemsPerPause === 0) yield { kind: "pause" };
    work(item);
  }
}

/** Returns the first key behind this one. */
export const successor = (key: Uint8Array): Uint8Array => concatBytes([key, Uint8Array.of(0)]);

/** Returns the value. A row that can't be decoded is damage below: the operation ends with its failure. */
export function intact<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}

export const answer = (result: OperationResult, writes: readonly RowWrite[] = [], timer?: TimerChange): Decision =>
  timer === undefined ? { result, writes } : { result, writes, timer };
export const put = (key: Uint8Array, value: Uint8Array): RowWrite => ({ kind: "put", key, value });
export const remove = (key: Uint8Array): RowWrite => ({ kind: "delete", key });
export const errorAnswer = (error: ServiceError): Decision => answer({ case: "error", value: error });
export const fail = (code: ServiceErrorCode, details: Readonly<Record<string, string>> = {}): Decision =>
  errorAnswer(serviceError(code, details));
export const refuse = (reason: PlanRefusal["reason"], message: string): Decision => ({
  result: { case: "done" },
  writes: [],
  refusal: { reason, message },
});
export const done: OperationResult = { case: "done" };

export type { Failure };
