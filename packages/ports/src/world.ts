/** Everything a role may touch of the world. A role takes it through its constructor and imports nothing else of it. */
import type { Metrics, Rules } from "@stamp/base";
import type { Clock } from "./clock.ts";
import type { Digest } from "./digest.ts";
import type { Disk } from "./disk.ts";
import type { Logger } from "./logger.ts";
import type { ForeignCalls } from "./outside/foreign-calls.ts";
import type { Random } from "./random.ts";
import type { KeyValueStores } from "./stores/key-value.ts";
import type { Tracer } from "./tracing/tracer.ts";
import type { Transport } from "./transport.ts";

export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly keyValue: KeyValueStores;
  readonly transport: Transport;
  readonly foreign: ForeignCalls;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly rules: Rules;
  /** Makes spans of requests; undefined: nothing is traced. */
  readonly tracer?: Tracer;
  /** Number of the operating-system process; absent where there is none of its own (simulator). */
  readonly pid?: number;
  /** Returns the CPU time of the process so far, user and system, in milliseconds; absent: it has no process of its own. */
  readonly cpuMs?: () => number;
  /** Memory of the machine, or of the container that the process runs in; absent where the process is not the role's own. */
  readonly memoryBytes?: number;
  /**
   * Secret with which this process proves itself to the others of its stamp; absent where nothing is proven (one
   * process, simulator).
   */
  readonly secret?: () => SecretFacts;
  /** Ends this process because it must not go on (failed fsync, lost term, broken invariant). Never returns in production. */
  fatal(reason: string): void;
}

export interface SecretFacts {
  /** Ids of the secrets that the process accepts, the one that it uses itself first: 16 hex digits each. Empty: it accepts everybody. */
  readonly ids: readonly string[];
  /** Time at which the file of the secret was written last, in milliseconds since 1970; undefined if it does not come from a file. */
  readonly madeMs: number | undefined;
  /** Reason why the files of the secret can't be used now, in words; empty if they can. What was read before stays in use. */
  readonly problem: string;
}

/** Role of the stamp, as launchers (cluster, embedded, simulator) use it. */
export interface Role {
  /** Starts the role. Resolves when it listens; it may still wait for others before it is ready. */
  start(): Promise<void>;
  /** Leaves cleanly: gives leases back, resolves what is in flight. */
  stop(): Promise<void>;
  /** Tells clients that ask the role itself that it stops, while it still serves. Called once, before `drain`. */
  announceStop?(): void;
  /**
   * Takes no more gRPC calls, and cancels those that are still in progress after `graceMs` milliseconds. Returns how many it cancelled.
   * Called once, while the HTTP doors drain.
   */
  drain?(graceMs: number): Promise<number>;
  readonly address: string;
  readonly status: RoleStatus;
  /** Declares how `/metrics` tells the numbers among the facts. */
  readonly metrics?: Metrics;
}

/**
 * State that the Status service tells to callers with the secret of the stamp; `/ready` tells everybody all but the
 * facts.
 */
export interface RoleStatus {
  readonly ready: boolean;
  /**
   * Processes or steps that it waits for, in words for users; if it is ready: late steps, though everything is served.
   */
  readonly waitingFor: readonly string[];
  /** `leader`, `standby`, `serving`, … where that means something. */
  readonly state: string;
  /** Role-specific facts, JSON-able. Where they are many they are made when they are asked for. */
  readonly facts: Readonly<Record<string, unknown>>;
}
