/**
 * Runs a plan (@stamp/objects) over rows. Rows that are in memory are there at once, and a plan may work for long on what it has read: it
 * gives way after a slice (Turns), at its next read or pause.
 */
import { FailureError, type Outcome, ok } from "@stamp/base";
import type { Plan } from "@stamp/objects";
import { type Clock, Turns } from "@stamp/ports";
import type { RowView } from "./engine.ts";

/** Runs a plan; `seen`: gets the number of bytes of the rows that were read. */
export async function runPlan<T>(
  clock: Clock,
  plan: Plan<T>,
  view: RowView,
  seen: (bytes: number) => void = () => {},
): Promise<Outcome<T>> {
  try {
    const turns = new Turns(clock);
    let step = plan.next();
    while (!step.done) {
      if (turns.over) await turns.next();
      const read = step.value;
      if (read.kind === "get") {
        const value = await view.get(read.key);
        if (!value.ok) return value;
        seen(value.value?.length ?? 0);
        step = plan.next({ kind: "get", value: value.value });
      } else if (read.kind === "walk") {
        const walked = await view.walk(read.low, read.high, (row) => {
          seen(row.value.length);
          return read.visit(row);
        });
        if (!walked.ok) return walked;
        step = plan.next({ kind: "walk" });
      } else if (read.kind === "pause") {
        step = plan.next({ kind: "pause" });
      } else {
        const rows = await view.scan(read.low, read.high, read);
        if (!rows.ok) return rows;
        seen(rows.value.rows.reduce((sum, row) => sum + row.value.length, 0));
        step = plan.next({ kind: "scan", ...rows.value });
      }
    }
    return ok(step.value);
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}
