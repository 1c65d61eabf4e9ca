/** Shared by listings: pages, and how far one range can answer. */
import { compareBytes } from "@stamp/base";
import type { PlanContext } from "./plan.ts";

export const listPageMax = 5_000;
export const listBatchLimits: { readonly rowsMax: number; readonly bytesMax: number } = { rowsMax: 200, bytesMax: 512 * 1024 };

export const pageSize = (maxResults: number): number => (maxResults < 1 ? listPageMax : Math.min(maxResults, listPageMax));

const later = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) >= 0 ? a : b);

export interface ListSpan {
  readonly low: Uint8Array;
  readonly high: Uint8Array;
  /** True if the listing goes on behind the range that is asked. */
  readonly cut: boolean;
}

/** Returns the part from `low` to `high` that this range can answer. */
export function spanOf(context: PlanContext, low: Uint8Array, high: Uint8Array): ListSpan {
  const { range } = context;
  const cut = range.high.length > 0 && compareBytes(range.high, high) < 0;
  return { low: later(low, range.low), high: cut ? range.high : high, cut };
}
