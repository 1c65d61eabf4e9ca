/** Compares the wall clock of this host with those of the others. No messages; time comes in as numbers. */

/** Clock of another host minus the own one, in milliseconds; undefined if that host did not answer. */
export type AheadMs = number | undefined;

/**
 * Returns how far the clocks of most hosts are ahead of the own one, in milliseconds (the median of those that agree), if they are more than
 * `apartMs` away from it; otherwise undefined. Most: more than half of all hosts, this one included, within `apartMs` of one another. So a host
 * with whom most agree is never outvoted, and at least one host of a stamp is not, however its clocks are.
 */
export function outvotedBy(others: readonly AheadMs[], apartMs: number): number | undefined {
  const known = others.filter((ahead) => ahead !== undefined).sort((a, b) => a - b);
  const needed = Math.floor((others.length + 1) / 2) + 1;
  for (const [at, first] of known.entries()) {
    const group = known.slice(at, at + needed);
    const last = group.at(-1) as number;
    if (group.length < needed || last - first > apartMs) continue;
    if (first > apartMs || last < -apartMs) return group[Math.floor(group.length / 2)];
  }
  return undefined;
}
