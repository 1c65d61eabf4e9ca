/**
 * How a drill ended: every promise kept, or kept while writes were held up for longer than the aim, or a promise broken.
 *
 * The aims are for a machine with room. A machine with much to do makes every write slow, with or without a fault, so a
 * hold-up counts as over the aim only if it is also longer than `ratioToBefore` times the slowest write before the fault.
 */
import { exitCodes } from "../exit.ts";

export type Verdict = "kept" | "slow" | "broken";

/** Longest hold-up that a busy machine excuses, as a multiple of the slowest write before the fault. */
export const ratioToBefore = 2;

export interface HoldUp {
  /** Longest time from the first attempt of a write to its acknowledgement, in ms. Infinity if none was acknowledged. */
  readonly longestHoldUpMs: number;
  readonly holdUpAimMs: number;
  /** Longest such time before the fault, in ms. */
  readonly slowestBeforeMs: number;
}

export const allowedMs = ({ holdUpAimMs, slowestBeforeMs }: HoldUp): number => Math.max(holdUpAimMs, ratioToBefore * slowestBeforeMs);

export function verdictOf(broken: readonly string[], heldUp: HoldUp): Verdict {
  if (broken.length > 0) return "broken";
  return heldUp.longestHoldUpMs > allowedMs(heldUp) ? "slow" : "kept";
}

/** Returns the exit code of a run of drills: the worst verdict decides. `strict`: an aim that was missed is an error. */
export function exitCodeOf(verdicts: readonly Verdict[], strict: boolean): number {
  if (verdicts.includes("broken")) return exitCodes.promiseBroken;
  if (!verdicts.includes("slow")) return 0;
  return strict ? exitCodes.promiseBroken : exitCodes.heldUp;
}

const ms = (value: number): string => `${value.toLocaleString("en-US")} ms`;

/** Returns the last line of a drill. */
export function conclusionOf(drill: string, broken: readonly string[], heldUp: HoldUp): string {
  const verdict = verdictOf(broken, heldUp);
  if (verdict === "broken")
    return `${drill}: BROKEN. ${broken.length === 1 ? "One promise was" : `${broken.length} promises were`} broken: ${broken[0]?.split("\n")[0]}`;
  const { longestHoldUpMs, holdUpAimMs, slowestBeforeMs } = heldUp;
  const held = `${drill}: ${verdict.toUpperCase()}. Every promise was kept; writes were held up ${ms(longestHoldUpMs)} at most`;
  if (longestHoldUpMs <= holdUpAimMs) return `${held}, within the aim of ${ms(holdUpAimMs)}.`;
  const busy = `${ratioToBefore} times the slowest write before the fault (${ms(slowestBeforeMs)})`;
  return verdict === "kept"
    ? `${held}: over the aim of ${ms(holdUpAimMs)}, within ${busy} on this busy machine.`
    : `${held}: over the aim of ${ms(holdUpAimMs)}, and over ${busy}.`;
}
