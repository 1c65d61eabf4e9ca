/**
 * Facts about a stamp at one moment for `stamp health` and `stamp status`. Every process was asked once, all at the
 * same time, under one deadline: a missing answer is undefined here, and never replaced by an earlier one.
 */
import type { ClusterStatus, ProcessStatus } from "@stamp/cluster";
import type { SecretFacts } from "@stamp/ports";
import type {
  ExtentInfo,
  FeatureLevelStatus,
  GetStatusResponse,
  NodeInfo,
  ProcessVersions,
  QuarantinedReplica,
  RangePartition,
  RepairStatus,
  ServerInfo,
  StreamInfo,
} from "@stamp/wire";

/** A copy of the metadata on an extent node. */
export interface MetadataCopy {
  readonly node: string;
  /** Path of the copy, on this machine or in the node's container. */
  readonly path: string;
  /** Number of the last transaction in the copy: the highest is the newest copy. */
  readonly version: number;
  /** Wall time of the lock service, in milliseconds since 1970. */
  readonly takenAtMs: number;
}

export type RoleFacts = Readonly<Record<string, unknown>>;

/** Answer of a process about itself. */
export interface ProcessAnswer extends Pick<GetStatusResponse, "release" | "state" | "ready" | "waitingFor"> {
  /** Formats and protocols that the process reads and writes; absent: it is of a release before feature levels. */
  readonly versions?: ProcessVersions | undefined;
  readonly uptimeMs: number;
  /** How far the wall clock of its machine is ahead of ours, in milliseconds; undefined where it does not say. */
  readonly wallAheadMs: number | undefined;
  /** How far that clock was set since the process started, in milliseconds. */
  readonly wallSetMs: number;
  /** Facts about the stamp's secret; undefined for a process that proves nothing, or is of an older release. */
  readonly secret?: SecretFacts | undefined;
  readonly facts: RoleFacts;
}

export interface ProcessFacts extends ProcessStatus {
  /** Answer of the process; undefined: none before the deadline. */
  readonly answer: ProcessAnswer | undefined;
  /** Reason why the process did not answer; empty: it did. */
  readonly silence: string;
  /** Kind of the silence; undefined if there is an answer. */
  readonly absence: ProcessAbsence | undefined;
}

/**
 * `gone`: nobody listens at the address. `refused`: a process is there and does not accept the secret of this command. `late`: no answer in time,
 * so whether the process serves is not known.
 */
export type ProcessAbsence = "gone" | "refused" | "late";

/** Secret that this command proves. */
export interface AskerFacts {
  readonly secretFile: string;
  /** Reason why the file can't be used; empty: it can. */
  readonly problem: string;
  /** True if the secret can't be read: then each call ends before it is made. */
  readonly isMute: boolean;
}

/** Words for commands that help: where the stamp is, and how it was started. */
export interface CommandPlace {
  /** Data folder of this host; `inContainers` for containers; empty if commands need not, or cannot, name one. */
  readonly dataDir: string;
  /** Name of this host in the topology; undefined without one. */
  readonly host: string | undefined;
  /** Data folders of the hosts of a topology, by name. */
  readonly hostDirs: Readonly<Record<string, string>>;
  /** Command that reaches the containers, with compose file and project, e.g. `docker compose -f compose.ha.yml -p stamp`; `kubectl` in pods. */
  readonly compose: string;
  /** Process whose container asks. */
  readonly container: string;
  /** Names of compose services that differ from the name of their process. */
  readonly services: Readonly<Record<string, string>>;
  /** Options with which a command reaches the location service, e.g. ` --data /srv/two`; empty if they are not known. */
  readonly location: string;
}

/** Answer of the leading stream manager. */
export interface StreamLayerFacts {
  readonly nodes: readonly NodeInfo[];
  readonly repair: RepairStatus | undefined;
  /** Feature level of the stamp; undefined: the stream manager is of a release before feature levels. */
  readonly level?: FeatureLevelStatus | undefined;
  readonly quarantine: readonly QuarantinedReplica[];
  /** First 200 streams. */
  readonly streams: readonly StreamInfo[];
  /** First 200 extents. */
  readonly extents: readonly ExtentInfo[];
  readonly more: { readonly streams: boolean; readonly extents: boolean };
}

/** Answer of the leading partition manager. */
export interface PartitionLayerFacts {
  readonly ranges: readonly RangePartition[];
  readonly servers: readonly ServerInfo[];
}

/** Configuration and data folder; only where they are ours (a supervised cluster). */
export interface SetUpFacts {
  readonly dataDir: string;
  /** Address of the REST doors. */
  readonly httpBind: string;
  /** Address of gRPC, the bus and the health doors. */
  readonly internalBind: string;
  /** REST ports that other machines can reach, in words; undefined if none. */
  readonly restReach: string | undefined;
  /** Internal ports that other machines can reach, in words; undefined if none. */
  readonly internalReach: string | undefined;
  /** Why no account of the configuration is served; undefined if one is. */
  readonly noAccount: string | undefined;
  readonly copies: number;
  readonly minCopies: number;
  readonly extentNodes: number;
  readonly faultDomains: readonly string[];
  /** Someone who knows the public key may use the stamp from another machine. */
  readonly developmentAccountForOthers: boolean;
  readonly tls: TlsFacts | undefined;
  /** Certificates with which processes and the operator prove who they are, the one that ends first; undefined without them. */
  readonly peers: TlsFacts | undefined;
  /** Extent nodes that have a disk in the folder and are not started. */
  readonly notStarted: readonly string[];
  /** Files and folders of the data folder that other users of the machine may read. */
  readonly openPaths: readonly string[];
}

export interface TlsFacts {
  readonly certificate: string;
  /** End of the certificate, in milliseconds since 1970; undefined: it can't be read. */
  readonly endsAtMs: number | undefined;
  /** Reason why the certificate can't be read; empty: it can. */
  readonly problem: string;
}

export interface StampFacts {
  /** Wall clock of this machine, in milliseconds since 1970. */
  readonly nowMs: number;
  /** `none`: the processes run in containers, or were started by hand. */
  readonly supervisor: "answers" | "silent" | "gone" | "none";
  /** Process of the supervisor; null while there is none. */
  readonly supervisorPid: number | null;
  readonly asker: AskerFacts;
  readonly place: CommandPlace;
  readonly cluster: Pick<ClusterStatus, "dataDir" | "endpoints" | "connectionString" | "lockService" | "problems">;
  readonly processes: readonly ProcessFacts[];
  /** Facts about streams and extents; undefined: no leading stream manager answered. */
  readonly streamLayer: StreamLayerFacts | undefined;
  /** Facts about ranges; undefined: no leading partition manager answered. */
  readonly partitionLayer: PartitionLayerFacts | undefined;
  readonly setUp: SetUpFacts | undefined;
  /** Newest copies of the metadata that lie in the data folder; looked for only while the lock service does not serve. */
  readonly copies: readonly MetadataCopy[];
}

/** Returns the value at a path among the facts of a role. */
export function factAt(facts: RoleFacts | undefined, path: string): unknown {
  return path.split(".").reduce<unknown>((at, part) => (at as RoleFacts | undefined | null)?.[part], facts);
}

/** Returns the number at a path among the facts of a role; 0: there is none. 64-bit numbers come as text. */
export function numberAt(facts: RoleFacts | undefined, path: string): number {
  const value = Number(factAt(facts, path) ?? 0);
  return Number.isFinite(value) ? value : 0;
}
