/** Counts of reads from checkpoints and writes to them, since the partition was loaded (or the process started). */

export interface StorageCounts {
  /** Number of reads of one key. */
  readonly pointReads: number;
  /** Checkpoints that point reads met: the checkpoint's keys span the one that is read, so its bloom filter was asked. */
  readonly checkpointsMet: number;
  /** Number of times that a bloom filter said "not there". */
  readonly bloomAbsent: number;
  /** Number of times that a bloom filter said "maybe" for an absent key. */
  readonly bloomFalsePositives: number;
  readonly rowCacheHits: number;
  readonly rowCacheMisses: number;
  readonly indexCacheHits: number;
  readonly indexCacheMisses: number;
  /** Number of rows that scans returned, and their bytes. */
  readonly rowsScanned: number;
  readonly rowBytesScanned: number;
  /** Keys and values of the rows that were committed. */
  readonly rowBytesAccepted: number;
  /** Data blocks and indexes of checkpoints: of those made of memory tables, and of those made by merging others. */
  readonly flushedBytes: number;
  readonly mergedBytes: number;
}

export interface ServedFigures {
  readonly rowsRead: number;
  readonly bytesWritten: number;
}

const zeros = {
  pointReads: 0,
  checkpointsMet: 0,
  bloomAbsent: 0,
  bloomFalsePositives: 0,
  rowCacheHits: 0,
  rowCacheMisses: 0,
  indexCacheHits: 0,
  indexCacheMisses: 0,
  rowsScanned: 0,
  rowBytesScanned: 0,
  rowBytesAccepted: 0,
  flushedBytes: 0,
  mergedBytes: 0,
} satisfies StorageCounts;

export class StorageFigures {
  readonly #counts: { -readonly [name in keyof StorageCounts]: number } = { ...zeros };
  readonly #whole: StorageFigures | undefined;
  #merges = 0;

  /** `whole` counts everything that this one counts too. */
  constructor(whole?: StorageFigures) {
    this.#whole = whole;
  }

  get counts(): StorageCounts {
    return { ...this.#counts };
  }

  /** Go up with whatever clients read and write, of all that is counted together with this. */
  get served(): ServedFigures {
    const { pointReads, rowsScanned, rowBytesAccepted } = (this.#whole ?? this).#counts;
    return { rowsRead: pointReads + rowsScanned, bytesWritten: rowBytesAccepted };
  }

  /** Number of merges under way, of all partitions that are counted together. */
  get merges(): number {
    return (this.#whole ?? this).#merges;
  }

  async whileMerging<T>(merge: () => Promise<T>): Promise<T> {
    const all = this.#whole ?? this;
    all.#merges++;
    try {
      return await merge();
    } finally {
      all.#merges--;
    }
  }

  add(name: keyof StorageCounts, by = 1): void {
    this.#counts[name] += by;
    this.#whole?.add(name, by);
  }
}

export interface StorageRatios {
  /** Share of looks into the row data cache that found the block. Undefined, as below, if nothing was counted. */
  readonly rowCacheHitRate?: number;
  readonly indexCacheHitRate?: number;
  /** Share of reads of absent keys for which a checkpoint's bloom filter said "maybe". */
  readonly bloomFalsePositiveRate?: number;
  /** Bytes written to checkpoints for each byte of rows that was accepted. */
  readonly writeAmplification?: number;
  readonly checkpointsPerRead?: number;
}

export function storageRatios(counts: StorageCounts): StorageRatios {
  const ratio = (name: keyof StorageRatios, part: number, of: number): StorageRatios => (of > 0 ? { [name]: part / of } : {});
  return {
    ...ratio("rowCacheHitRate", counts.rowCacheHits, counts.rowCacheHits + counts.rowCacheMisses),
    ...ratio("indexCacheHitRate", counts.indexCacheHits, counts.indexCacheHits + counts.indexCacheMisses),
    ...ratio("bloomFalsePositiveRate", counts.bloomFalsePositives, counts.bloomFalsePositives + counts.bloomAbsent),
    ...ratio("writeAmplification", counts.flushedBytes + counts.mergedBytes, counts.rowBytesAccepted),
    ...ratio("checkpointsPerRead", counts.checkpointsMet, counts.pointReads),
  };
}
