/** Objects as partition servers give them, as the REST API shows them. */
import type { ListEntry, ListedBlobProperties, ListedContainer } from "@stamp/azure-rest";
import type { Blob, BlobPage, Container } from "@stamp/wire";
import { fromWire } from "@stamp/wire";

const none = new Uint8Array(0);

export const blobOf = (blob: Blob): ListedBlobProperties => ({
  name: blob.name,
  etag: blob.etag,
  lastModifiedMs: Number(blob.lastModifiedMs),
  createdMs: Number(blob.createdMs),
  contentLengthBytes: fromWire(blob.contentLengthBytes),
  headers: {
    contentType: blob.headers?.contentType ?? "",
    contentEncoding: blob.headers?.contentEncoding ?? "",
    contentLanguage: blob.headers?.contentLanguage ?? "",
    contentMd5: blob.headers?.contentMd5 ?? none,
    cacheControl: blob.headers?.cacheControl ?? "",
    contentDisposition: blob.headers?.contentDisposition ?? "",
  },
  metadata: blob.metadata,
  blobType: blob.blobType,
  uncommitted: blob.uncommitted,
  committedBlockCount: blob.committedBlockCount,
  sealed: blob.sealed,
  sequenceNumber: fromWire(blob.sequenceNumber),
});

export const containerOf = (container: Container): ListedContainer => ({
  name: container.name,
  etag: container.etag,
  lastModifiedMs: Number(container.lastModifiedMs),
  metadata: container.metadata,
  publicAccess: container.publicAccess,
});

export function entriesOf(page: Pick<BlobPage, "entries">): ListEntry[] {
  const entries: ListEntry[] = [];
  for (const { kind } of page.entries) {
    if (kind.case === "blob") entries.push({ kind: "blob", blob: blobOf(kind.value) });
    else if (kind.case === "prefix") entries.push({ kind: "prefix", name: kind.value });
  }
  return entries;
}
