/**
 * Writes whole pages of a file past the page cache (O_DIRECT). A copy into pages of the kernel that were just allocated, and their way to the disk
 * later, cost more processor time than everything else that is done with large data; here they are copied into memory that is used again
 * and again, and the disk takes them from there.
 *
 *     chunks (anywhere in memory) ──copy──▶ slot (page-aligned, reused) ──pwrite──▶ disk
 *
 * Invariants:
 *  - Only whole pages go this way. What lies before the first and behind the last whole page of a write shares its page with other
 *    writes, and goes through the page cache: so no page is ever written in both ways at once.
 *  - What `write` resolved is read by everybody, and survives a crash only after `sync`, as with the page cache.
 *  - A file system that does not take it is found out at the first write, and nothing is lost: the same bytes then go through the page cache.
 */
import type { FileHandle } from "node:fs/promises";
import { constants, open } from "node:fs/promises";

/** Unit of offsets, lengths and memory. Disks ask for 512 bytes or 4 KiB. */
export const directPageBytes = 4096;
/** Number of bytes in whole pages below which a write goes through the page cache, which is quicker for it. */
export const directBytesMin: number = 128 * 1024;
const slotBytes = 1024 * 1024;
/** Threads that Node has for files. */
const slotsMax = 4;
const wasmPageBytes = 64 * 1024;

/** Page-aligned memory in slots. A WebAssembly.Memory is the one kind of page-aligned memory that Node gives. */
class Slots {
  readonly #free: Uint8Array<ArrayBuffer>[] = [];
  readonly #waiting: ((slot: Uint8Array<ArrayBuffer>) => void)[] = [];
  #made = 0;

  take(): Promise<Uint8Array<ArrayBuffer>> {
    const slot = this.#free.pop();
    if (slot !== undefined) return Promise.resolve(slot);
    if (this.#made === slotsMax) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#made += 1;
    const pages = slotBytes / wasmPageBytes;
    return Promise.resolve(new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages }).buffer));
  }

  give(slot: Uint8Array<ArrayBuffer>): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(slot);
    else next(slot);
  }
}

const slots = new Slots();

/** Returns where a write is cut: whole pages from `first` to `end`; undefined if it has too few of them. */
export function wholePages(offsetBytes: number, lengthBytes: number): { readonly first: number; readonly end: number } | undefined {
  const first = Math.ceil(offsetBytes / directPageBytes) * directPageBytes;
  const end = Math.floor((offsetBytes + lengthBytes) / directPageBytes) * directPageBytes;
  return end - first >= directBytesMin ? { first, end } : undefined;
}

/** Returns the bytes `from` to `to` of the chunks one after another, as views. */
export function cutAtPages(chunks: readonly Uint8Array[], from: number, to: number): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const chunk of chunks) {
    const [first, last] = [Math.max(from - at, 0), Math.min(to - at, chunk.length)];
    if (first < last) parts.push(first === 0 && last === chunk.length ? chunk : chunk.subarray(first, last));
    at += chunk.length;
    if (at >= to) break;
  }
  return parts;
}

/** Set when the file system of one disk has refused: nobody tries again. */
export interface DirectSupport {
  refused: boolean;
}

/** Second handle of a file for direct writes, opened at the first use. */
export class DirectWrites {
  readonly #cached: FileHandle;
  readonly #support: DirectSupport;
  #opening: Promise<FileHandle | undefined> | undefined;

  /** `cached`: handle that all other operations on the file use. */
  constructor(cached: FileHandle, support: DirectSupport) {
    this.#cached = cached;
    this.#support = support;
  }

  /**
   * Writes the chunks at `offsetBytes`; both it and their length are multiples of a page. Returns how many bytes were written: fewer than there
   * are when the file system takes no more of them this way. Throws what the system says otherwise.
   */
  async write(offsetBytes: number, chunks: readonly Uint8Array[], lengthBytes: number): Promise<number> {
    this.#opening ??= this.#open();
    const handle = await this.#opening;
    if (handle === undefined) return 0;
    const slot = await slots.take();
    let done = 0;
    try {
      while (done < lengthBytes) {
        const count = Math.min(slotBytes, lengthBytes - done);
        let filled = 0;
        for (const part of cutAtPages(chunks, done, done + count)) {
          slot.set(part, filled);
          filled += part.length;
        }
        const { bytesWritten } = await handle.write(slot, 0, count, offsetBytes + done);
        done += bytesWritten - (bytesWritten % directPageBytes);
        if (bytesWritten < count) break;
      }
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#support.refused = true;
    } finally {
      slots.give(slot);
    }
    return done;
  }

  /** Opens the file once more for direct writes, over the open handle and not by name: the name may be another file's by now. */
  async #open(): Promise<FileHandle | undefined> {
    try {
      return await open(`/proc/self/fd/${this.#cached.fd}`, constants.O_RDWR | constants.O_DIRECT);
    } catch (error) {
      // Short of handles is no refusal: the next write tries again.
      if (["EMFILE", "ENFILE"].includes(codeOf(error))) this.#opening = undefined;
      else this.#support.refused = true;
      return undefined;
    }
  }

  async close(): Promise<void> {
    const handle = await this.#opening?.catch(() => undefined);
    await handle?.close();
  }
}

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? "";
const isRefusal = (error: unknown): boolean => ["EINVAL", "EOPNOTSUPP", "ENOTSUP"].includes(codeOf(error));
