/** The other two strategies of the article "Managing concurrency": pessimistic, by a lease, and last writer wins. */
import type { TableClient } from "@azure/data-tables";
import type { BlockBlobClient, ContainerClient } from "@azure/storage-blob";
import { LeaseLostError } from "../errors.ts";
import { type HeldLease, LeaseHolder, type LeaseOptions } from "../lease/lease-holder.ts";
import { BlobLeaseStore } from "../lease/lease-store.ts";

/**
 * Runs `work` while this process holds the lease of a blob, and returns its value. Container and blob are created when they are missing.
 *
 * The lease guards the blob itself: give `lease.leaseId` with each write to it, and the service refuses everybody else. For anything else,
 * a table for instance, the blob stands for it: then everybody who changes the table must go through `withLease`, and call
 * `lease.assertHeld()` before each step. Rejects with a LeaseLostError if the lease was lost before `work` ended.
 */
export async function withLease<T>(
  container: ContainerClient,
  blobName: string,
  work: (lease: HeldLease) => Promise<T>,
  options: LeaseOptions & { readonly signal?: AbortSignal } = {},
): Promise<T> {
  const store = new BlobLeaseStore(container, blobName);
  const result = await new LeaseHolder(store, options).hold(work, options.signal);
  if (result.kind === "lost") throw new LeaseLostError(`the lease of ${store.name} was lost before the work ended: ${result.why}`);
  return result.value;
}

/** Replaces a block blob's content or an entity, whatever is there: of two writers the last one wins, and the other one is not told. */
export function putLastWriterWins(blob: BlockBlobClient, content: Uint8Array, signal?: AbortSignal): Promise<void>;
export function putLastWriterWins(
  table: TableClient,
  entity: { readonly partitionKey: string; readonly rowKey: string },
  signal?: AbortSignal,
): Promise<void>;
export async function putLastWriterWins(
  target: BlockBlobClient | TableClient,
  value: Uint8Array | { readonly partitionKey: string; readonly rowKey: string },
  signal?: AbortSignal,
): Promise<void> {
  const options = signal === undefined ? {} : { abortSignal: signal };
  if (value instanceof Uint8Array) await (target as BlockBlobClient).upload(Buffer.from(value), value.length, options);
  else await (target as TableClient).upsertEntity({ ...value }, "Replace", options);
}
