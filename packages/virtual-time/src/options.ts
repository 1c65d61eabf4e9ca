/** How a simulation and its processes are set up, and how a run fails. */
import type { Rules } from "@stamp/base";
import type { DiskOptions } from "./ports/disk-state.ts";
import type { NetworkOptions } from "./ports/network.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly rules?: Rules;
  readonly network?: Partial<NetworkOptions>;
  readonly disk?: Partial<DiskOptions>;
  /** Each process's monotonic clock is off by up to this many parts in a million. */
  readonly clockDriftPpmMax?: number;
  /** The monotonic clocks of processes start this far apart; 0: all show the same. */
  readonly clockStartSpreadMs?: number;
  /** True if the stamp has several lock services over a simulated etcd, not one over its own disk. */
  readonly overEtcd?: boolean;
  /** True if the stamp has three lock services that replicate the metadata store. */
  readonly replicatesMetadata?: boolean;
  /** Limit of virtual time; a run that reaches it fails. */
  readonly timeLimitMs?: number;
  readonly eventsMax?: number;
  /** True if a handler that throws what is no `FailureError` fails the run. Off only where a test throws on purpose. */
  readonly bugsFail?: boolean;
  /** Entries kept of the event log; 0 for all. */
  readonly logKeptMax?: number;
  readonly onLogLine?: (line: string) => void;
}

export interface ProcessOptions {
  /** Time after which the supervisor starts the process again, in milliseconds; undefined: only `restart` does. */
  readonly restartAfterMs?: number;
  /** True if the process does not start before `restart`. */
  readonly down?: boolean;
}

export interface CrashOptions {
  /** Fate of unsynced writes. `lost`: the machine lost power. `kept`: only the process died. Default: by the seed. */
  readonly unsynced?: "lost" | "kept";
  /** True if the machine says nothing to its peers any more, as without power. Default: by the seed when power was lost. */
  readonly silent?: boolean;
  /** True if the supervisor does not start the process again. */
  readonly stayDown?: boolean;
}

export class SimulationError extends Error {
  override readonly name = "SimulationError";
}
