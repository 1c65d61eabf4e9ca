/** Steps that load balancing took, and whether it moved a range to and fro. */

export interface Step {
  readonly kind: string;
  readonly rangeId: string;
  readonly to: string;
  readonly why: string;
  readonly failure: string;
  /** Since the load began. */
  readonly atMs: number;
}

/** Steps that are in `told` and not in `known` yet, in the order of time. A step is told again at each look, with its age. */
export function newSteps(known: readonly Step[], told: readonly Step[]): Step[] {
  // Two ages of one step differ by the time that a look takes.
  const same = (a: Step, b: Step): boolean => a.kind === b.kind && a.rangeId === b.rangeId && Math.abs(a.atMs - b.atMs) < 5_000;
  return told.filter((step) => !known.some((each) => same(each, step))).sort((a, b) => a.atMs - b.atMs);
}

/** Moves of a range that was moved within `withinMs` before, each with that time. */
export function againMoved(steps: readonly Step[], withinMs: number): { readonly step: Step; readonly afterMs: number }[] {
  const last = new Map<string, number>();
  const found: { step: Step; afterMs: number }[] = [];
  for (const step of steps) {
    if (step.kind !== "move" || step.failure !== "") continue;
    const before = last.get(step.rangeId);
    if (before !== undefined && step.atMs - before < withinMs) found.push({ step, afterMs: step.atMs - before });
    last.set(step.rangeId, step.atMs);
  }
  return found;
}
