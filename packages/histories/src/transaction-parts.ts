/**
 * A blob as the few entities of one PartitionKey that hold its bytes in parts and are only ever written together. So what judges blobs
 * judges transactions: one that was applied in part, or a page that shows two of them mixed, is bytes that nobody wrote.
 */
import { concatBytes } from "@stamp/base";
import { BrokenPromise } from "./stage.ts";

/** Entities of one partition; a binary property holds 64 KiB. */
export const entityCount = 8;

export function partsOf(bytes: Uint8Array): readonly Uint8Array[] {
  const partBytes = Math.ceil(bytes.length / entityCount);
  return Array.from({ length: entityCount }, (_, i) => bytes.subarray(i * partBytes, (i + 1) * partBytes));
}

/** Returns the blob that the entities of one page are; undefined when there are none. `what` names it for people. */
export function wholeOf(
  entities: readonly { readonly etag: string; readonly bytes: Uint8Array }[],
  what: string,
): { readonly etag: string; readonly bytes: Uint8Array } | undefined {
  const [first] = entities;
  if (first === undefined) return undefined;
  if (entities.length !== entityCount) throw new BrokenPromise(`${what}: ${entities.length} entities of a transaction of ${entityCount}`);
  const etags = new Set(entities.map(({ etag }) => etag));
  if (etags.size !== 1) throw new BrokenPromise(`${what}: entities of ${etags.size} transactions in one page`);
  return { etag: first.etag, bytes: concatBytes(entities.map(({ bytes }) => bytes)) };
}

/** Returns a name as a PartitionKey, which has no slashes. */
export const partitionKeyOf = (blob: string): string => blob.replaceAll("/", "|");
export const blobOfEntity = (partitionKey: string): string => partitionKey.replaceAll("|", "/");
