/**
 * Answers in XML: List Containers, List Blobs, Get Block List, service properties. Written by hand, because lists are a hot path: one
 * string grows, and a text is scanned once for what must be escaped.
 */
import type { BlobHeaders, ContainerScope, ShownBlob, ShownContainer, ShownLease } from "@stamp/base";
import { toBase64 } from "../base64.ts";
import { formatIsoMicros, formatRfc1123 } from "../dates.ts";
import { behavesAs } from "../version.ts";
import { element, elementIfAny, escapeXml, named, needsEncoding } from "../xml/xml-text.ts";
import { accountEncryptionKey } from "./encryption-headers.ts";

const declaration = '<?xml version="1.0" encoding="utf-8"?>';

export interface ListedBlobProperties extends ShownBlob {
  /** Kind of the entry in an account with directories; undefined in other accounts. */
  readonly resourceType?: "file" | "directory" | undefined;
}

/** Parts of the request that the answer repeats. */
export interface ListEcho {
  readonly serviceEndpoint: string;
  readonly prefix?: string;
  readonly delimiter?: string;
  readonly marker?: string;
  readonly maxResults?: number;
  readonly include: ReadonlySet<string>;
  readonly version: string;
}

/** Returns the version by which a deleted container is restored. */
export const containerVersionText = (incarnation: number): string => incarnation.toString(16).toUpperCase().padStart(16, "0");

export function containerVersionOf(text: string): number | undefined {
  const incarnation = /^[0-9A-Fa-f]{16}$/.test(text) ? Number.parseInt(text, 16) : Number.NaN;
  return Number.isSafeInteger(incarnation) ? incarnation : undefined;
}

function echoed(echo: ListEcho): string {
  let text = "";
  if (echo.prefix !== undefined) text += named("Prefix", echo.prefix);
  if (echo.marker !== undefined) text += element("Marker", echo.marker);
  if (echo.maxResults !== undefined) text += `<MaxResults>${echo.maxResults}</MaxResults>`;
  if (echo.delimiter !== undefined) text += named("Delimiter", echo.delimiter);
  return text;
}

function metadataXml(metadata: Readonly<Record<string, string>>): string {
  let text = "<Metadata>";
  for (const name in metadata) text += element(name, metadata[name] as string);
  return `${text}</Metadata>`;
}

const nextMarkerXml = (marker: string): string => (marker === "" ? "<NextMarker />" : element("NextMarker", marker));

const leaseXml = ({ status, state, duration }: ShownLease): string =>
  `<LeaseStatus>${status}</LeaseStatus><LeaseState>${state}</LeaseState>${elementIfAny("LeaseDuration", duration)}`;

