/** Creation of what a class keeps its state in: by whoever comes first, without a race between those who start together. */
import type { BlockBlobClient, ContainerClient } from "@azure/storage-blob";
import { isConflict, isMissing } from "./classify.ts";

/** Runs `work`; if the container is missing, creates it and runs `work` once more. */
export async function inContainer<T>(container: ContainerClient, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  await container.createIfNotExists({ abortSignal: signal });
  return await work();
}

/** Creates an empty blob, and its container, unless they exist. */
export async function createEmptyBlob(container: ContainerClient, blob: BlockBlobClient, signal: AbortSignal): Promise<void> {
  try {
    await inContainer(container, signal, () => blob.upload("", 0, { conditions: { ifNoneMatch: "*" }, abortSignal: signal }));
  } catch (error) {
    // Somebody else created it, and may hold its lease by now: a blob under a lease answers 412.
    if (!isConflict(error) && !isLeased(error)) throw error;
  }
}

const isLeased = (error: unknown): boolean => (error as { statusCode?: unknown }).statusCode === 412;
