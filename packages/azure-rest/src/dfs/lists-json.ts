/**
 * Lists of Data Lake Storage as JSON. Numbers and flags of a path are texts, as the service writes them: a client that takes them for numbers
 * would not read the service's. `isDirectory` and an expiry stand only where they say something.
 */
import { formatRfc1123 } from "../dates.ts";
import { etagHeader } from "../version.ts";

export interface ShownPath {
  /** Path from the root, with slashes between names. */
  readonly name: string;
  readonly isDirectory: boolean;
  readonly contentLengthBytes: number;
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly createdMs: number;
  /** Like group and permissions absent in an account without a hierarchical namespace. */
  readonly owner?: string;
  readonly group?: string;
  /** Permissions in symbolic form. */
  readonly permissions?: string;
}

export interface ShownFilesystem {
  readonly name: string;
  readonly etag: string;
  readonly lastModifiedMs: number;
}

/** Ticks of 100 ns from 1601 to 1970. */
const ticksTo1970 = 116_444_736_000_000_000n;

const fileTimeOf = (ms: number): string => String(BigInt(Math.floor(ms)) * 10_000n + ticksTo1970);
/** Lists have ETags without quotes. */
const etagOf = (version: string, etag: string): string => etagHeader(version, etag).replaceAll('"', "");

export const pathsJson = (version: string, paths: readonly ShownPath[]): string =>
  JSON.stringify({
    paths: paths.map((path) => ({
      contentLength: String(path.contentLengthBytes),
      creationTime: fileTimeOf(path.createdMs),
      etag: etagOf(version, path.etag),
      group: path.group,
      ...(path.isDirectory ? { isDirectory: "true" } : {}),
      lastModified: formatRfc1123(path.lastModifiedMs),
      name: path.name,
      owner: path.owner,
      permissions: path.permissions,
    })),
  });

export const filesystemsJson = (version: string, filesystems: readonly ShownFilesystem[]): string =>
  JSON.stringify({
    filesystems: filesystems.map(({ name, etag, lastModifiedMs }) => ({
      etag: etagOf(version, etag),
      lastModified: formatRfc1123(lastModifiedMs),
      name,
    })),
  });

/** A path that a recursive change of access control could not change. */
export interface FailedPath {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly message: string;
}

/** Answer of a recursive change: numbers of what was changed, and each path that was not. */
export const changedPathsJson = (directories: number, files: number, failed: readonly FailedPath[]): string =>
  JSON.stringify({
    directoriesSuccessful: directories,
    filesSuccessful: files,
    failureCount: failed.length,
    failedEntries: failed.map(({ name, isDirectory, message }) => ({
      name,
      type: isDirectory ? "DIRECTORY" : "FILE",
      errorMessage: message,
    })),
  });
