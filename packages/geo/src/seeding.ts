/**
 * Seeding of one range: a scan of all keys goes beside the log, from where the log was when the scan began
 * (docs/design/geo-shipping.md "Shipping").
 *
 * Invariants (docs/design/model/geo-shipping.pml):
 * - A part of the scan counts when the receiver has synced it (rule `geoScanIsSynced`).
 * - Seeding ends when the whole scan is acknowledged, and the log to where it was at the end of the scan (rule
 *   `geoSeedingEndsAtScanEnd`).
 * - A new owner of the range scans again. It continues the log at the cursor.
 */
import type { Rules } from "@stamp/base";
import { assert } from "@stamp/base";

/** How far the seeding of one range, or of several, is. */
export interface SeedingProgress {
  readonly acknowledgedBytes: number;
  /** Estimated size of everything that is scanned, in bytes; at least `acknowledgedBytes`. */
  readonly totalBytes: number;
}

interface ScannedPart {
  readonly lastKey: string;
  readonly bytes: number;
  applied: boolean;
}

export class RangeSeeding {
  readonly #rules: Rules;
  /** Parts that were sent and are not acknowledged yet, in key order. */
  #parts: ScannedPart[] = [];
  #acknowledgedKey = "";
  #acknowledgedBytes = 0;
  #scanEnd: number | undefined;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** Keys up to this one are durable at the receiver; empty: none. A broken connection scans again behind it. */
  get acknowledgedKey(): string {
    return this.#acknowledgedKey;
  }

  /** Notes that a part of the scan was sent: all keys behind the last part, up to `lastKey`. */
  sent(lastKey: string, bytes: number): void {
    assert(lastKey > (this.#parts.at(-1)?.lastKey ?? this.#acknowledgedKey), "a scan is in key order");
    this.#parts.push({ lastKey, bytes, applied: false });
  }

  /** Notes that the scan ended while the log was at `logEnd`. */
  scanned(logEnd: number): void {
    this.#scanEnd = logEnd;
  }

  /** Notes that the receiver has applied the scan up to `lastKey`; it may still lose it. */
  applied(lastKey: string): void {
    for (const part of this.#parts) if (part.lastKey <= lastKey) part.applied = true;
    if (!this.#rules.on("geoScanIsSynced")) this.acknowledged(lastKey);
  }

  /** Notes that the receiver has synced the scan up to `lastKey`. */
  acknowledged(lastKey: string): void {
    while (this.#parts[0] !== undefined && this.#parts[0].lastKey <= lastKey) {
      const part = this.#parts.shift() as ScannedPart;
      this.#acknowledgedKey = part.lastKey;
      this.#acknowledgedBytes += part.bytes;
    }
  }

  /** Notes that the connection broke, or the receiver restarted: what was not acknowledged is scanned again. */
  broken(): void {
    if (this.#parts.length === 0) return;
    this.#parts = [];
    this.#scanEnd = undefined;
  }

  /** True if the receiver's copy is complete when the log is acknowledged to `cursor`. */
  ended(cursor: number): boolean {
    if (this.#scanEnd === undefined || this.#parts.length > 0) return false;
    return !this.#rules.on("geoSeedingEndsAtScanEnd") || cursor >= this.#scanEnd;
  }

  progress(totalBytes: number): SeedingProgress {
    return { acknowledgedBytes: this.#acknowledgedBytes, totalBytes: Math.max(totalBytes, this.#acknowledgedBytes) };
  }
}

/** Progress of all ranges together, in percent of the estimated size, 0 to 100; 100 if there is nothing to seed. */
export function seedingPercent(ranges: readonly SeedingProgress[]): number {
  const sum = (of: (range: SeedingProgress) => number): number => ranges.reduce((total, range) => total + of(range), 0);
  const totalBytes = sum((range) => range.totalBytes);
  return totalBytes === 0 ? 100 : (100 * sum((range) => range.acknowledgedBytes)) / totalBytes;
}

/** Share of the estimated size that is told at most while the scan goes on. */
const tellMax = 0.99;

/**
 * Returns how much of a range is seeded, in bytes, while it is scanned. `byKeys`: the share of the keys that lie behind the scan; it is far too
 * small if large blobs lie there and small ones before it. `sentBytes`: rows and bytes of blobs that this owner sent; earlier owners' are
 * missing.
 */
export function seededSoFar(byKeys: number, sentBytes: number, totalBytes: number): number {
  return Math.min(Math.max(byKeys, sentBytes), tellMax * totalBytes);
}
