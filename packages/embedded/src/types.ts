/// <reference lib="esnext.disposable" />
/** A stamp inside a test suite: types of the package `stamp-storage`. This file is its declarations, so that it refers to no other. */

export interface StampOptions {
  /**
   * Folder that keeps the data. A folder of an earlier stamp has its data. It takes one stamp at a time, and is none of a cluster (`stamp up`).
   * Undefined: the data are in memory, or, with `storage: "disk"`, in a temporary folder that `stop` removes.
   */
  readonly dataDir?: string | undefined;
  /** Storage of the data without a `dataDir` (default: "memory"). */
  readonly storage?: "memory" | "disk" | undefined;
  /**
   * Copies of all data, each with an extent node of its own. Default: 1 for new data. A folder has as many as at its first start; another
   * number is refused.
   */
  readonly replicas?: 1 | 3 | undefined;
  /**
   * Number of lock services, each with a copy of the metadata. Default for new data: 3 with three replicas, else 1. A folder has as many as at its
   * first start; another number is refused.
   */
  readonly lockServices?: 1 | 3 | undefined;
  /** Number of partition servers, 1 to 100; default 1. */
  readonly partitionServers?: number | undefined;
  /** Ports of the services on 127.0.0.1; 0 or undefined: the system chooses a free one. */
  readonly ports?:
    | { readonly blob?: number; readonly queue?: number; readonly table?: number; readonly file?: number; readonly dfs?: number }
    | undefined;
  /**
   * True: containers of the account are filesystems with directories, for the `dfs` endpoint of Data Lake Storage. Holds for new data; data that
   * were made otherwise are refused. Default: false.
   */
  readonly hierarchicalNamespace?: boolean | undefined;
  /**
   * Content of the stamp before it serves, also after `reset`: an init file, a folder of them, or the content of one (docs/guides/init.md), whose
   * paths count from the working directory. What is there stays.
   */
  readonly init?: string | Readonly<Record<string, unknown>> | undefined;
  /** PEM files of a certificate chain and its key. With them the services speak HTTPS only. */
  readonly tls?: { readonly certificatePath: string; readonly keyPath: string } | undefined;
  /** How long a start may take until everything is served, in milliseconds; default 20,000. */
  readonly readyTimeoutMs?: number | undefined;
}

export interface BlobSettings {
  readonly versioning?: boolean;
  /** Days for which deleted containers are kept, at most 365; 0: not at all. */
  readonly containerDeleteRetentionDays?: number;
  /** True if containers may be made readable without authorization. */
  readonly allowPublicAccess?: boolean;
}

/** A rule that makes requests to the stamp fail or wait on purpose (docs/guides/faults.md). What it does not name fits every request. */
export interface FaultRule {
  /** Id of the rule, which `remove` takes; undefined: `add` makes one. */
  readonly id?: string | undefined;
  /**
   * "busy": 503 ServerBusy. "error-before": 500, and nothing was done. "error-after": the operation is done, and answered with 500. "delay": it
   * waits for `delayMs`. "cut": the connection ends behind `afterBytes` bytes of the answer's body. "throttle": beyond `perSecond` requests
   * 503. "stale-secondary": the account's secondary location answers reads, and does not have what was written in the last `behindMs`.
   */
  readonly fault: "busy" | "error-before" | "error-after" | "delay" | "cut" | "throttle" | "stale-secondary";
  readonly account?: string | undefined;
  readonly service?: "blob" | "queue" | "table" | undefined;
  /** Name of an operation in the REST reference, in one word: "PutBlob". */
  readonly operation?: string | undefined;
  /** Header that the request has: "NAME", or "NAME: VALUE". */
  readonly header?: string | undefined;
  /** Part of the requests that fit, spread evenly, above 0 and at most 1; 0.25: each fourth one. */
  readonly share?: number | undefined;
  /** Number of requests after which the rule does nothing any more. */
  readonly count?: number | undefined;
  /** Time from `add` to the beginning of the rule, in milliseconds. */
  readonly startsAfterMs?: number | undefined;
  /** Time from `add` to the end of the rule, in milliseconds. */
  readonly endsAfterMs?: number | undefined;
  /** Retry-After of "busy" and "throttle", in seconds; default 1. */
  readonly retryAfterSeconds?: number | undefined;
  readonly delayMs?: number | undefined;
  /** Bytes of the answer's body after which the fault acts; 0: before the answer. */
  readonly afterBytes?: number | undefined;
  readonly perSecond?: number | undefined;
  readonly behindMs?: number | undefined;
}

