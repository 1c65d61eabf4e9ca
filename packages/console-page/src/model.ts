/**
 * The messages of the console to its page. The command line makes these objects from the facts of `stamp status`; the page only shows them.
 * Times are in milliseconds since 1970, unless a name says otherwise.
 */

export interface Finding {
  readonly severity: "critical" | "warning" | "note";
  readonly code: string;
  /** Process, node, range or file that the finding is about; empty for the whole stamp. */
  readonly subject: string;
  readonly cause: string;
  /** Command that helps. */
  readonly help: string;
}

export interface ProcessRow {
  readonly name: string;
  readonly role: string;
  /** Host of the topology; empty without one. */
  readonly host: string;
  /** Null while the process is down, or where nobody knows it. */
  readonly pid: number | null;
  readonly grpc: string;
  readonly state: string;
  readonly ready: boolean;
  readonly waitingFor: readonly string[];
  readonly restarts: number;
  readonly lastExit: string;
  /** Null if the process did not answer. */
  readonly uptimeMs: number | null;
  readonly release: string;
  /**
   * Work that it took on in a second: requests of clients at a front-end, operations of front-ends at a partition server, appends at an extent
   * node. Null for other roles, and until two answers are there to compare.
   */
  readonly workPerSecond: number | null;
}

export interface NodeRow {
  readonly name: string;
  readonly up: boolean;
  /** serving, draining, decommissioned. */
  readonly duty: string;
  readonly faultDomain: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly replicas: number;
  /** Reasons why a draining node is not empty yet. */
  readonly blocked: readonly string[];
  /** Number of files that can still be made on its disk; null: it has no fixed number, or the node did not answer. */
  readonly freeFiles: number | null;
  /** Recent 99th percentile of a sync of the journal, in milliseconds; null if nothing was synced, or the node did not answer. */
  readonly syncP99Ms: number | null;
  /** Appends of the last seconds, per second; null if the node did not answer. */
  readonly appendsPerSecond: number | null;
  /** Fragments of coded extents; null if the node did not answer. */
  readonly fragments: number | null;
  /** Extents that it takes: everything, no new extents, nothing; empty if the node did not answer. */
  readonly takes: string;
  /** Its disk, and that of the journal if it has one of its own; none if the node did not answer. */
  readonly disks: readonly DiskRow[];
  /** How far the node is with reading everything again, in words; empty if the node did not answer. */
  readonly scrub: string;
  /** Damage that scrubbing found, in words. */
  readonly scrubFindings: readonly string[];
}

/** Queue of one disk. Times are in milliseconds. */
export interface DiskRow {
  /** data, journal. */
  readonly name: string;
  readonly freeBytes: number;
  readonly inHand: number;
  readonly waiting: number;
  /** Longest wait of an operation that waits now. */
  readonly oldestMs: number;
  /** Operations that were refused since the node started. */
  readonly refused: number;
  readonly classes: readonly { readonly name: string; readonly started: number; readonly meanMs: number; readonly maxMs: number }[];
}

