/**
 * The list of a stream in memory: its segments, which are immutable and may be shared with other lists, and the tail. No extent is in
 * it twice.
 */
import type { ExtentId } from "@stamp/base";

export interface ListPiece {
  readonly extents: readonly ExtentId[];
  /** Index of the first extent that is not truncated. */
  readonly from: number;
}

export class ExtentList {
  static readonly empty: ExtentList = new ExtentList([], []);
  /** Segments in order; the tail is not among them. */
  readonly segments: readonly ListPiece[];
  readonly tail: readonly ExtentId[];
  readonly length: number;

  constructor(segments: readonly ListPiece[], tail: readonly ExtentId[]) {
    this.segments = segments;
    this.tail = tail;
    this.length = segments.reduce((sum, { extents, from }) => sum + extents.length - from, tail.length);
  }

  get pieces(): readonly ListPiece[] {
    return [...this.segments, { extents: this.tail, from: 0 }];
  }

  get first(): ExtentId | undefined {
    const [segment] = this.segments;
    return segment === undefined ? this.tail[0] : segment.extents[segment.from];
  }

  get last(): ExtentId | undefined {
    return this.tail.at(-1) ?? this.segments.at(-1)?.extents.at(-1);
  }

  /** Returns the index of an extent in the list; -1: not in it. Searches from the end, because callers mostly ask for late extents. */
  indexOf(id: ExtentId): number {
    let end = this.length;
    for (const { extents, from } of this.pieces.toReversed()) {
      const at = extents.lastIndexOf(id);
      end -= extents.length - from;
      if (at >= from) return end + at - from;
    }
    return -1;
  }

  /** Returns the successor of an extent: undefined if it is the last; `absent` if it is not in the list. */
  successor(id: ExtentId): ExtentId | "absent" | undefined {
    if (id === this.last) return undefined;
    const at = this.indexOf(id);
    return at < 0 ? "absent" : this.slice(at + 1, at + 2)[0];
  }

  slice(from: number, to: number = this.length): ExtentId[] {
    const found: ExtentId[] = [];
    let at = 0;
    for (const piece of this.pieces) {
      const length = piece.extents.length - piece.from;
      if (at < to && at + length > from) {
        found.push(...piece.extents.slice(piece.from + Math.max(from - at, 0), piece.from + Math.min(to - at, length)));
      }
      at += length;
    }
    return found;
  }
}