export interface FaultRuleState {
  readonly rule: FaultRule & { readonly id: string };
  /** Requests on which the rule has acted. */
  readonly hits: number;
  /** True if the rule acts no more: its count or time is used up. */
  readonly over: boolean;
}

/** Rules of the front-end: at most 100. They end with it, and with `reset`. */
export interface Faults {
  /** Adds a rule behind the others. Returns its id. Throws an error that says what is wrong with the rule. */
  add(rule: FaultRule): Promise<string>;
  list(): Promise<readonly FaultRuleState[]>;
  /** Removes a rule, or all rules without an id. Returns the number of removed rules. */
  remove(id?: string): Promise<number>;
}

export interface Stamp {
  /** URLs of the account at each service. */
  readonly endpoints: {
    readonly blob: string;
    readonly queue: string;
    readonly table: string;
    readonly file: string;
    readonly dfs: string;
  };
  /** Connection string for `fromConnectionString` of the SDKs' clients. It stays the same until `stop`. */
  readonly connectionString: string;
  /** Folder with the data; undefined if they are in memory. */
  readonly dataDir: string | undefined;
  /** Names of the roles, in the order in which they start: the names that `pause`, `kill` and so on take. */
  readonly roles: readonly string[];
  /** Requests that fail or wait on purpose. */
  readonly faults: Faults;
  /**
   * Removes all data and settings, also of roles that are paused or were killed: the stamp is as a new one, at the same endpoints. Connections
   * of requests in progress break, as when a process ends. Resolves when the stamp serves.
   */
  reset(): Promise<void>;
  /**
   * Stops the role where it is, as SIGSTOP does: what others ask of it waits, until their deadlines. `pause`, `resume` and `kill` do not wait for
   * a `start` in progress.
   */
  pause(role: string): Promise<void>;
  /** Lets a paused role go on, as SIGCONT does. */
  resume(role: string): Promise<void>;
  /** Ends the role at once, as SIGKILL does. What it has written stays. It is down until `start`. */
  kill(role: string): Promise<void>;
  /**
   * Starts a role that was killed. Resolves when everything that is not paused or killed serves again. Throws an error that says what it waits
   * for if that takes longer than `readyTimeoutMs`; then the role goes on starting.
   */
  start(role: string): Promise<void>;
  /** Changes settings that no REST request sets; omitted ones stay. Needs `partition-manager-1`; gives up after 10 s. */
  setBlobSettings(settings: BlobSettings): Promise<void>;
  /** Makes a key of the stamp, by whose name blobs are encrypted (`x-ms-encryption-scope`). It stays until `reset`. */
  createEncryptionScope(name: string): Promise<void>;
  /** Enables or disables a scope. While disabled, content under it can be neither read nor written. */
  setEncryptionScopeState(name: string, state: { readonly disabled: boolean }): Promise<void>;
  /** Metrics of the roles that run, by name, in the text format of Prometheus. */
  metrics(): Readonly<Record<string, string>>;
  /**
   * Ends every role, cleanly if the data are in a folder and no role is paused or killed, and removes a temporary folder. Idempotent. Everything
   * else throws afterwards, but `metrics` is empty.
   */
  stop(): Promise<void>;
  /** Stops the stamp, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Resolves when the stamp serves. Throws an error that says what it waits for if that takes longer than `readyTimeoutMs`. */
export type StartStamp = (options?: StampOptions) => Promise<Stamp>;