/** Recent latencies of one kind of work of one process. */
export interface LatencyRow {
  readonly process: string;
  readonly what: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Figures of one moment. A rate is null until two answers of a process are there to compare. */
export interface Point {
  readonly atMs: number;
  readonly requestsPerSecond: number | null;
  readonly errorsPerSecond: number | null;
  readonly writtenPerSecond: number | null;
  readonly readPerSecond: number | null;
  /** Highest recent percentiles among the kinds of requests of the front-ends; null without requests. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

export interface StampEvent {
  /** Rises by one from event to event, from 1. */
  readonly number: number;
  readonly atMs: number;
  readonly kind: "good" | "bad" | "change";
  readonly subject: string;
  readonly text: string;
}

export type State = "healthy" | "degraded" | "unknown" | "danger" | "stopped" | "absent";

export interface Snapshot {
  readonly atMs: number;
  /** `absent`: no stamp runs on the data folder, or it could not be asked. */
  readonly state: State;
  readonly sentence: string;
  readonly findings: readonly Finding[];
  readonly dataDir: string;
  readonly endpoints: readonly { readonly name: string; readonly url: string }[];
  readonly processes: readonly ProcessRow[];
  readonly nodes: readonly NodeRow[];
  /** Repair of replicas and fragments, line by line; none if no stream manager told. */
  readonly repair: readonly string[];
  readonly latency: readonly LatencyRow[];
  readonly figures: Point;
}

export interface StreamRow {
  readonly name: string;
  readonly ownerEpoch: number;
  readonly extentCount: number;
}

export interface ExtentRow {
  readonly id: string;
  /** Empty for an extent that no list of a stream holds. */
  readonly stream: string;
  /** allocating, open, sealing, sealed, dropped. */
  readonly state: string;
  readonly ownerEpoch: number;
  /** Sealed length in bytes; null before the seal. */
  readonly sealedBytes: number | null;
  /** Nodes of the replicas, the primary first; for a coded extent, of the fragments by index. */
  readonly nodes: readonly string[];
  /** Name of the erasure code; empty for replicas. */
  readonly coding: string;
  /** Replicas or fragments that are whole; null while the extent is open. */
  readonly intact: number | null;
  /** Work of the stream manager on the extent now; empty for none. */
  readonly attempt: string;
}

/** Bytes of a blob that follow one another in its content and lie in one place. */
export interface PieceRow {
  readonly startBytes: number;
  readonly bytes: number;
  /** row: in the row of the blob; zeros: nowhere, pages that were never written. */
  readonly where: "extent" | "row" | "zeros";
  /** Range with the rows of the blob. */
  readonly range: string;
  /** Empty without an extent. */
  readonly extentId: string;
  /** Null without an extent, or if it was given back meanwhile. */
  readonly extent: ExtentRow | null;
}

/** A blob with bytes in an extent. `container`: that of a share begins with "~". */
export interface ExtentUserRow {
  readonly account: string;
  readonly container: string;
  readonly name: string;
  readonly bytes: number;
  readonly range: string;
}

export interface RangeRow {
  readonly id: string;
  readonly table: string;
  /** Bounds as text: the first key inside and the first key behind; empty for no bound. */
  readonly lowKey: string;
  readonly highKey: string;
  /** Empty while no server has the range. */
  readonly server: string;
  readonly loaded: boolean;
  readonly ownerEpoch: number;
  /** Split, merge or move under way; empty for none. */
  readonly change: string;
  readonly readsPerSecond: number | null;
  readonly writesPerSecond: number | null;
  readonly throttledPerSecond: number | null;
  /** Mean of requests that ended. */
  readonly latencyMs: number | null;
  /** Requests in progress. */
  readonly pending: number | null;
  /** Size of the rows in memory and checkpoints, without blob data. */
  readonly rowBytes: number | null;
}

/** Load over key space and time. */
export interface HeatMap {
  /** Length of the time of a column, in milliseconds. */
  readonly columnMs: number;
  /** Begin of the time of each column, the oldest first. A time at which nobody was asked has no column. */
  readonly columns: readonly number[];
  readonly bands: readonly HeatBand[];
}

/** Neighbouring ranges of one table, sorted by key from band to band. */
export interface HeatBand {
  readonly table: string;
  /** Bounds as those of a range. */
  readonly lowKey: string;
  readonly highKey: string;
  readonly firstRange: string;
  readonly lastRange: string;
  readonly ranges: number;
  /** Requests per second of the busiest range in each column, refused ones included; null: not known. */
  readonly loads: readonly (number | null)[];
}

/** Plan of load balancing, and the steps that it took. */
export interface BalanceRows {
  /** True if it carries out its plan by itself. */
  readonly isAutomatic: boolean;
  /** Why nothing is begun now. */
  readonly waitsFor: readonly string[];
  /** The most urgent first. */
  readonly planned: readonly BalanceRow[];
  /** The newest first. */
  readonly done: readonly BalanceRow[];
}

export interface BalanceRow {
  /** split, merge, move. */
  readonly kind: string;
  readonly range: string;
  /** Server that gets the range; empty for a split or merge. */
  readonly to: string;
  readonly why: string;
  /** Why it could not be done; empty if it was, or is only planned. */
  readonly failure: string;
  /** Null for what is only planned. */
  readonly atMs: number | null;
}

export interface DrillRow {
  readonly name: string;
  readonly about: string;
  /** Longest hold-up of a write that the design aims at, in milliseconds. */
  readonly aimMs: number;
}

/** A drill on this stamp, from its start on. */
export interface DrillRun {
  readonly drill: string;
  readonly startedMs: number;
  readonly isOver: boolean;
  /** Timeline. `atMs`: time from the first fault, negative before it; null while no fault has come. */
  readonly entries: readonly { readonly atMs: number | null; readonly what: string }[];
  /** Writes of the drill's clients, second by second. `longestMs`: longest time that one took; null without any. */
  readonly writes: readonly { readonly atMs: number; readonly count: number; readonly longestMs: number | null }[];
  /** kept, slow, broken; failed: the drill came to no judgement. Empty while it runs. */
  readonly verdict: string;
  readonly conclusion: string;
  /** Broken promises. */
  readonly broken: readonly string[];
}

export interface Drills {
  /** Why no drill can run on this stamp; empty if one can. */
  readonly whyNot: string;
  readonly drills: readonly DrillRow[];
  readonly run: DrillRun | null;
}

/** A fault rule at the front-ends. */
export interface FaultRow {
  readonly name: string;
  readonly fault: string;
  /** Conditions and numbers, as options of `stamp faults add`. */
  readonly which: string;
  /** Requests that it has made fail or wait. */
  readonly hits: number;
  readonly isOver: boolean;
}

/** A stamp as the location service knows it. */
export interface StampRow {
  readonly name: string;
  readonly location: string;
  /** open, closed, draining, lost. */
  readonly state: string;
  readonly answers: boolean;
  readonly trouble: string;
  readonly usedBytes: number;
  readonly totalBytes: number;
  readonly accounts: number;
}

/** An account with a second stamp, or with an operation under way. */
export interface CopyRow {
  readonly name: string;
  /** Primary stamp. */
  readonly stamp: string;
  /** Stamp with the copy; empty if there is none. */
  readonly secondary: string;
  readonly state: string;
  /** True if the copy is complete. */
  readonly isSeeded: boolean;
  readonly queues: boolean;
  /** Null if not known. */
  readonly lagSeconds: number | null;
  readonly lag: string;
  readonly pending: string;
  /** Step of the operation under way, in words; empty for none. */
  readonly step: string;
  readonly trouble: string;
  /** Loss of a forced failover that began now, in words. */
  readonly loss: string;
}

export interface Geo {
  /** Address of the location service; empty if the console was told none. */
  readonly at: string;
  readonly stamps: readonly StampRow[];
  readonly copies: readonly CopyRow[];
  /** True if there are accounts that were not looked at. */
  readonly more: boolean;
}

/** Rows of an account that only a deposed primary had. */
export interface DivergedReport {
  readonly stamp: string;
  /** Why the report is not complete; empty if it is. */
  readonly trouble: string;
  /** Failover, what happened, table or container, blob or PartitionKey, RowKey, time of the write. */
  readonly rows: readonly (readonly string[])[];
  readonly more: boolean;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; null behind the last item. */
  readonly next: string | null;
}

/** Lists that the page asks for. `source.ts` asks over HTTP. */
export interface Source {
  streams(after: string): Promise<Page<StreamRow>>;
  extents(after: string): Promise<Page<ExtentRow>>;
  extentsOf(stream: string, after: string): Promise<Page<ExtentRow>>;
  /** Asks for one extent; none if there is no such one. */
  extent(id: string): Promise<readonly ExtentRow[]>;
  /** Blobs with bytes in the extent. */
  extentUsers(id: string, after: string): Promise<Page<ExtentUserRow>>;
  ranges(after: string): Promise<Page<RangeRow>>;
  /** Asks for one range; none if there is no such one. */
  range(id: string): Promise<readonly RangeRow[]>;
  /** Asks for the load of the last hour, of all ranges or of one; an empty name stands for all. */
  heat(range: string): Promise<HeatMap>;
  balance(): Promise<BalanceRows>;
  /** Asks for the state of erasure coding, a line each. */
  coding(): Promise<readonly string[]>;
  drills(): Promise<Drills>;
  faults(): Promise<readonly FaultRow[]>;
  geo(): Promise<Geo>;
  diverged(account: string): Promise<readonly DivergedReport[]>;
  /** Role of the session: read, data, operate. */
  role(): Promise<string>;
  signOut(): Promise<void>;
}
