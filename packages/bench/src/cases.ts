/** Cases of the table of peers: a scenario, and how many clients run it at once. */

export interface BenchCase {
  /** Name of a scenario. */
  readonly scenario: string;
  readonly clients: number;
}

export const cases: readonly BenchCase[] = [
  { scenario: "put 1 KiB", clients: 1 },
  { scenario: "get 1 KiB", clients: 1 },
  { scenario: "put 1 KiB", clients: 64 },
  { scenario: "get 1 KiB", clients: 64 },
  { scenario: "put 4 MiB", clients: 1 },
  { scenario: "get 4 MiB", clients: 1 },
  { scenario: "put 4 MiB", clients: 8 },
  { scenario: "get 4 MiB", clients: 8 },
  { scenario: "put 4 MiB", clients: 64 },
  { scenario: "get 4 MiB", clients: 64 },
  { scenario: "upload 64 MiB, blocks of 8 MiB", clients: 16 },
  { scenario: "put block of 1 KiB, one blob", clients: 1 },
  { scenario: "put block of 1 KiB, one blob", clients: 32 },
  { scenario: "put page of 512 bytes, one blob", clients: 1 },
  { scenario: "put page of 512 bytes, one blob", clients: 32 },
  { scenario: "append 100 bytes, one blob", clients: 1 },
  { scenario: "append 100 bytes, one blob", clients: 32 },
  { scenario: "list 1,000 of 10,000", clients: 64 },
  { scenario: "table insert 1 KiB", clients: 1 },
  { scenario: "table insert 1 KiB", clients: 64 },
  { scenario: "table point read", clients: 64 },
  { scenario: "table transaction of 100", clients: 64 },
  { scenario: "table query, 1,000 entities", clients: 64 },
  { scenario: "queue put", clients: 64 },
  { scenario: "queue get + delete, fresh queue", clients: 64 },
];

export const nameOf = ({ scenario, clients }: BenchCase): string => `${scenario} × ${clients}`;

/** Request to the load generator, as JSON in its last argument. */
export interface LoadRequest extends BenchCase {
  readonly connectionString: string;
  /** Shared by all load generators of a run: letters only. */
  readonly space: string;
  readonly seconds: number;
  /** Time before measuring in which connections are made and code is compiled. */
  readonly warmUpSeconds: number;
  /** True to measure on after `seconds`, until standard input ends. */
  readonly isHeldOpen: boolean;
}

/** Answer of the load generator on standard output. */
export interface LoadResult {
  readonly operations: number;
  readonly seconds: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly contentBytes: number;
  /** Processor time of the load generator itself, in milliseconds. */
  readonly cpuMs: number;
  /** Message of the first operation that failed; empty: none did. */
  readonly firstFailure: string;
}
