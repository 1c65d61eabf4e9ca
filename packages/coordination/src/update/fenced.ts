/** Writes of a leader that a later leader's writes shut out: each carries its fencing token in the blob's metadata. */
import type { ContainerClient } from "@azure/storage-blob";
import { FencedError, requireNumber, UsageError } from "../errors.ts";
import { isConflict, isMissing } from "../storage/classify.ts";
import { inContainer } from "../storage/create.ts";
import { systemClock, withTimeout } from "../time/clock.ts";

const tokenKey = "fencingtoken";

/**
 * Replaces a blob's content if no higher fencing token has written it. Rejects with a FencedError if one has. Every writer of the blob must
 * use this function. Of two writes under one token the last one wins. Rejects with a TimeoutError if the service does not answer within
 * `timeoutMs`: whether the content was written is not known then.
 */
export async function putFenced(
  container: ContainerClient,
  blobName: string,
  content: Uint8Array,
  fencingToken: bigint,
  signal?: AbortSignal,
  timeoutMs = 30_000,
): Promise<void> {
  requireNumber("timeoutMs", timeoutMs, 1, 3_600_000);
  if (typeof fencingToken !== "bigint" || fencingToken < 0n) {
    throw new UsageError(`fencingToken is ${fencingToken}; give the bigint that the leadership came with`);
  }
  await withTimeout(systemClock, timeoutMs, signal, (each) => put(container, blobName, content, fencingToken, each));
}

async function put(
  container: ContainerClient,
  blobName: string,
  content: Uint8Array,
  fencingToken: bigint,
  signal: AbortSignal,
): Promise<void> {
  const blob = container.getBlockBlobClient(blobName);
  for (;;) {
    signal.throwIfAborted();
    const seen = await blob.getProperties({ abortSignal: signal }).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    const written = seen?.metadata?.[tokenKey] ?? "0";
    if (!/^\d+$/.test(written)) throw new FencedError(`blob ${blobName} has the fencing token '${written}', which is no number`);
    if (BigInt(written) > fencingToken) {
      throw new FencedError(
        `blob ${blobName} was written under fencing token ${written}; this writer's token ${fencingToken} is of an earlier leadership`,
      );
    }
    const conditions = seen?.etag === undefined ? { ifNoneMatch: "*" } : { ifMatch: seen.etag };
    const options = { conditions, metadata: { ...seen?.metadata, [tokenKey]: String(fencingToken) }, abortSignal: signal };
    try {
      await inContainer(container, signal, () => blob.upload(Buffer.from(content), content.length, options));
      return;
    } catch (error) {
      // Another writer came between: its token decides.
      if (!isConflict(error) && !isMissing(error)) throw error;
    }
  }
}
