/**
 * A whole stamp in one process, for test suites and small machines. `startStamp` returns endpoints and a connection
 * string. The caller owes: `stop`, and a folder that no other process uses.
 */
export { type Stamp, startStamp } from "./start-stamp.ts";