/** `nextMarker`: marker of the next page, as the answer gives it; empty at the end. */
export function listContainersXml(echo: ListEcho, containers: readonly ShownContainer[], nextMarker: string): string {
  let text = `${declaration}<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}">${echoed(echo)}<Containers>`;
  for (const container of containers) {
    const deleted = container.deletedMs !== undefined;
    text += `<Container>${element("Name", container.name)}`;
    if (deleted) text += `<Deleted>true</Deleted><Version>${containerVersionText(container.incarnation)}</Version>`;
    text += `<Properties><Last-Modified>${formatRfc1123(container.lastModifiedMs)}</Last-Modified>${element("Etag", container.etag)}`;
    text += deleted ? deletionXml(container) : leaseXml(container.lease);
    text += elementIfAny("PublicAccess", container.publicAccess);
    if (!deleted && behavesAs(echo.version, "containerEncryptionScopes")) text += containerScopeXml(container);
    text += "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold></Properties>";
    text += `${echo.include.has("metadata") ? metadataXml(container.metadata) : ""}</Container>`;
  }
  return `${text}</Containers>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

const containerScopeXml = ({ defaultEncryptionScope: scope, denyEncryptionScopeOverride: deny }: ContainerScope): string =>
  `${element("DefaultEncryptionScope", scope === "" ? accountEncryptionKey : scope)}<DenyEncryptionScopeOverride>${deny}</DenyEncryptionScopeOverride>`;

/** Properties of a soft-deleted state. */
const deletionXml = ({
  deletedMs = 0,
  remainingRetentionDays = 0,
}: Pick<ListedBlobProperties, "deletedMs" | "remainingRetentionDays">): string =>
  `<DeletedTime>${formatRfc1123(deletedMs)}</DeletedTime><RemainingRetentionDays>${remainingRetentionDays}</RemainingRetentionDays>`;

/** True if a name has characters that XML can't carry and the version does not encode. */
export function untellable(version: string, names: Iterable<string>): boolean {
  if (behavesAs(version, "encodedNames")) return false;
  for (const name of names) if (needsEncoding(name)) return true;
  return false;
}

/** Yields the list in pieces. No name in `entries` is `untellable`; they come from `listedBlobXml` and `blobPrefixXml`. */
export function* listBlobsXml(echo: ListEcho, container: string, entries: Iterable<string>, nextMarker: string): Generator<string, void> {
  const text = `${declaration}<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}"`;
  yield `${text} ContainerName="${escapeXml(container)}">${echoed(echo)}<Blobs>`;
  yield* entries;
  yield `</Blobs>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

export const blobPrefixXml = (name: string): string => `<BlobPrefix>${named("Name", name)}</BlobPrefix>`;

export function listedBlobXml(blob: ListedBlobProperties, include: ReadonlySet<string>): string {
  let text = `<Blob>${named("Name", blob.name)}`;
  if (blob.versionsOnly) return `${text}<HasVersionsOnly>true</HasVersionsOnly><Properties></Properties></Blob>`;
  if (blob.snapshotStamp > 0) text += `<Snapshot>${formatIsoMicros(blob.snapshotStamp)}</Snapshot>`;
  if (blob.versionStamp > 0) text += `<VersionId>${formatIsoMicros(blob.versionStamp)}</VersionId>`;
  if (blob.isCurrentVersion) text += "<IsCurrentVersion>true</IsCurrentVersion>";
  if (blob.deletedMs !== undefined) text += "<Deleted>true</Deleted>";
  text += "<Properties>";
  if (!blob.uncommitted) {
    text += `<Creation-Time>${formatRfc1123(blob.createdMs)}</Creation-Time><Last-Modified>${formatRfc1123(blob.lastModifiedMs)}</Last-Modified>`;
    text += `<Etag>${escapeXml(blob.etag.replaceAll('"', ""))}</Etag>`;
  }
  text += `<Content-Length>${blob.contentLengthBytes}</Content-Length>`;
  text += elementIfAny("Content-Type", blob.uncommitted ? "" : contentTypeOf(blob.headers));
  text += elementIfAny("Content-Encoding", blob.headers.contentEncoding);
  text += elementIfAny("Content-Language", blob.headers.contentLanguage);
  if (blob.headers.contentMd5.length > 0) text += `<Content-MD5>${toBase64(blob.headers.contentMd5)}</Content-MD5>`;
  text += elementIfAny("Cache-Control", blob.headers.cacheControl);
  text += elementIfAny("Content-Disposition", blob.headers.contentDisposition);
  if (blob.blobType === "PageBlob") text += `<x-ms-blob-sequence-number>${blob.sequenceNumber}</x-ms-blob-sequence-number>`;
  if (blob.sealed) text += "<Sealed>true</Sealed>";
  if (blob.resourceType !== undefined) text += element("ResourceType", blob.resourceType);
  text += `<BlobType>${blob.blobType}</BlobType>${blob.uncommitted ? "" : stateXml(blob, include)}${encryptionXml(blob)}</Properties>`;
  // Whoever lists brings no key.
  const hidden = blob.encryptionKeySha256 !== undefined && Object.keys(blob.metadata).length > 0;
  if (include.has("metadata") && !blob.uncommitted) text += hidden ? `<Metadata Encrypted="true" />` : metadataXml(blob.metadata);
  if (include.has("tags") && blob.tagCount > 0) text += tagSetXml(blob.tags);
  return `${text}</Blob>`;
}

function encryptionXml({ encryptionKeySha256: digest, encryptionScope: scope }: ListedBlobProperties): string {
  if (digest === undefined && scope === undefined) return "<ServerEncrypted>false</ServerEncrypted>";
  const key = digest === undefined ? "" : element("CustomerProvidedKeySha256", toBase64(digest));
  return `<ServerEncrypted>true</ServerEncrypted>${key}${elementIfAny("EncryptionScope", scope ?? "")}`;
}

const isBase = (blob: ListedBlobProperties): boolean =>
  blob.snapshotStamp === 0 && blob.deletedMs === undefined && (blob.versionStamp === 0 || blob.isCurrentVersion);

function stateXml(blob: ListedBlobProperties, include: ReadonlySet<string>): string {
  let text = isBase(blob) ? leaseXml(blob.lease) : "";
  if (blob.blobType === "BlockBlob") {
    text += element("AccessTier", blob.accessTier);
    if (blob.accessTierInferred) text += "<AccessTierInferred>true</AccessTierInferred>";
    if (blob.accessTierChangedMs !== undefined) text += element("AccessTierChangeTime", formatRfc1123(blob.accessTierChangedMs));
  }
  if (blob.deletedMs !== undefined) text += deletionXml(blob);
  if (blob.tagCount > 0) text += `<TagCount>${blob.tagCount}</TagCount>`;
  if (blob.expiresMs !== undefined) text += element("Expiry-Time", formatRfc1123(blob.expiresMs));
  if (include.has("immutabilitypolicy") && blob.immutableUntilMs !== undefined) {
    text += element("ImmutabilityPolicyUntilDate", formatRfc1123(blob.immutableUntilMs));
    text += element("ImmutabilityPolicyMode", (blob.immutabilityMode ?? "").toLowerCase());
  }
  if (include.has("legalhold")) text += `<LegalHold>${blob.legalHold}</LegalHold>`;
  return text;
}

export type Tags = Readonly<Record<string, string>>;

export function tagSetXml(tags: Tags): string {
  let text = "<Tags><TagSet>";
  for (const [key, value] of Object.entries(tags)) text += `<Tag>${element("Key", key)}${element("Value", value)}</Tag>`;
  return `${text}</TagSet></Tags>`;
}

/** Returns the type that a blob shows: the default if none was ever stored, empty if the type was cleared. */
export const contentTypeOf = ({ contentType, contentTypeCleared }: BlobHeaders): string =>
  contentType === "" && contentTypeCleared !== true ? "application/octet-stream" : contentType;

export interface ListedBlock {
  readonly blockId: Uint8Array;
  readonly sizeBytes: number;
}

/** Yields the block list in pieces, one for each block. A list that was not asked for is undefined. */
export function* blockListXml(
  committed: Iterable<ListedBlock> | undefined,
  uncommitted: Iterable<ListedBlock> | undefined,
): Generator<string, void> {
  yield `${declaration}<BlockList>`;
  for (const [name, blocks] of [
    ["CommittedBlocks", committed],
    ["UncommittedBlocks", uncommitted],
  ] as const) {
    if (!blocks) continue;
    yield `<${name}>`;
    for (const { blockId, sizeBytes } of blocks) yield `<Block><Name>${toBase64(blockId)}</Name><Size>${sizeBytes}</Size></Block>`;
    yield `</${name}>`;
  }
  yield "</BlockList>";
}
