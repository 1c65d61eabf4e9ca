/**
 * Files below one root folder: reads and small writes through the page cache, large writes past it (direct-writes.ts). Nothing is held back in this process: what `write` resolved is in the kernel,
 * what `sync` resolved is on the device as far as the kernel knows.
 *
 * `allocate`: Node has no posix_fallocate, and a hole made by ftruncate would still run out of space (and change the file's metadata)
 * at the write that fills it. So the missing part is written with zeros once, in chunks: afterwards blocks exist, the size is final,
 * and fdatasync of later writes has no new size to record. It costs one pass of writing when a journal segment is made.
 */
import type { FileHandle } from "node:fs/promises";
import { constants, mkdir, open, readdir, readFile, rename, rm, stat, statfs, unlink } from "node:fs/promises";
import { dirname, join, posix, resolve } from "node:path";
import { assert, totalLength } from "@stamp/base";
import type { Disk, DiskErrorKind, DiskFile, DiskSpace } from "@stamp/ports";
import { DiskError } from "@stamp/ports";
import { cutAtPages, type DirectSupport, DirectWrites, wholePages } from "./direct-writes.ts";
import { usableSpace } from "./space.ts";

const zeros = new Uint8Array(1024 * 1024);
/** Chunks of one writev at most on Linux. */
const chunksPerWriteMax = 1024;

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? "";

function diskError(error: unknown, path: string): DiskError {
  const message = error instanceof Error ? error.message : String(error);
  const kinds: Record<string, DiskErrorKind> = {
    ENOENT: "notFound",
    EEXIST: "exists",
    ENOSPC: "full",
    EDQUOT: "full",
    EFBIG: "full",
    EMFILE: "unavailable",
    ENFILE: "unavailable",
    ENOMEM: "unavailable",
    EAGAIN: "unavailable",
    EINTR: "unavailable",
  };
  return new DiskError(kinds[codeOf(error)] ?? "io", path, message);
}

async function syncing(path: string, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    throw new DiskError("syncFailed", path, error instanceof Error ? error.message : String(error));
  }
}

class NodeFile implements DiskFile {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #support: DirectSupport;
  readonly #direct: DirectWrites;

  constructor(path: string, handle: FileHandle, support: DirectSupport) {
    this.path = path;
    this.#handle = handle;
    this.#support = support;
    this.#direct = new DirectWrites(handle, support);
  }

