/** Reads extents of a stream one after another, to the lengths at which they are sealed: none has a tail that changes. */
import { type Failure, FailureError, present } from "@stamp/base";
import { fromWire } from "@stamp/wire";
import type { StoredBlock, StreamExtent } from "../types.ts";
import type { ExtentReader } from "./extent-reader.ts";

const readChunkBytes = 1024 * 1024;

/** Is told an extent that no node has any more, or has intact, and why. What was read of it before counts. */
export type PassOver = (extentId: number, failure: Failure) => void;

/** True if every replica of an extent said so, and waiting will not help. */
export const isGone = ({ reason }: Failure): boolean => reason === "unknownExtent" || reason === "damaged" || reason === "outOfRange";

/**
 * Yields every block, in order, of the first extent from this offset on, at which a block's header begins. Reads one chunk ahead. With
 * `passOver` an extent that is gone is passed over. Throws FailureError.
 */
export async function* readSealed(
  reader: ExtentReader,
  extents: readonly StreamExtent[],
  options: {
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    readonly fromOffsetBytes?: number;
    readonly passOver?: PassOver | undefined;
  },
): AsyncIterable<StoredBlock> {
  for (const [at, { extentId, sealedLengthBytes }] of extents.entries()) {
    const end = present(sealedLengthBytes, "length of an extent that was sealed when the stream was opened");
    const ask = (offsetBytes: number) => reader.readBlocks(extentId, offsetBytes, end, readChunkBytes, options);
    const from = at === 0 ? (options.fromOffsetBytes ?? 0) : 0;
    let asked = end > from ? ask(from) : undefined;
    while (asked !== undefined) {
      const answer = await asked;
      if (!answer.ok && options.passOver !== undefined && isGone(answer.failure)) {
        options.passOver(extentId, answer.failure);
        break;
      }
      if (!answer.ok) throw new FailureError(answer.failure);
      const { payload, offsetsBytes, nextOffsetBytes } = answer.value;
      const next = fromWire(nextOffsetBytes);
      asked = next < end ? ask(next) : undefined;
      for (const [i, bytes] of payload.entries()) {
        const offsetBytes = fromWire(offsetsBytes[i] ?? 0n);
        // A replica that was not told yet where the extent ends may hold more than that.
        if (offsetBytes + bytes.length > end) break;
        yield { place: { extentId, offsetBytes, lengthBytes: bytes.length }, payload: bytes };
      }
    }
  }
}
