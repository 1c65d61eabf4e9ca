/** Writes of a leader that a later leader's writes shut out: each carries its fencing token in the blob's metadata. */
import type { ContainerClient } from "@azure/storage-blob";
import { FencedError } from "../errors.ts";
import { isConflict, isMissing } from "../storage/classify.ts";
import { inContainer } from "../storage/create.ts";

const tokenKey = "fencingtoken";

/**
 * Replaces a blob's content if no higher fencing token has written it. Rejects with a FencedError if one has. Every writer of the blob must
 * use this function. Of two writes under one token the last one wins.
 */
export async function putFenced(
  container: ContainerClient,
  blobName: string,
  content: Uint8Array,
  fencingToken: bigint,
  signal: AbortSignal = new AbortController().signal,
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
