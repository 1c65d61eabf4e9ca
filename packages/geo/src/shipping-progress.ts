/**
 * How far the copy of an account at its second stamp is: put together from what the owner of each range says
 * (docs/design/geo-shipping.md "Completion").
 *
 * Invariant: a range that says nothing is counted as not known, never as finished. An account is complete, or has nothing
 * pending, only if every range of it says so.
 */
import { type ShippingRates, sumOfRates } from "./rates/shipping-rate.ts";
import { accountSyncTime } from "./sync-time.ts";

/**
 * `waiting`: not begun. `seeding`: its rows are scanned. `shipping`: its commits are sent. `unshipped`: it has rows of the
 * account in a table whose rows are not shipped.
 */
export type RangeShippingState = "waiting" | "seeding" | "shipping" | "unshipped";

export interface RangeProgress {
  readonly rangeId: string;
  readonly table: string;
  readonly state: RangeShippingState;
  /** True if the receiver has every row that the range had when its scan ended. */
  readonly complete: boolean;
  /** Commits that are not acknowledged. */
  readonly pendingCommits: number;
  /** Size of the rows in the pending commits, in bytes; an upper bound. */
  readonly pendingBytes: number;
  /** Last Sync Time of the range, in milliseconds since 1970; undefined: not known. */
  readonly lastSyncMs: number | undefined;
  /** Size of the rows that were scanned and acknowledged, in bytes; estimated. */
  readonly seededBytes: number;
  /** Size of all rows that are scanned, in bytes; estimated. */
  readonly seedBytes: number;
  /** Rows that the scan brings to the receiver in a second, in bytes; 0: it does not scan. */
  readonly seedBytesPerSecond: number;
  /** Rates of the range; undefined: not known yet. */
  readonly rates?: ShippingRates | undefined;
  /** Reason why nothing arrives; empty: something does. */
  readonly failure: string;
}

export interface AccountProgress {
  /** True if the second stamp's copy is complete. */
  readonly complete: boolean;
  /** Commits that are not acknowledged; undefined: not known, or some are never sent. */
  readonly pendingCommits: number | undefined;
  readonly pendingBytes: number;
  readonly lastSyncMs: number | undefined;
  readonly seededBytes: number;
  readonly seedBytes: number;
  readonly seedBytesPerSecond: number;
  /** Rates of all ranges together; undefined: a range does not tell its own. */
  readonly rates: ShippingRates | undefined;
  /** Reason why the copy makes no progress, with the range; empty: it does. */
  readonly trouble: string;
}

/** `ranges`: progress of every range with keys of the account, by id; undefined: its owner did not say. */
export function accountProgress(ranges: ReadonlyMap<string, RangeProgress | undefined>): AccountProgress {
  const told = [...ranges.values()].filter((range) => range !== undefined);
  const isKnown = told.length === ranges.size && ranges.size > 0 && told.every(({ state }) => state === "seeding" || state === "shipping");
  const sum = (of: (range: RangeProgress) => number): number => told.reduce((total, range) => total + of(range), 0);
  // An account with a range that is still scanned has a time for none of its rows.
  const times = told.map(({ state, complete, lastSyncMs }) => (state === "shipping" && complete ? lastSyncMs : undefined));
  return {
    complete: isKnown && told.every(({ complete }) => complete),
    pendingCommits: isKnown && told.every(({ state }) => state === "shipping") ? sum(({ pendingCommits }) => pendingCommits) : undefined,
    pendingBytes: sum(({ pendingBytes }) => pendingBytes),
    lastSyncMs: isKnown ? accountSyncTime(times) : undefined,
    seededBytes: sum(({ seededBytes }) => seededBytes),
    seedBytes: sum(({ seedBytes }) => seedBytes),
    seedBytesPerSecond: sum(({ seedBytesPerSecond }) => seedBytesPerSecond),
    rates: isKnown && told.every(({ rates }) => rates !== undefined) ? sumOfRates(told.flatMap(({ rates }) => rates ?? [])) : undefined,
    trouble: troubleOf(ranges),
  };
}

function troubleOf(ranges: ReadonlyMap<string, RangeProgress | undefined>): string {
  for (const [rangeId, range] of ranges) {
    if (range === undefined) return `range ${rangeId}: its owner does not say how far it is`;
    if (range.state === "unshipped") return `range ${rangeId}: rows of table ${range.table} are not sent to the second stamp`;
    if (range.failure !== "") return `range ${rangeId}: ${range.failure}`;
  }
  return "";
}
