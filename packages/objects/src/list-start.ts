/** Where a listing by names begins. */
import { compareText } from "./rows/key.ts";

/** Position from which a list begins. Fields that are absent count as empty. */
export interface ListStart {
  readonly prefix?: string | undefined;
  readonly marker?: string | undefined;
}

/** Returns the first key of names with the prefix, from the marker on. */
export function listStart(keyOf: (text: string) => Uint8Array, { prefix = "", marker = "" }: ListStart): Uint8Array {
  return compareText(marker, prefix) > 0 ? keyOf(marker) : keyOf(prefix);
}
