/** Note of the follower that ships an account: how far the rows of a range are seeded. It is in the range's metadata stream. */
export interface Note {
  /** Role epoch under which the rows were seeded. */
  readonly epoch: number;
  /** Operation that began the copy. */
  readonly paired?: number | undefined;
  /** Lineage of the copy's stamp when the seeding began; undefined: it was never restored. */
  readonly copyLineage?: number | undefined;
  /** Hexadecimal: every row before this key is seeded. Undefined: all are. */
  readonly upTo?: string | undefined;
  /** Last commit of the range when all rows were seeded. */
  readonly end?: number | undefined;
}

/** Returns undefined if the text is no note. */
export function noteOf(text: string): Note | undefined {
  try {
    const { epoch, paired, copyLineage, upTo, end } = JSON.parse(text) as Partial<Note>;
    const isNumber = (value: unknown): boolean => value === undefined || typeof value === "number";
    if (typeof epoch !== "number" || !isNumber(paired) || !isNumber(copyLineage) || !isNumber(end)) return undefined;
    return upTo === undefined || typeof upTo === "string" ? { epoch, paired, copyLineage, upTo, end } : undefined;
  } catch {
    return undefined;
  }
}