  async sizeBytes(): Promise<number> {
    try {
      return (await this.#handle.stat()).size;
    } catch (error) {
      throw diskError(error, this.path);
    }
  }

  async read(offsetBytes: number, lengthBytes: number, into?: Uint8Array): Promise<Uint8Array> {
    // Not filled with zeros first, which would take as long as the read from the page cache; what was not read never leaves.
    const bytes = into?.subarray(0, lengthBytes) ?? new Uint8Array(Buffer.allocUnsafeSlow(lengthBytes).buffer);
    assert(bytes.length === lengthBytes, "memory for a read is as long as the read");
    let filled = 0;
    try {
      while (filled < lengthBytes) {
        const { bytesRead } = await this.#handle.read(bytes, filled, lengthBytes - filled, offsetBytes + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
    } catch (error) {
      throw diskError(error, this.path);
    }
    if (filled === lengthBytes) return bytes;
    return into === undefined ? bytes.slice(0, filled) : bytes.subarray(0, filled);
  }

  async write(offsetBytes: number, chunks: readonly Uint8Array[]): Promise<void> {
    const lengthBytes = totalLength(chunks);
    const pages = this.#support.refused ? undefined : wholePages(offsetBytes, lengthBytes);
    if (pages === undefined) return this.#writeCached(offsetBytes, chunks);
    const { first, end } = pages;
    if (first > offsetBytes) await this.#writeCached(offsetBytes, cutAtPages(chunks, 0, first - offsetBytes));
    let done = first;
    try {
      done += await this.#direct.write(first, cutAtPages(chunks, first - offsetBytes, end - offsetBytes), end - first);
    } catch (error) {
      throw diskError(error, this.path);
    }
    if (done < offsetBytes + lengthBytes) await this.#writeCached(done, cutAtPages(chunks, done - offsetBytes, lengthBytes));
  }

  async #writeCached(offsetBytes: number, chunks: readonly Uint8Array[]): Promise<void> {
    let pending = chunks.filter((chunk) => chunk.length > 0);
    let at = offsetBytes;
    try {
      while (pending.length > 0) {
        const now = pending.length > chunksPerWriteMax ? pending.slice(0, chunksPerWriteMax) : pending;
        const first = now[0] as Uint8Array;
        const { bytesWritten } =
          now.length === 1 ? await this.#handle.write(first, 0, first.length, at) : await this.#handle.writev(now as Uint8Array[], at);
        at += bytesWritten;
        pending = afterBytes(pending, bytesWritten);
      }
    } catch (error) {
      throw diskError(error, this.path);
    }
  }

  async allocate(lengthBytes: number): Promise<void> {
    let end = await this.sizeBytes();
    while (end < lengthBytes) {
      const chunk = zeros.subarray(0, Math.min(zeros.length, lengthBytes - end));
      await this.write(end, [chunk]);
      end += chunk.length;
    }
  }

  async truncate(lengthBytes: number): Promise<void> {
    try {
      await this.#handle.truncate(lengthBytes);
    } catch (error) {
      throw diskError(error, this.path);
    }
  }

  sync(): Promise<void> {
    return syncing(this.path, this.#handle.datasync());
  }

  async close(): Promise<void> {
    try {
      await this.#direct.close();
      await this.#handle.close();
    } catch (error) {
      throw diskError(error, this.path);
    }
  }
}

/** Returns the rest after the first `count` bytes were taken (writev may write less than it was given). */
function afterBytes(chunks: Uint8Array[], count: number): Uint8Array[] {
  let left = count;
  let i = 0;
  while (i < chunks.length && left >= (chunks[i] as Uint8Array).length) {
    left -= (chunks[i] as Uint8Array).length;
    i += 1;
  }
  if (i === chunks.length) return [];
  const rest = chunks.slice(i);
  if (left > 0) rest[0] = (rest[0] as Uint8Array).subarray(left);
  return rest;
}

export class NodeDisk implements Disk {
  readonly #root: string;
  readonly #support: DirectSupport;

  /** `direct: false`: every write goes through the page cache. */
  constructor(root: string, options: { readonly direct?: boolean } = {}) {
    this.#root = resolve(root);
    this.#support = { refused: options.direct === false || constants.O_DIRECT === undefined };
  }

  #full(path: string): string {
    assert(!path.startsWith("/") && !path.split("/").includes(".."), `not a relative path: ${path}`);
    return join(this.#root, path);
  }

  async open(path: string, options: { create?: boolean } = {}): Promise<DiskFile> {
    const full = this.#full(path);
    try {
      if (!options.create) return new NodeFile(path, await open(full, constants.O_RDWR), this.#support);
      try {
        return new NodeFile(path, await open(full, constants.O_RDWR | constants.O_CREAT, 0o600), this.#support);
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error;
        await this.#makeFolder(posix.dirname(path));
        return new NodeFile(path, await open(full, constants.O_RDWR | constants.O_CREAT, 0o600), this.#support);
      }
    } catch (error) {
      if (error instanceof DiskError) throw error;
      throw diskError(error, path);
    }
  }

  /** Makes a folder and those above it; each new name is durable, so that syncFolder of the last one is all a caller needs. */
  async #makeFolder(folder: string): Promise<void> {
    const made = await mkdir(this.#full(folder), { recursive: true, mode: 0o700 });
    if (made === undefined) return;
    for (let at = this.#full(folder); ; at = dirname(at)) {
      await syncing(at, syncFolderAt(dirname(at)));
      if (at === made || at.length <= made.length) return;
    }
  }

  async exists(path: string): Promise<boolean> {
    try {
      await stat(this.#full(path));
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw diskError(error, path);
    }
  }

  async list(folder: string): Promise<string[]> {
    try {
      return (await readdir(this.#full(folder))).sort();
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw diskError(error, folder);
    }
  }

  async remove(path: string): Promise<void> {
    try {
      await unlink(this.#full(path));
    } catch (error) {
      throw diskError(error, path);
    }
  }

  async rename(from: string, to: string): Promise<void> {
    try {
      await rename(this.#full(from), this.#full(to));
    } catch (error) {
      throw diskError(error, from);
    }
  }

  syncFolder(folder: string): Promise<void> {
    return syncing(folder, syncFolderAt(this.#full(folder)));
  }

  async writeAtomically(path: string, content: Uint8Array): Promise<void> {
    const temporary = `${path}.new`;
    const file = await this.open(temporary, { create: true });
    try {
      await file.truncate(0);
      await file.write(0, [content]);
      await file.sync();
    } catch (error) {
      await file.close();
      await rm(this.#full(temporary), { force: true });
      throw error;
    }
    await file.close();
    await this.rename(temporary, path);
    await this.syncFolder(posix.dirname(path));
  }

  async readWhole(path: string): Promise<Uint8Array | undefined> {
    try {
      const buffer = await readFile(this.#full(path));
      return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw diskError(error, path);
    }
  }

  async space(): Promise<DiskSpace> {
    try {
      return usableSpace(await statfs(this.#root));
    } catch (error) {
      throw diskError(error, ".");
    }
  }
}

async function syncFolderAt(full: string): Promise<void> {
  const handle = await open(full, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
