/**
 * A whole stamp in one process, for test suites and small machines: the library of the package `stamp-storage`. The caller owes: `stop`, and a
 * folder that no other process uses.
 */
export { type StartOptions, startStamp, threeOnDisk } from "./start-stamp.ts";
export type { BlobSettings, FaultRule, FaultRuleState, Faults, Stamp, StampOptions, StartStamp } from "./types.ts";
