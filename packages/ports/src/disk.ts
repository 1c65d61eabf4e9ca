/**
 * Files below one root folder. Paths are relative, with `/`, without `..`. What is written is readable at once but survives a crash
 * only after `sync` (content) and, for names, `syncFolder`. Until then a crash may keep any part of it, also out of order and torn
 * inside a 4 KiB page.
 */
export type DiskErrorKind =
  | "notFound"
  | "exists"
  | "full"
  /** The system lacks something else it needs just now (file handles, memory): nothing is wrong with the data. */
  | "unavailable"
  /** A read or write failed: the data at this place are suspect. */
  | "io"
  /** fsync failed: what was written since the last good one may be gone. Never retried: the process stops. */
  | "syncFailed";

export class DiskError extends Error {
  override readonly name = "DiskError";
  readonly kind: DiskErrorKind;
  readonly path: string;
  constructor(kind: DiskErrorKind, path: string, message: string) {
    super(`${kind}: ${path}: ${message}`);
    this.kind = kind;
    this.path = path;
  }
}

/** Room of a file system, as far as this process may use it. */
export interface DiskSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Number of files (inodes) that can still be made; undefined: the file system has no fixed number of them. */
  readonly freeFiles?: number;
  /** Number of files that the file system can hold; undefined as `freeFiles`. */
  readonly totalFiles?: number;
}

/** Every method may throw DiskError. */
export interface DiskFile {
  readonly path: string;
  sizeBytes(): Promise<number>;
  /**
   * Reads up to `lengthBytes` bytes from `offsetBytes`; fewer only at the end of the file. They are owned, or with `into` at the beginning of it.
   * `into`: memory of at least `lengthBytes`, which is lent until the promise settles.
   */
  read(offsetBytes: number, lengthBytes: number, into?: Uint8Array): Promise<Uint8Array>;
  /** Writes all chunks one after another from `offsetBytes`; they are borrowed until it resolves. Extends the file when needed. */
  write(offsetBytes: number, chunks: readonly Uint8Array[]): Promise<void>;
  /** Makes the file at least this long with its blocks allocated, reading as zeros where nothing was written. */
  allocate(lengthBytes: number): Promise<void>;
  truncate(lengthBytes: number): Promise<void>;
  /** Syncs the file: all writes before the call are durable when it resolves (fdatasync). */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface Disk {
  /** Opens a file; `create`: make it, with its folders, if it is absent. Else an absent file is DiskError `notFound`. */
  open(path: string, options?: { create?: boolean }): Promise<DiskFile>;
  exists(path: string): Promise<boolean>;
  /** Returns the names directly below a folder, sorted; empty when there is no such folder. */
  list(folder: string): Promise<string[]>;
  remove(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Syncs a folder: names created, renamed or removed before the call are durable when it resolves. */
  syncFolder(folder: string): Promise<void>;
  /** Replaces a small file as a whole: after a crash it has the old or the new content. Durable when it resolves. */
  writeAtomically(path: string, content: Uint8Array): Promise<void>;
  /** Returns the whole content, or undefined when absent. */
  readWhole(path: string): Promise<Uint8Array | undefined>;
  space(): Promise<DiskSpace>;
}
