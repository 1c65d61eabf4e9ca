/** Cases of the benchmark. */
export interface BenchCase {
  readonly name: string;
  readonly operation: "put" | "get";
  readonly bytes: number;
  readonly concurrency: number;
}

const sizes: readonly (readonly [string, number])[] = [
  ["1 KiB", 1_024],
  ["4 MiB", 4 * 1_024 * 1_024],
];

export const cases: readonly BenchCase[] = sizes.flatMap(([size, bytes]) =>
  [1, 64].flatMap((concurrency) =>
    (["put", "get"] as const).map((operation) => ({ name: `${operation} ${size} × ${concurrency}`, operation, bytes, concurrency })),
  ),
);

/** Request to the load generator, as JSON in its last argument. */
export interface LoadRequest extends BenchCase {
  readonly connectionString: string;
  readonly container: string;
  readonly seconds: number;
  /** Before measuring: connections are made, code is compiled. */
  readonly warmUpSeconds: number;
}

/** Answer of the load generator on standard output. */
export interface LoadResult {
  readonly operations: number;
  readonly seconds: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the load generator itself, in milliseconds. */
  readonly cpuMs: number;
  /** Empty when none failed. */
  readonly firstFailure: string;
}
