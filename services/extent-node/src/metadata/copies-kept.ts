/**
 * Decides which copies of the metadata a node keeps, and which it takes. Pure.
 *
 * Invariants:
 *   - A copy of another stamp, or one that goes less far than the newest here, is never taken: the store it is from has lost something.
 *   - The newest two stay; one at most two hours old and one at most two days old stay beside them, for who finds a mistake late.
 *   - A store that was restored (another lineage, always of higher versions) displaces none of the newest copies of the three before it.
 */
export interface KeptCopy {
  readonly name: string;
  readonly version: number;
  /** Wall time of the lock service, in milliseconds since 1970. */
  readonly takenAtMs: number;
  /** Lineage of the copy; empty in copies of format version 1, which belong to the lineage after it. */
  readonly lineage: string;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const newestKept = 2;
const olderLineagesKept = 3;

/** Returns why a copy is not taken; undefined: it is. */
export function whyNotKept(
  copy: Pick<KeptCopy, "version" | "lineage"> & { readonly stampId: string },
  ownStampId: string,
  kept: readonly KeptCopy[],
): string | undefined {
  if (copy.stampId !== ownStampId) return `the metadata store is that of stamp ${copy.stampId}, this node belongs to ${ownStampId}`;
  const newest = newestOf(kept);
  if (newest === undefined || copy.version >= newest.version) return undefined;
  return (
    `the metadata store is at transaction ${copy.version}, a copy here is at ${newest.version}: the store was put back or lost something; ` +
    "stop the stamp and restore that copy (docs/guides/metadata.md)"
  );
}

/** Returns the names of those that stay. Ages are counted from the newest, not from this machine's clock. */
export function copiesThatStay(kept: readonly KeptCopy[]): Set<string> {
  const newest = newestOf(kept);
  if (newest === undefined) return new Set();
  const lineages = new Map<string, KeptCopy[]>();
  for (const copy of kept) {
    const lineage = copy.lineage === "" ? newest.lineage : copy.lineage;
    lineages.set(lineage, [...(lineages.get(lineage) ?? []), copy]);
  }
  const current = (lineages.get(newest.lineage) ?? []).sort((a, b) => b.version - a.version);
  const older = [...lineages].filter(([lineage]) => lineage !== newest.lineage).flatMap(([, copies]) => newestOf(copies) ?? []);
  const names = new Set(current.slice(0, newestKept).map(({ name }) => name));
  for (const { name } of older.sort((a, b) => b.version - a.version).slice(0, olderLineagesKept)) names.add(name);
  const aged = (fromMs: number, toMs: number): KeptCopy[] =>
    current.filter(({ takenAtMs }) => newest.takenAtMs - takenAtMs >= fromMs && newest.takenAtMs - takenAtMs < toMs);
  // The oldest of a span stays until it is old enough for the next span: so the next one is never empty for longer than a span.
  const staying = [
    aged(0, hourMs).at(-1),
    aged(hourMs, dayMs).at(0),
    aged(hourMs, dayMs).at(-1),
    aged(dayMs, Number.POSITIVE_INFINITY).at(0),
  ];
  for (const copy of staying) if (copy !== undefined) names.add(copy.name);
  return names;
}

const newestOf = (copies: readonly KeptCopy[]): KeptCopy | undefined =>
  copies.reduce<KeptCopy | undefined>((most, copy) => (most === undefined || copy.version > most.version ? copy : most), undefined);
