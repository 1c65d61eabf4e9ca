/** The record of a data folder, for commands that ask a running cluster. */
import { readClusterRecord } from "@stamp/cluster";

/** Data folders whose record could not be read, and was not written again by the supervisor that runs on them. */
export const withoutRecords = new Set<string>();

/** Returns what the data folder remembers; undefined if it has no record, or one that a running supervisor can't write again. */
export const recordOf = (dataDir: string): ReturnType<typeof readClusterRecord> =>
  withoutRecords.has(dataDir) ? undefined : readClusterRecord(dataDir);
