/** State of the processes for `stamp status --json` and for the supervisor's control. */
import type { Endpoints } from "./plan.ts";

export interface ProcessStatus {
  /** Host of the topology; absent without one. */
  readonly host?: string;
  readonly role: string;
  readonly name: string;
  /** Process id; null while the process is down. */
  readonly pid: number | null;
  readonly grpc: string;
  readonly http: string;
  /** leader, standby, serving, …; starting, restarting, down, not answering. */
  readonly state: string;
  readonly ready: boolean;
  /** Names of processes or steps that the process waits for. */
  readonly waitingFor: readonly string[];
  readonly restarts: number;
  readonly lastExit: string;
}

export interface ClusterStatus {
  readonly running: boolean;
  readonly ready: boolean;
  readonly supervisorPid: number | null;
  readonly dataDir: string;
  readonly processes: readonly ProcessStatus[];
  /** Notes that the supervisor can't write into the data folder, with the reasons; absent from a supervisor of an older release. */
  readonly problems?: readonly string[];
  readonly endpoints: Endpoints;
  readonly connectionString: string;
  readonly lockService: string;
}
