/** Goals of issue 29 for each case: throughput as a multiple of the emulator's, processor time of one operation, or the median latency. */
export interface PeerGoal {
  readonly ratio?: number;
  /** Microseconds of all processes for one operation. */
  readonly cpuMicros?: number;
  readonly p50Ms?: number;
}

/** Keyed by the case's name. */
export const peerGoals: Readonly<Record<string, PeerGoal>> = {
  "put 1 KiB × 1": { p50Ms: 1.2 },
  "get 1 KiB × 1": { p50Ms: 0.5 },
  "put 1 KiB × 64": { ratio: 5, cpuMicros: 160 },
  "get 1 KiB × 64": { ratio: 5, cpuMicros: 70 },
  "put 4 MiB × 1": { p50Ms: 20 },
  "put 4 MiB × 64": { ratio: 1.3, cpuMicros: 36_000 },
  "get 4 MiB × 64": { ratio: 1.2, cpuMicros: 7_000 },
  "upload 64 MiB, blocks of 8 MiB × 16": { ratio: 3, cpuMicros: 500_000 },
  "list 1,000 of 10,000 × 64": { ratio: 12, cpuMicros: 5_000 },
  "table insert 1 KiB × 1": { p50Ms: 1.2 },
  "table insert 1 KiB × 64": { ratio: 2.5, cpuMicros: 130 },
  "table point read × 64": { ratio: 3, cpuMicros: 70 },
  "table transaction of 100 × 64": { ratio: 12, cpuMicros: 3_000 },
  "table query, 1,000 entities × 64": { ratio: 6, cpuMicros: 5_000 },
  "queue put × 64": { ratio: 8, cpuMicros: 160 },
  "queue get + delete, fresh queue × 64": { ratio: 9, cpuMicros: 350 },
};
