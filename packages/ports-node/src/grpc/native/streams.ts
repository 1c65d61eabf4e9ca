/** Streams of gRPC as async iterables, slowed down by their readers; for both sides. */
import type { Readable } from "node:stream";
import { FailureError } from "@stamp/base";
import { cancelledFailure } from "../failures.ts";
import type { MessageCodec, PreparedMessage } from "../message-codec.ts";
import { untilAborted } from "../until-aborted.ts";
import { fromServiceError } from "./status.ts";

/** Bytes and messages that one stream may have written and that have not left for the socket. */
const writingBytesMax = 2 * 1024 * 1024;
const writingCountMax = 64;

interface ObjectWriter {
  write(message: PreparedMessage, written: () => void): boolean;
  on(event: "close", listener: () => void): unknown;
}

/** Returns the messages of a stream. Leaving early does not destroy the stream: the status is still to be sent (or the call to be cancelled). */
export async function* readAll<T>(stream: unknown): AsyncIterable<T> {
  try {
    for await (const message of (stream as Readable).iterator({ destroyOnReturn: false })) yield message as T;
  } catch (error) {
    if (error instanceof FailureError) throw error;
    const code = (error as { code?: unknown }).code;
    if (typeof code === "number") throw new FailureError(fromServiceError(error as { code: number }));
    throw new FailureError(cancelledFailure("unknown", "a stream"));
  }
}

/**
 * Writes all messages, holding back their maker while the peer does not read. False when the signal stopped it. The maker is told to
 * stop (`return`) in every case.
 */
export async function writeAll(
  writer: ObjectWriter,
  messages: AsyncIterable<object>,
  codec: MessageCodec,
  signal: AbortSignal,
): Promise<boolean> {
  let writingBytes = 0;
  let writingCount = 0;
  let wake: (() => void) | undefined;
  const awaken = (): void => wake?.();
  signal.addEventListener("abort", awaken, { once: true });
  try {
    for await (const message of untilAborted(messages, signal)) {
      const prepared = codec.prepare(message);
      writingBytes += prepared.sizeBytes;
      writingCount += 1;
      writer.write(prepared, () => {
        writingBytes -= prepared.sizeBytes;
        writingCount -= 1;
        wake?.();
      });
      while ((writingBytes > writingBytesMax || writingCount > writingCountMax) && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      if (signal.aborted) break;
    }
    return !signal.aborted;
  } finally {
    signal.removeEventListener("abort", awaken);
  }
}
