/** A worker process: one seed at a time, on request of its parent. */
import type { SeedJob } from "./report.ts";
import { runSeed } from "./run-seed.ts";

process.on("message", (job: SeedJob) => {
  void runSeed(job).then((report) => process.send?.(report));
});
process.on("disconnect", () => process.exit(0));
