/** Virtual time as a stage for clients; what they count goes into the run's tally. */
import type { HistoryStage } from "@stamp/histories";
import type { Simulation } from "@stamp/virtual-time";
import type { Tally } from "./workload.ts";

export const stageOf = (sim: Simulation, tally: Tally): HistoryStage => ({
  nowMs: () => sim.nowMs,
  sleep: (ms) => sim.sleep(ms),
  count: (what, by = 1) => {
    tally.counts[what] = (tally.counts[what] ?? 0) + by;
  },
});
