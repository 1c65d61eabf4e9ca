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
  /** Recent 99th percentile of a sync of the journal, in milliseconds; null if nothing was synced, or the node did not answer. */
  readonly syncP99Ms: number | null;
  /** Appends of the last seconds, per second; null if the node did not answer. */
  readonly appendsPerSecond: number | null;
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
  ranges(after: string): Promise<Page<RangeRow>>;
  /** Role of the session: read, data, operate. */
  role(): Promise<string>;
  signOut(): Promise<void>;
}
