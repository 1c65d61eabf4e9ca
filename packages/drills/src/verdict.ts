/**
 * How a drill ended: every promise kept, or kept while writes were held up for longer than the aim, or a promise broken.
 *
 * The aims are for a machine with room. A machine with much to do makes every write slow, with or without a fault, so a
 * hold-up counts as over the aim only if it is also longer than `ratioToBefore` times the slowest write before the fault.
 */

export type Verdict = "kept" | "slow" | "broken";

/** Longest hold-up that a busy machine excuses, as a multiple of the slowest write before the fault. */
export const ratioToBefore = 2;

export interface HoldUp {
  /** Longest time from the first attempt of a write to its acknowledgement, in ms. Infinity if none was acknowledged. */
  readonly longestHoldUpMs: number;
  readonly holdUpAimMs: number;
  /** Longest such time before the fault, in ms. */
  readonly slowestBeforeMs: number;
  /** Longest reads of coded blobs. Undefined: the drill has none. */
  readonly codedReads?: ReadHoldUp;
}

export interface ReadHoldUp {
  /** Longest time from the first attempt of a read to its answer, in milliseconds. */
  readonly longestMs: number;
  readonly aimMs: number;
  readonly slowestBeforeMs: number;
}

/** Times of one kind of operation, with the aims for them. */
interface Measured {
  readonly longestMs: number;
  readonly aimMs: number;
  readonly slowestBeforeMs: number;
  /** Noun for one operation, for the report. */
  readonly word: string;
  readonly told: string;
}

const measuredOf = ({ longestHoldUpMs, holdUpAimMs, slowestBeforeMs, codedReads }: HoldUp): readonly Measured[] => [
  { longestMs: longestHoldUpMs, aimMs: holdUpAimMs, slowestBeforeMs, word: "write", told: "writes were held up" },
  ...(codedReads === undefined ? [] : [{ ...codedReads, word: "read", told: "reads of coded blobs took" }]),
];

const isSlow = ({ longestMs, aimMs, slowestBeforeMs }: Measured): boolean => longestMs > Math.max(aimMs, ratioToBefore * slowestBeforeMs);

export function verdictOf(broken: readonly string[], heldUp: HoldUp): Verdict {
  if (broken.length > 0) return "broken";
  return measuredOf(heldUp).some(isSlow) ? "slow" : "kept";
}

const ms = (value: number): string => `${value.toLocaleString("en-US")} ms`;

/** Returns the last line of a drill. */
export function conclusionOf(drill: string, broken: readonly string[], heldUp: HoldUp): string {
  const verdict = verdictOf(broken, heldUp);
  if (verdict === "broken")
    return `${drill}: BROKEN. ${broken.length === 1 ? "One promise was" : `${broken.length} promises were`} broken: ${broken[0]?.split("\n")[0]}`;
  return `${drill}: ${verdict.toUpperCase()}. Every promise was kept; ${measuredOf(heldUp).map(measuredText).join("; ")}.`;
}

function measuredText(measured: Measured): string {
  const { longestMs, aimMs, slowestBeforeMs, word, told } = measured;
  const longest = `${told} ${ms(longestMs)} at most`;
  if (longestMs <= aimMs) return `${longest}, within the aim of ${ms(aimMs)}`;
  const busy = `${ratioToBefore} times the slowest ${word} before the fault (${ms(slowestBeforeMs)})`;
  return isSlow(measured)
    ? `${longest}: over the aim of ${ms(aimMs)}, and over ${busy}`
    : `${longest}: over the aim of ${ms(aimMs)}, within ${busy} on this busy machine`;
}
