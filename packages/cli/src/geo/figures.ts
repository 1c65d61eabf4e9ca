/** Figures of an account's copy, for people and tools: lag, backlog, progress of seeding. */
import type { LocatedAccount } from "@stamp/wire";
import { bytesText } from "../print.ts";

/** Shown for a number that no stamp tells. */
const notKnown = "not known";

/** Returns the time by which the copy is behind; while it is seeded, the progress of that. */
export function lagText(account: LocatedAccount): string {
  const { lagSeconds, seedingPercent, seedingBytesPerSecond, seedingSecondsLeft } = shippingFacts(account);
  if (lagSeconds !== null) return `${lagSeconds} s`;
  if (seedingPercent === null || seedingPercent >= 100) return notKnown;
  const left = seedingSecondsLeft === null ? "" : `, ${seedingSecondsLeft} s left`;
  return `${Math.floor(seedingPercent)}% seeded, ${bytesText(Math.round(seedingBytesPerSecond ?? 0))}/s${left}`;
}

export function pendingText(account: LocatedAccount): string {
  const { pendingOperations, pendingBytes, caughtUpBytesPerSecond, pendingSecondsLeft } = shippingFacts(account);
  if (pendingOperations === null) return notKnown;
  const all = `${pendingOperations} commits, ${bytesText(pendingBytes ?? 0)}`;
  const { shippedOperationsPerSecond, shippedBytesPerSecond } = shippingFacts(account);
  const ships =
    shippedOperationsPerSecond === null || pendingOperations === 0
      ? ""
      : `, ships ${Math.round(shippedOperationsPerSecond)}/s, ${bytesText(Math.round(shippedBytesPerSecond ?? 0))}/s`;
  if (pendingSecondsLeft === null || pendingSecondsLeft === 0) return `${all}${ships}`;
  return `${all}${ships}, ${bytesText(Math.round(caughtUpBytesPerSecond ?? 0))}/s less, ${pendingSecondsLeft} s left`;
}

/** Says which writes a forced failover keeps. `synced`: Last Sync Time of the copy; null if it is not known. */
export const keptText = (synced: string | null): string =>
  synced === null
    ? "Last Sync Time is not known: what is lost is not known either"
    : `Last Sync Time ${synced}: acknowledged writes that were begun before it are kept, later ones may be lost`;

/** Says what a forced failover that began now would lose. */
export function lossText(account: LocatedAccount): string {
  const { lastSync, pendingOperations, pendingBytes } = shippingFacts(account);
  const lacks =
    pendingOperations === null
      ? "The number of commits that the copy lacks is not known"
      : `As the primary told last, the copy lacks ${pendingOperations} commits, ${bytesText(pendingBytes ?? 0)}`;
  return `${keptText(lastSync)}. ${lacks}`;
}

/** Figures of the copy, as the primary told last. Null: not known. */
export function shippingFacts({ shipping, secondary, seeded }: LocatedAccount) {
  const noRates = {
    writtenOperationsPerSecond: null,
    writtenBytesPerSecond: null,
    shippedOperationsPerSecond: null,
    shippedBytesPerSecond: null,
  };
  const noBacklog = {
    ...noRates,
    pendingOperations: null,
    pendingBytes: null,
    caughtUpOperationsPerSecond: null,
    caughtUpBytesPerSecond: null,
  };
  const none = { lagSeconds: null, ...noBacklog, pendingSecondsLeft: null, seedingBytesPerSecond: null, seedingSecondsLeft: null };
  const isSeeded = secondary !== "" && seeded;
  if (shipping === undefined) return { ...none, seedingPercent: isSeeded ? 100 : null, lastSync: null, shippingTrouble: "", ranges: [] };
  const { lastSyncMs, nowMs, pendingCommits, rates } = shipping;
  const seededBytes = Number(shipping.seededBytes);
  const seedBytes = Number(shipping.seedBytes);
  const rate = Number(shipping.seedBytesPerSecond);
  const left = Math.max(0, seedBytes - seededBytes);
  const percent = seedBytes === 0 ? null : Math.min(99.9, (100 * seededBytes) / seedBytes);
  return {
    lagSeconds: lastSyncMs === undefined ? null : Math.max(0, Math.round(Number(nowMs - lastSyncMs) / 1_000)),
    lastSync: lastSyncMs === undefined ? null : new Date(Number(lastSyncMs)).toISOString(),
    pendingOperations: pendingCommits === undefined ? null : Number(pendingCommits),
    pendingBytes: pendingCommits === undefined ? null : Number(shipping.pendingBytes),
    /** Commits per second by which the backlog became smaller, over the last minute. */
    caughtUpOperationsPerSecond: pendingCommits === undefined ? null : shipping.caughtUpCommitsPerSecond,
    caughtUpBytesPerSecond: pendingCommits === undefined ? null : shipping.caughtUpBytesPerSecond,
    /** Operations that clients write, and that the copy acknowledges, in a second. New writes do not lower the latter. */
    writtenOperationsPerSecond: rates?.writtenCommits ?? null,
    writtenBytesPerSecond: rates?.writtenBytes ?? null,
    shippedOperationsPerSecond: rates?.shippedCommits ?? null,
    shippedBytesPerSecond: rates?.shippedBytes ?? null,
    /** Seconds until the backlog is gone; null: it does not become smaller. */
    pendingSecondsLeft: secondsLeft(pendingCommits, shipping.caughtUpCommitsPerSecond),
    seedingPercent: shipping.complete || isSeeded ? 100 : percent,
    seedingBytesPerSecond: rate,
    seedingSecondsLeft: shipping.complete ? 0 : rate > 0 ? Math.ceil(left / rate) : null,
    shippingTrouble: shipping.trouble,
    ranges: shipping.ranges.map(
      ({ rangeId, table: of, state, pendingCommits: commits, pendingBytes: size, failure, lastSyncMs: synced }) => ({
        rangeId,
        table: of,
        state,
        pendingOperations: Number(commits),
        pendingBytes: Number(size),
        /** Everything that is not sent yet was begun after this moment. */
        oldestUnsent: synced === undefined ? null : new Date(Number(synced)).toISOString(),
        failure,
      }),
    ),
  };
}

function secondsLeft(pendingCommits: bigint | undefined, perSecond: number): number | null {
  if (pendingCommits === undefined) return null;
  if (pendingCommits === 0n) return 0;
  return perSecond > 0 ? Math.ceil(Number(pendingCommits) / perSecond) : null;
}
