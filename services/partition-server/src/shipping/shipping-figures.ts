/** Figures of shipping for `/metrics`: what this server sent and took since it started, and how far the ranges are that it ships now. */
/** Facts of one range and account that the figures are made of (`ShippingFacts` of range-shipping.ts). */
interface RangeFigures {
  readonly state: "seeding" | "shipping" | "reporting" | "reported" | "ended";
  readonly failure: string;
  readonly lastSyncMs: number | undefined;
  readonly pending: number;
  readonly pendingBytes: number;
  readonly backlogBytes: number;
  readonly seededBytes: number;
  readonly seedBytes: number;
}

/** Counts of what is sent to other stamps and taken from them. */
export class ShippingTotals {
  /** Number of shipped commits, counted for each PartitionName in them. */
  shippedCommits = 0;
  /** Keys and values of rows, of commits and of scans. */
  shippedRowBytes = 0;
  /** Number of blob bytes that were shipped. */
  shippedBlobBytes = 0;
  /** Calls to other stamps that failed or were refused. */
  failedCalls = 0;
  appliedCommits = 0;
  /** Commits that had been applied before. */
  skippedCommits = 0;
  /** Keys and values of rows, of commits and of scans. */
  appliedRowBytes = 0;
}

export function shippingFigures(all: readonly RangeFigures[], totals: ShippingTotals, nowMs: number) {
  const count = (state: RangeFigures["state"]): number => all.filter((one) => one.state === state).length;
  const sum = (numberOf: (one: RangeFigures) => number): number => all.reduce((total, one) => total + numberOf(one), 0);
  const seeding = all.filter(({ state }) => state === "seeding");
  const lags = all.flatMap(({ lastSyncMs }) => (lastSyncMs === undefined ? [] : [Math.max(0, nowMs - lastSyncMs)]));
  return {
    ...totals,
    seeding: seeding.length,
    shipping: count("shipping"),
    reporting: count("reporting"),
    failing: all.filter(({ failure }) => failure !== "").length,
    unsynced: all.filter(({ state, lastSyncMs }) => state === "shipping" && lastSyncMs === undefined).length,
    lagMs: Math.max(0, ...lags),
    pendingCommits: sum(({ pending }) => pending),
    pendingBytes: sum(({ pendingBytes }) => pendingBytes),
    backlogBytes: sum(({ backlogBytes }) => backlogBytes),
    seededBytes: Math.round(seeding.reduce((total, one) => total + one.seededBytes, 0)),
    seedBytes: Math.round(seeding.reduce((total, one) => total + one.seedBytes, 0)),
  };
}

/** Returns the size of keys and values. */
export const rowBytesOf = (rows: readonly { readonly key: Uint8Array; readonly value?: Uint8Array | undefined }[]): number =>
  rows.reduce((total, { key, value }) => total + key.length + (value?.length ?? 0), 0);
