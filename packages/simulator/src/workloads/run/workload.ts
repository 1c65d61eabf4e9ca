/** A workload as the simulator runs it: the function, and the tally that it fills. */
import type { Simulation } from "@stamp/virtual-time";
import type { Focus } from "../faults/fault-kinds.ts";

/** Tally that a workload fills while it runs, so that a failed run has it too. */
export interface Tally {
  faults: Readonly<Record<string, number>>;
  readonly counts: Record<string, number>;
  /** Largest value of each measurement. */
  readonly most: Record<string, number>;
}

export type Workload = (sim: Simulation, tally: Tally, focus?: Focus) => Promise<void>;
