/**
 * The extent node: appends at the primary and the secondaries, the journal, reads, copies, scrub. `ExtentNodeRole`
 * takes a `World`.
 */
export { checkDisk, rebuildDisk } from "./check/offline.ts";
export { extentNodeSchema } from "./config.ts";
export { ExtentNodeRole } from "./extent-node.ts";
export { extentNodeMetrics } from "./metrics.ts";
