/** Reads a stream for its owner: what was in it when it was opened, or what is acknowledged between two places. */
import { FailureError } from "@stamp/base";
import type { OwnedExtents } from "../owned-extents.ts";
import type { StoredBlock, StreamPlace } from "../types.ts";
import type { ExtentReader } from "./extent-reader.ts";
import { type PassOver, readSealed } from "./read-sealed.ts";

const readTimeoutMs = 10_000;

export interface ReadParts {
  /** Name of the stream. */
  readonly stream: string;
  readonly reader: ExtentReader;
  readonly extents: OwnedExtents;
  readonly signal: AbortSignal;
}

export interface ReadAllOptions {
  /** Where to begin, at a block's header; undefined: at the first extent. */
  readonly from?: StreamPlace;
  readonly timeoutMs?: number;
  /** If given, extents that no node has are passed over. */
  readonly passOver?: PassOver | undefined;
}

/** Yields every block that was in the stream when it was opened, from this place on. Throws FailureError. */
export async function* readFrom({ stream, reader, extents, signal }: ReadParts, options: ReadAllOptions): AsyncIterable<StoredBlock> {
  const { from } = options;
  const start = from === undefined ? 0 : extents.atOpen.findIndex(({ extentId }) => extentId === from.extentId);
  if (start < 0) {
    throw new FailureError({
      code: "notFound",
      reason: "unknownExtent",
      message: `extent ${from?.extentId} is not in stream ${stream}`,
      applied: "no",
    });
  }
  const timeoutMs = options.timeoutMs ?? readTimeoutMs;
  yield* readSealed(reader, extents.atOpen.slice(start), {
    timeoutMs,
    signal,
    fromOffsetBytes: from?.offsetBytes ?? 0,
    passOver: options.passOver,
  });
}

/** Yields acknowledged blocks; without `to` those that were in the stream when it was opened. Throws FailureError. */
export async function* readBetween(
  { stream, reader, extents, signal }: ReadParts,
  from: StreamPlace | undefined,
  to: StreamPlace | undefined,
): AsyncIterable<StoredBlock> {
  const listed = to === undefined ? extents.atOpen.filter(({ extentId }) => extents.knows(extentId)) : extents.all;
  const [start, end] = [from, to].map((place) => listed.findIndex(({ extentId }) => extentId === place?.extentId));
  if ((from !== undefined && start === -1) || (to !== undefined && end === -1)) {
    const message = `extent ${(start === -1 ? from : to)?.extentId} is not in stream ${stream}`;
    throw new FailureError({ code: "notFound", reason: "unknownExtent", message, applied: "no" });
  }
  const parts = listed.slice(from && start, to && (end ?? 0) + 1).map((extent) => {
    return extent.extentId === to?.extentId ? { ...extent, sealedLengthBytes: to.offsetBytes } : extent;
  });
  const options = { timeoutMs: readTimeoutMs, signal, fromOffsetBytes: from?.offsetBytes ?? 0 };
  yield* readSealed(reader, parts, options);
}
