/**
 * Judges the records found in a journal: which to replay, which to forget as the torn tail, which are damage.
 *
 * A record is *required* when somebody may have been told that it is durable:
 *  - in the last segment, every LSN up to the largest syncedLsn that an intact record of it carries (later batches are written only
 *    after earlier ones were synced);
 *  - in an earlier segment, every LSN below the first LSN of the next (a segment is begun only when the one before is synced).
 * A required record that is missing or bad is damage. After the required ones, records are replayed up to the first missing or bad one:
 * that is the torn tail of the last batch, of which nothing was acknowledged, and what lies behind it is forgotten.
 */
import type { ScannedRecord, SegmentHeader } from "./journal-segment.ts";

export interface SegmentScan {
  readonly header: SegmentHeader;
  readonly records: readonly ScannedRecord[];
}

export type RecoveryStep =
  | { readonly kind: "replay"; readonly record: ScannedRecord }
  /** Header intact, body bad: it is known which extent lost what. */
  | { readonly kind: "damagedRecord"; readonly record: ScannedRecord }
  /** Records whose extents are not known were lost. */
  | { readonly kind: "lostRecords"; readonly fromLsn: number; readonly toLsn: number };

export interface SegmentJudgement {
  readonly steps: readonly RecoveryStep[];
  /** The LSN after the last one that counts. */
  readonly nextLsn: number;
  /** Intact records behind the torn place. */
  readonly forgotten: number;
}

/**
 * `next` is the header of the segment that was begun after this one (of those that are readable), if any. Records up to
 * `checkpointLsn` need no replay, so nothing is asked of them.
 */
export function judgeSegment(scan: SegmentScan, next: SegmentHeader | undefined, checkpointLsn: number): SegmentJudgement {
  const first = Math.max(scan.header.firstLsn, checkpointLsn + 1);
  const syncedLsn = scan.records.reduce((most, record) => Math.max(most, record.header.syncedLsn), first - 1);
  const requiredLsn = next === undefined ? syncedLsn : next.firstLsn - 1;
  const byLsn = new Map<number, ScannedRecord>();
  for (const record of scan.records) {
    const held = byLsn.get(record.header.lsn);
    if (record.header.lsn >= first && (held === undefined || (record.bodyIntact && !held.bodyIntact))) byLsn.set(record.header.lsn, record);
  }

  const steps: RecoveryStep[] = [];
  let lsn = first;
  for (; next === undefined || lsn <= requiredLsn; lsn++) {
    const record = byLsn.get(lsn);
    if (lsn > requiredLsn && record?.bodyIntact !== true) break;
    if (record === undefined) {
      const last = steps[steps.length - 1];
      if (last?.kind === "lostRecords") steps[steps.length - 1] = { ...last, toLsn: lsn };
      else steps.push({ kind: "lostRecords", fromLsn: lsn, toLsn: lsn });
    } else {
      steps.push({ kind: record.bodyIntact ? "replay" : "damagedRecord", record });
    }
  }
  let forgotten = 0;
  for (const record of byLsn.values()) if (record.header.lsn >= lsn && record.bodyIntact) forgotten += 1;
  return { steps, nextLsn: lsn, forgotten };
}
