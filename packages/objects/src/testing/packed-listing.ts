/** Compares the two answers to one listing: entries as messages, and packed. */
import assert from "node:assert/strict";
import { countOfPacked, PackedBlob } from "../blobs/packed-blobs.ts";
import type { ListBlobs } from "../operation.ts";
import type { Blob, ListedBlob, OperationResult } from "../results.ts";

/** A question for all blobs of a container. */
export const everyBlob: ListBlobs = {
  account: "a",
  container: "c",
  containerIncarnation: 1,
  prefix: "",
  delimiter: "",
  marker: "",
  maxResults: 100,
  includeMetadata: false,
  includeUncommitted: true,
};

export function assertSameListing(value: ListBlobs, answer: OperationResult, packedAnswer: OperationResult): void {
  assert.ok(answer.case === "blobs" && packedAnswer.case === "blobs");
  const { entries, ...page } = answer.value;
  const { entries: none, packed, ...packedPage } = packedAnswer.value;
  assert.deepEqual(none, []);
  assert.deepEqual(packedPage, page);
  assert.ok(packed !== undefined);
  assert.equal(countOfPacked(packed), entries.length);
  const shown = entries.map((entry) => shownOf(value, entry));
  assert.deepEqual(
    [...listedOf(packed)].map((entry) => shownOf(value, entry)),
    shown,
  );
}

/** Entries as values, of packed ones. */
export function* listedOf(packed: Uint8Array): Generator<ListedBlob> {
  const entry = new PackedBlob(packed);
  while (entry.next()) yield entry.isPrefix ? { case: "prefix", value: entry.name } : { case: "blob", value: entry.read(copyOf) };
}

/** Returns an entry without metadata or tags that were not asked for. */
function shownOf({ includeMetadata, includeTags }: ListBlobs, entry: ListedBlob): unknown {
  if (entry.case === "prefix") return entry;
  const { metadata, tags, copy, headers, ...blob } = copyOf(entry.value);
  const { contentType, contentTypeCleared = false, ...texts } = headers;
  const all = { ...blob, contentType, contentTypeCleared, ...texts, copyId: copy?.copyId, status: copy?.status };
  return { ...all, metadata: includeMetadata && { ...metadata }, tags: includeTags && { ...tags } };
}

function copyOf(blob: Blob): Blob {
  const { name, etag, lastModifiedMs, createdMs, contentLengthBytes, metadata, blobType, uncommitted, committedBlockCount } = blob;
  const { sealed, sequenceNumber, copy, snapshotStamp, versionStamp, isCurrentVersion, lease, tags, tagCount } = blob;
  const { accessTier, accessTierInferred, accessTierChangedMs, expiresMs, immutableUntilMs, immutabilityMode, legalHold } = blob;
  const { deletedMs, remainingRetentionDays, versionsOnly, encryptionKeySha256, encryptionScope } = blob;
  const { contentType, contentTypeCleared, contentEncoding, contentLanguage, contentMd5, cacheControl, contentDisposition } = blob.headers;
  return {
    ...{ name, etag, lastModifiedMs, createdMs, contentLengthBytes, metadata, blobType, uncommitted, committedBlockCount },
    ...{ sealed, sequenceNumber, copy, snapshotStamp, versionStamp, isCurrentVersion, lease, tags, tagCount },
    ...{ accessTier, accessTierInferred, accessTierChangedMs, expiresMs, immutableUntilMs, immutabilityMode, legalHold },
    ...{ deletedMs, remainingRetentionDays, versionsOnly, encryptionKeySha256, encryptionScope },
    headers: { contentType, contentTypeCleared, contentEncoding, contentLanguage, contentMd5, cacheControl, contentDisposition },
  };
}
