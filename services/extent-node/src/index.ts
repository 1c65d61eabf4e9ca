/**
 * The extent node: appends at the primary and the secondaries, the journal, reads, copies, scrub. `ExtentNodeRole`
 * takes a `World`.
 */

export { type CheckedDisk, checkDisk, type DiskProblem, type OfflineParts, type RebuiltDisk, rebuildDisk } from "./check/offline.ts";
export { type ExtentNodeConfig, extentNodeSchema } from "./config.ts";
export { ExtentNodeRole } from "./extent-node.ts";
export { extentNodeMetrics } from "./metrics.ts";
