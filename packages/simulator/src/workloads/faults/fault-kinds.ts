/** Kinds of faults, how likely each usually is, and how a focus makes some likely. */
import type { FailpointOptions, NetworkOptions } from "@stamp/virtual-time";
import type { ReshapeOptions } from "../reshapes.ts";

/** Faults of the disk of one machine, or of the stores on it. */
export type DiskFaultKind =
  | "slow-disk"
  | "failed-fsync"
  | "full-disk"
  | "lost-table"
  /** A file of an extent, or the newest segment of a journal, is gone when the machine comes back. */
  | "lost-file"
  /** These, and the one above, destroy what was durable; they hit one machine of a run only, the others must be enough. */
  | "bit-rot"
  | "replaced-disk"
  | "old-replica"
  | "lying-disk"
  /** A fragment rots or is gone, on one of two machines; only where the workload says so. */
  | "fragment-damage"
  /**
   * The lock service's store opens, but has lost its last batches or a key. Where it is refused, a person puts the disk's content back. Only
   * where a focus says so.
   */
  | "forgetful-store"
  /**
   * The folder of a lock service that replicates its store is lost, damaged, or put back as it was before, when every member has its standing. Only
   * where a focus says so.
   */
  | "member-folder"
  /** The tables of some extent nodes, or of all, open, but have lost their last batches. Only where a focus says so. */
  | "forgetful-table";

export type FaultKind =
  | DiskFaultKind
  | "crash"
  | "rack-loss"
  | "power-loss"
  | "partition"
  | "partition-one-way"
  | "split"
  /** Between two processes only. */
  | "cut-pair"
  /** A connection of one process to another breaks, and both live; only where a focus says so. */
  | "broken-connection"
  | "pause"
  /** Like a pause, but monotonic time stands still meanwhile; only where a focus says so. */
  | "suspend"
  | "bad-network"
  | "clock-jump"
  | "swizzle"
  /** Somebody splits, merges or moves a range; only where the workload says which. */
  | "reshape"
  /**
   * The leading stream manager reaches one extent node only, which often reaches no other; that one loses its disk; and the manager may be
   * deposed meanwhile, with what it sent still on its way. Only where a focus says so.
   */
  | "lone-answer";

/** Makes some faults likely, so that a mutant is found with few seeds. Kinds that are not named come as usual, but seldom. */
export interface Focus {
  readonly weights?: Partial<Record<FaultKind, number>>;
  /** Processes hit most. */
  readonly targets?: RegExp;
  readonly everyMs?: number;
  readonly lastsMaxMs?: number;
  /** Multiplies the chance of kinds that are not named. */
  readonly others?: number;
  readonly failpoints?: Partial<FailpointOptions>;
  /** Pairs of processes that are cut from each other. */
  readonly pairs?: readonly (readonly [RegExp, RegExp])[];
  /** How often a lone answer has its manager deposed; a half when absent. */
  readonly deposedChance?: number;
  /** While faults come. */
  readonly network?: Partial<NetworkOptions>;
  /** Owners of streams rest for up to so long between appends, at times. */
  readonly ownersRestMs?: number;
  /** Largest record that owners of streams append, in bytes; small ones, and at times up to 40,000, when absent. */
  readonly recordBytesMax?: number;
  /** How long owners of streams, or clients of workload `geo`, work, in milliseconds of virtual time; 25,000 or 45,000 when absent. */
  readonly workMs?: number;
  /** True if the stamp has two lock services over a simulated etcd. */
  readonly overEtcd?: boolean;
  /** True if the stamp has three lock services that replicate the metadata store. */
  readonly replicatesMetadata?: boolean;
  /** Callers of workload `coding` ask for so many extents, the oldest, again and again; any extents when absent. */
  readonly codesFew?: number;
  /** True if they ask for extents whose first replica is on the machine that may lose what was durable, as long as there are some. */
  readonly codesOfWeak?: boolean;
  /** True if a person asks for the deletion of any fragment all the time; in every fifth run when absent. */
  readonly deletesStrays?: boolean;
  /** Grace of deletions in workload `coding`, in milliseconds; the seed's choice when absent. */
  readonly deletionGraceMs?: number;
  /** True if in the end metadata of before a coding are restored, then those of after it (older-metadata.ts). */
  readonly restoresMetadata?: boolean;
  /** True if once the folder of the lock service is put back from a backup (older-folder.ts). */
  readonly putsFolderBack?: boolean;
  /** True if once every extent node is down, and a person accepts what is lost by it (accepted-loss.ts). */
  readonly acceptsLoss?: boolean;
  /** Settings of workload `geo`. */
  readonly geo?: GeoFocus;
}

/** Settings of workload `geo`; the seed's choice when absent. */
export interface GeoFocus {
  /** Longest pause between operations on the account, in milliseconds. */
  readonly restMaxMs?: number;
  /** How often a failover is forced. */
  readonly forcedChance?: number;
  /** How often a person who looks at an operation gives it up; 0.03 when absent. */
  readonly giveUpChance?: number;
  /** Usual time between faults of the link, reshapes and collections, in milliseconds. */
  readonly linkEveryMs?: number;
  /** How often a process dies when an operation has made a step. */
  readonly stepCrashChance?: number;
  /** Longest pause of a client between two requests, in milliseconds. */
  readonly pauseMaxMs?: number;
  /** True if ranges are split and moved, and never merged. */
  readonly splitsOnly?: boolean;
  /** Further settings of partition servers. */
  readonly partitionServer?: Readonly<Record<string, number>>;
}

export interface FaultOptions {
  /** Processes that faults may hit. */
  readonly targets: readonly string[];
  /** Processes without a role: their crash is for good, whoever uses one starts a new one. */
  readonly clients: readonly string[];
  /** Multiplies the time between faults: what recovers slowly must have time to. */
  readonly pace: number;
  readonly focus?: Focus | undefined;
  /** Process that the workload depends on now: under a focus it is hit more often than others of its kind. */
  readonly matters?: () => string | undefined;
  /** Ranges that may be split, merged and moved; none when absent. */
  readonly reshapes?: ReshapeOptions;
  /** True if extents are coded: fragments on two machines may be damaged. */
  readonly damagesFragments?: boolean;
  /** Time for which faults go on, in milliseconds; the moments at which priorities change are drawn from it. */
  readonly withinMs: number;
}

/** Kinds that come only where a focus names them. */
export const focusedOnly = ["broken-connection", "suspend", "lone-answer", "forgetful-store", "forgetful-table", "member-folder"] as const;

/** Weight of each kind where no focus says another. */
export const usualWeights: Record<Exclude<FaultKind, "reshape" | "fragment-damage" | (typeof focusedOnly)[number]>, number> = {
  crash: 10,
  "rack-loss": 2,
  "power-loss": 1,
  partition: 6,
  "partition-one-way": 4,
  split: 4,
  "cut-pair": 4,
  pause: 4,
  "bad-network": 2,
  "slow-disk": 2,
  "failed-fsync": 1,
  "full-disk": 1,
  "clock-jump": 1,
  "lost-table": 1,
  swizzle: 1,
  "lost-file": 1,
  "bit-rot": 1,
  "replaced-disk": 1,
  "old-replica": 0,
  "lying-disk": 0,
};
