/**
 * Counts votes and acknowledgements. A member that has its standing ("full") counts in a majority. A member that was started and has no
 * standing yet may have forgotten what it said before, so it counts only in a wide quorum.
 *
 * n voters            | 1 | 2 | 3 | 4 | 5
 * --------------------|---|---|---|---|---
 * majority            | 1 | 2 | 2 | 3 | 3
 * wide quorum         | – | 2 | 3 | 3 | 4
 *
 * Invariants:
 * - Two majorities share a member that has its standing.
 * - A wide quorum shares at least two members with every majority and every wide quorum. So if one member forgot, another remembers.
 * - While the newest configuration is not committed, a quorum of the one before it is needed, too. Else the two would share one member only.
 */
import type { MemberId } from "./types.ts";

export const majorityOf = (voters: number): number => Math.floor(voters / 2) + 1;

/** Returns the size of a wide quorum. A single voter has none: nobody could tell it what it forgot. */
export const wideOf = (voters: number): number => voters - majorityOf(voters) + 2;

/** One configuration, or the last two while the newest is not committed. */
export type VoterGroups = readonly (readonly MemberId[])[];

export interface Voice {
  readonly granted: boolean;
  readonly full: boolean;
}

export type Verdict = "won" | "lost" | "open";

/** Returns whether the voices win in each group, can no longer win in some group, or neither. */
export function verdictOf(groups: VoterGroups, voiceOf: (id: MemberId) => Voice | undefined): Verdict {
  const verdicts = groups.map((voters) => verdictIn(voters, voiceOf));
  if (verdicts.includes("lost")) return "lost";
  return verdicts.every((verdict) => verdict === "won") ? "won" : "open";
}

function verdictIn(voters: readonly MemberId[], voiceOf: (id: MemberId) => Voice | undefined): Verdict {
  const voices = voters.map(voiceOf);
  const granted = voices.filter((voice) => voice?.granted).length;
  const full = voices.filter((voice) => voice?.granted && voice.full).length;
  const missing = voices.filter((voice) => voice === undefined).length;
  if (voters.length === 0) return "lost";
  if (full >= majorityOf(voters.length) || granted >= wideOf(voters.length)) return "won";
  return full + missing < majorityOf(voters.length) && granted + missing < wideOf(voters.length) ? "lost" : "open";
}

export interface Match {
  /** Highest index that the member acknowledged. */
  readonly any: number;
  /** Highest index that the member acknowledged with its standing. */
  readonly full: number;
}

/** Returns the highest index that a quorum of each group acknowledged. */
export function acknowledgedIndex(groups: VoterGroups, matchOf: (id: MemberId) => Match): number {
  return Math.min(
    ...groups.map((voters) => {
      const matches = voters.map(matchOf);
      const full = nthHighest(
        matches.map((match) => match.full),
        majorityOf(voters.length),
      );
      const any = nthHighest(
        matches.map((match) => match.any),
        wideOf(voters.length),
      );
      return Math.max(full, any);
    }),
  );
}

function nthHighest(numbers: readonly number[], n: number): number {
  return [...numbers].sort((a, b) => b - a)[n - 1] ?? 0;
}
