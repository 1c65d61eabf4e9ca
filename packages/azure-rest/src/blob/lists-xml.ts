/**
 * Answers in XML: List Containers, List Blobs, Get Block List, service properties. Written by hand, because lists are a hot path: one
 * string grows, and a text is scanned once for what must be escaped.
 */
import { toBase64 } from "../base64.ts";
import { formatRfc1123 } from "../dates.ts";
import type { ContentProperties } from "../headers.ts";
import { behaves } from "../version.ts";
import { element, elementIfAny, escapeXml, needsEncoding } from "../xml-text.ts";

const declaration = '<?xml version="1.0" encoding="utf-8"?>';

export interface ListedContainer {
  readonly name: string;
  /** In quotes. */
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly publicAccess: string;
}

export interface ListedBlobProperties {
  readonly name: string;
  /** In quotes. */
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly createdMs: number;
  readonly contentLengthBytes: number;
  readonly headers: ContentProperties;
  readonly metadata: Readonly<Record<string, string>>;
  readonly blobType: string;
  /** It has no committed content yet, and so no ETag and no times. */
  readonly uncommitted: boolean;
  /** Of an append blob. */
  readonly committedBlockCount: number;
  readonly sealed: boolean;
  /** Of a page blob. */
  readonly sequenceNumber: number;
}

export type ListEntry = { readonly kind: "blob"; readonly blob: ListedBlobProperties } | { readonly kind: "prefix"; readonly name: string };

/** What the request said, repeated in the answer. */
export interface ListEcho {
  readonly serviceEndpoint: string;
  readonly prefix?: string;
  readonly delimiter?: string;
  readonly marker?: string;
  readonly maxResults?: number;
  readonly includeMetadata: boolean;
  readonly version: string;
}

function echoed(echo: ListEcho): string {
  let text = "";
  if (echo.prefix !== undefined) text += element("Prefix", echo.prefix);
  if (echo.marker !== undefined) text += element("Marker", echo.marker);
  if (echo.maxResults !== undefined) text += `<MaxResults>${echo.maxResults}</MaxResults>`;
  if (echo.delimiter !== undefined) text += element("Delimiter", echo.delimiter);
  return text;
}

function metadataXml(metadata: Readonly<Record<string, string>>): string {
  let text = "<Metadata>";
  for (const name in metadata) text += element(name, metadata[name] as string);
  return `${text}</Metadata>`;
}

const nextMarkerXml = (marker: string): string => (marker === "" ? "<NextMarker />" : element("NextMarker", marker));
const notLeased = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>";

/** `nextMarker`: as it will be sent back; empty at the end. */
export function listContainersXml(echo: ListEcho, containers: readonly ListedContainer[], nextMarker: string): string {
  let text = `${declaration}<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}">${echoed(echo)}<Containers>`;
  for (const container of containers) {
    text += `<Container>${element("Name", container.name)}<Properties>`;
    text += `<Last-Modified>${formatRfc1123(container.lastModifiedMs)}</Last-Modified>${element("Etag", container.etag)}${notLeased}`;
    text += elementIfAny("PublicAccess", container.publicAccess);
    text += "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold></Properties>";
    text += `${echo.includeMetadata ? metadataXml(container.metadata) : ""}</Container>`;
  }
  return `${text}</Containers>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

export function listBlobsXml(echo: ListEcho, container: string, entries: readonly ListEntry[], nextMarker: string): string {
  const encoded = behaves(echo.version, "encodedNames");
  let text = `${declaration}<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}"`;
  text += ` ContainerName="${escapeXml(container)}">${echoed(echo)}<Blobs>`;
  for (const entry of entries) {
    text += entry.kind === "blob" ? blobXml(entry.blob, echo.includeMetadata, encoded) : prefixXml(entry.name, encoded);
  }
  return `${text}</Blobs>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

const nameXml = (name: string, encoded: boolean): string =>
  encoded && needsEncoding(name) ? `<Name Encoded="true">${encodeURIComponent(name)}</Name>` : element("Name", name);

const prefixXml = (name: string, encoded: boolean): string => `<BlobPrefix>${nameXml(name, encoded)}</BlobPrefix>`;

function blobXml(blob: ListedBlobProperties, includeMetadata: boolean, encoded: boolean): string {
  let text = `<Blob>${nameXml(blob.name, encoded)}<Properties>`;
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
  text += `<BlobType>${blob.blobType}</BlobType>${blob.uncommitted ? "" : notLeased}<ServerEncrypted>false</ServerEncrypted></Properties>`;
  if (includeMetadata && !blob.uncommitted) text += metadataXml(blob.metadata);
  return `${text}</Blob>`;
}

/** What a blob has that was stored without one. */
export const contentTypeOf = (headers: ContentProperties): string =>
  headers.contentType === "" ? "application/octet-stream" : headers.contentType;

export interface ListedBlock {
  readonly blockId: Uint8Array;
  readonly sizeBytes: number;
}

/** A list that was not asked for is undefined. */
export function blockListXml(committed: readonly ListedBlock[] | undefined, uncommitted: readonly ListedBlock[] | undefined): string {
  const list = (name: string, blocks: readonly ListedBlock[] | undefined): string => {
    if (!blocks) return "";
    let text = `<${name}>`;
    for (const block of blocks) text += `<Block><Name>${toBase64(block.blockId)}</Name><Size>${block.sizeBytes}</Size></Block>`;
    return `${text}</${name}>`;
  };
  return `${declaration}<BlockList>${list("CommittedBlocks", committed)}${list("UncommittedBlocks", uncommitted)}</BlockList>`;
}
