/** Lists of the Files service: shares, entries of a directory, ranges of a file. */
import { formatRfc1123 } from "../dates.ts";
import { element, elementIfAny, escapeXml, named } from "../xml/xml-text.ts";

const declaration = '<?xml version="1.0" encoding="utf-8"?>';

export interface ShareLease {
  readonly state: string;
  readonly status: string;
  readonly duration: string;
}

export interface ListedShare {
  readonly name: string;
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly quotaGib: number;
  readonly tier: string;
  readonly tierChangedMs: number;
  readonly lease: ShareLease;
  readonly metadata: Readonly<Record<string, string>>;
  /** Version and times of a deleted share that is kept. */
  readonly deleted?: { readonly version: string; readonly deletedMs: number; readonly remainingDays: number } | undefined;
}

export interface ShareListEcho {
  readonly serviceEndpoint: string;
  readonly prefix?: string;
  readonly marker?: string;
  readonly maxResults?: number;
  readonly withMetadata: boolean;
}

const metadataXml = (metadata: Readonly<Record<string, string>>): string =>
  `<Metadata>${Object.entries(metadata)
    .map(([name, value]) => element(name, value))
    .join("")}</Metadata>`;

const echoed = ({ prefix, marker, maxResults }: Pick<ShareListEcho, "prefix" | "marker" | "maxResults">): string =>
  `${prefix === undefined ? "" : element("Prefix", prefix)}${marker === undefined ? "" : element("Marker", marker)}` +
  `${maxResults === undefined ? "" : `<MaxResults>${maxResults}</MaxResults>`}`;

const nextMarkerXml = (marker: string): string => (marker === "" ? "<NextMarker />" : element("NextMarker", marker));

export function sharesXml(echo: ShareListEcho, shares: readonly ListedShare[], nextMarker: string): string {
  const listed = shares.map((share) => {
    const { deleted, lease } = share;
    const state =
      deleted === undefined
        ? `<LeaseStatus>${lease.status}</LeaseStatus><LeaseState>${lease.state}</LeaseState>${elementIfAny("LeaseDuration", lease.duration)}`
        : `<DeletedTime>${formatRfc1123(deleted.deletedMs)}</DeletedTime><RemainingRetentionDays>${deleted.remainingDays}</RemainingRetentionDays>`;
    return (
      `<Share>${element("Name", share.name)}${deleted ? `<Deleted>true</Deleted>${element("Version", deleted.version)}` : ""}` +
      `<Properties><Last-Modified>${formatRfc1123(share.lastModifiedMs)}</Last-Modified>${element("Etag", share.etag)}` +
      `<Quota>${share.quotaGib}</Quota><AccessTier>${share.tier}</AccessTier>` +
      `<AccessTierChangeTime>${formatRfc1123(share.tierChangedMs)}</AccessTierChangeTime>${state}</Properties>` +
      `${echo.withMetadata ? metadataXml(share.metadata) : ""}</Share>`
    );
  });
  const root = `<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}">`;
  return `${declaration}${root}${echoed(echo)}<Shares>${listed.join("")}</Shares>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

/** A file or directory of a list. What `include` did not ask for is undefined. */
export interface ListedEntry {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly fileId: string | undefined;
  readonly lengthBytes: number;
  readonly times?: { readonly created: string; readonly written: string; readonly changed: string; readonly lastModifiedMs: number };
  readonly etag?: string;
  readonly attributes?: string;
  readonly permissionKey?: string;
}

export interface EntryListEcho {
  readonly serviceEndpoint: string;
  readonly shareName: string;
  readonly directoryPath: string;
  readonly directoryId: string | undefined;
  readonly prefix?: string;
  readonly marker?: string;
  readonly maxResults?: number;
}

export function entriesXml(echo: EntryListEcho, entries: readonly ListedEntry[], nextMarker: string): string {
  const listed = entries.map((entry) => {
    const { times } = entry;
    const shown =
      (entry.isDirectory ? "" : `<Content-Length>${entry.lengthBytes}</Content-Length>`) +
      (times === undefined
        ? ""
        : `<CreationTime>${times.created}</CreationTime><LastAccessTime>${times.written}</LastAccessTime>` +
          `<LastWriteTime>${times.written}</LastWriteTime><ChangeTime>${times.changed}</ChangeTime>` +
          `<Last-Modified>${formatRfc1123(times.lastModifiedMs)}</Last-Modified>`) +
      (entry.etag === undefined ? "" : element("Etag", entry.etag));
    const tag = entry.isDirectory ? "Directory" : "File";
    return (
      `<${tag}>${named("Name", entry.name)}${entry.fileId === undefined ? "" : element("FileId", entry.fileId)}<Properties>${shown}</Properties>` +
      `${entry.attributes === undefined ? "" : element("Attributes", entry.attributes)}` +
      `${entry.permissionKey === undefined ? "" : element("PermissionKey", entry.permissionKey)}</${tag}>`
    );
  });
  const root =
    `<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}" ShareName="${escapeXml(echo.shareName)}" ` +
    `DirectoryPath="${escapeXml(echo.directoryPath)}">`;
  const id = echo.directoryId === undefined ? "" : element("DirectoryId", echo.directoryId);
  return `${declaration}${root}${echoed(echo)}${id}<Entries>${listed.join("")}</Entries>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

/** A handle as List Handles shows it. */
export interface ListedHandle {
  readonly id: string;
  /** Path of the file in its share. */
  readonly path: string;
  readonly fileId: string;
  readonly parentId: string | undefined;
  readonly sessionId: string;
  readonly client: string;
  readonly openedMs: number;
  readonly rights: readonly ("Read" | "Write" | "Delete")[];
}

export function handlesXml(handles: readonly ListedHandle[], nextMarker: string): string {
  const listed = handles.map(
    (handle) =>
      `<Handle>${element("HandleId", handle.id)}${named("Path", handle.path)}${element("FileId", handle.fileId)}` +
      `${handle.parentId === undefined ? "" : element("ParentId", handle.parentId)}${element("SessionId", handle.sessionId)}` +
      `${element("ClientIp", handle.client)}${element("ClientName", handle.client)}<OpenTime>${formatRfc1123(handle.openedMs)}</OpenTime>` +
      `<AccessRightList>${handle.rights.map((right) => `<AccessRight>${right}</AccessRight>`).join("")}</AccessRightList></Handle>`,
  );
  return `${declaration}<EnumerationResults><Entries>${listed.join("")}</Entries>${nextMarkerXml(nextMarker)}</EnumerationResults>`;
}

/** `endBytes`: exclusive. */
export const rangesXml = (ranges: readonly { readonly startBytes: number; readonly endBytes: number }[]): string =>
  `${declaration}<Ranges>${ranges
    .map(({ startBytes, endBytes }) => `<Range><Start>${startBytes}</Start><End>${endBytes - 1}</End></Range>`)
    .join("")}</Ranges>`;

export const shareStatsXml = (usageBytes: number): string =>
  `${declaration}<ShareStats><ShareUsageBytes>${usageBytes}</ShareUsageBytes></ShareStats>`;
