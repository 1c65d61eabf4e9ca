/**
 * The Disk port of one role in memory. What is written stays when the role is killed, as the page cache of a machine stays when a process
 * is, and is gone with the stamp. Pages that were never written take no memory.
 *
 * Invariant: work that only waits for the disk lets others in (`next-turn.ts`).
 */
import { concatBytes } from "@stamp/base";
import { type Disk, DiskError, type DiskFile, type DiskSpace } from "@stamp/ports";
import { nextTurn } from "./next-turn.ts";

const pageBytes = 16 * 1024;

class MemoryFile {
  readonly #pages = new Map<number, Uint8Array>();
  sizeBytes = 0;
  /** True while the file has a name. Afterwards its pages go with the last process that has the file open. */
  isNamed = false;

  read(offsetBytes: number, lengthBytes: number, into?: Uint8Array): Uint8Array {
    const length = Math.max(0, Math.min(lengthBytes, this.sizeBytes - offsetBytes));
    const bytes = into === undefined ? new Uint8Array(length) : into.subarray(0, length);
    this.#eachPart(offsetBytes, length, (page, inside, done, part) => {
      const held = this.#pages.get(page);
      if (held !== undefined) bytes.set(held.subarray(inside, inside + part), done);
      else bytes.fill(0, done, done + part);
    });
    return bytes;
  }

  /** Returns the number of pages that a write there makes. */
  pagesNeeded(offsetBytes: number, length: number): number {
    let pages = 0;
    this.#eachPart(offsetBytes, length, (page) => {
      if (!this.#pages.has(page)) pages++;
    });
    return pages;
  }

  write(offsetBytes: number, bytes: Uint8Array): void {
    this.#eachPart(offsetBytes, bytes.length, (page, inside, done, part) => {
      let held = this.#pages.get(page);
      if (held === undefined) {
        held = new Uint8Array(pageBytes);
        this.#pages.set(page, held);
      }
      held.set(bytes.subarray(done, done + part), inside);
    });
    if (bytes.length > 0) this.sizeBytes = Math.max(this.sizeBytes, offsetBytes + bytes.length);
  }

  /** Drops the content beyond the size: it reads as zeros if the file grows again. */
  truncate(sizeBytes: number): void {
    for (const page of this.#pages.keys()) if (page * pageBytes >= sizeBytes) this.#pages.delete(page);
    this.#pages.get(Math.floor(sizeBytes / pageBytes))?.fill(0, sizeBytes % pageBytes);
    this.sizeBytes = sizeBytes;
  }

  get pages(): number {
    return this.#pages.size;
  }

  #eachPart(offsetBytes: number, length: number, each: (page: number, inside: number, done: number, part: number) => void): void {
    for (let done = 0; done < length; ) {
      const at = offsetBytes + done;
      const inside = at % pageBytes;
      const part = Math.min(pageBytes - inside, length - done);
      each((at - inside) / pageBytes, inside, done, part);
      done += part;
    }
  }
}

export class MemoryDisk implements Disk {
  readonly #files = new Map<string, MemoryFile>();
  readonly #folders = new Set<string>([""]);
  readonly #totalBytes: number;
  /** Number of pages of all files that have a name. */
  #pages = 0;

  /** `totalBytes`: bound of the memory for its pages. Writes beyond fail as on a full disk. */
  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
  }

  async open(path: string, options: { create?: boolean } = {}): Promise<DiskFile> {
    checkPath(path);
    await nextTurn();
    let file = this.#files.get(path);
    if (file === undefined) {
      if (options.create !== true) throw absent(path);
      file = new MemoryFile();
      this.#put(path, file);
    }
    return new MemoryHandle(path, file, (pages) => {
      if (file.isNamed) this.#change(path, pages);
    });
  }

  async exists(path: string): Promise<boolean> {
    checkPath(path);
    await nextTurn();
    return this.#files.has(path) || this.#folders.has(path);
  }

  async list(folder: string): Promise<string[]> {
    await nextTurn();
    const below = folder === "" ? "" : `${folder}/`;
    const names = [...this.#files.keys(), ...this.#folders].flatMap((path) =>
      path !== "" && path.startsWith(below) && path.length > below.length ? [path.slice(below.length).split("/")[0] as string] : [],
    );
    return [...new Set(names)].sort();
  }

  async remove(path: string): Promise<void> {
    checkPath(path);
    await nextTurn();
    const file = this.#files.get(path);
    if (file === undefined) throw absent(path);
    this.#drop(path, file);
  }

  async rename(from: string, to: string): Promise<void> {
    checkPath(from);
    checkPath(to);
    await nextTurn();
    const file = this.#files.get(from);
    if (file === undefined) throw absent(from);
    this.#files.delete(from);
    this.#put(to, file);
  }

  syncFolder(): Promise<void> {
    return nextTurn();
  }

  async writeAtomically(path: string, content: Uint8Array): Promise<void> {
    checkPath(path);
    const file = new MemoryFile();
    this.#change(path, file.pagesNeeded(0, content.length));
    file.write(0, content);
    await nextTurn();
    this.#put(path, file);
  }

  async readWhole(path: string): Promise<Uint8Array | undefined> {
    checkPath(path);
    await nextTurn();
    const file = this.#files.get(path);
    return file?.read(0, file.sizeBytes);
  }

  async space(): Promise<DiskSpace> {
    await nextTurn();
    return { freeBytes: Math.max(0, this.#totalBytes - this.#pages * pageBytes), totalBytes: this.#totalBytes };
  }

  #put(path: string, file: MemoryFile): void {
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) this.#folders.add(path.slice(0, at));
    const before = this.#files.get(path);
    if (before !== undefined) this.#drop(path, before);
    file.isNamed = true;
    this.#files.set(path, file);
  }

  #drop(path: string, file: MemoryFile): void {
    this.#files.delete(path);
    file.isNamed = false;
    this.#pages -= file.pages;
  }

  #change(path: string, pages: number): void {
    if (pages > 0 && (this.#pages + pages) * pageBytes > this.#totalBytes)
      throw new DiskError("full", path, "no memory is left for the files of this role");
    this.#pages += pages;
  }
}

class MemoryHandle implements DiskFile {
  readonly path: string;
  readonly #file: MemoryFile;
  /** Takes by how many pages the file will grow or has shrunk; throws if there is no room. */
  readonly #change: (pages: number) => void;
  #closed = false;

  constructor(path: string, file: MemoryFile, change: (pages: number) => void) {
    this.path = path;
    this.#file = file;
    this.#change = change;
  }

  async sizeBytes(): Promise<number> {
    await this.#turn();
    return this.#file.sizeBytes;
  }

  async read(offsetBytes: number, lengthBytes: number, into?: Uint8Array): Promise<Uint8Array> {
    await this.#turn();
    return this.#file.read(offsetBytes, lengthBytes, into);
  }

  async write(offsetBytes: number, chunks: readonly Uint8Array[]): Promise<void> {
    const bytes = chunks.length === 1 ? (chunks[0] as Uint8Array) : concatBytes(chunks);
    this.#change(this.#file.pagesNeeded(offsetBytes, bytes.length));
    this.#file.write(offsetBytes, bytes);
    await this.#turn();
  }

  async allocate(lengthBytes: number): Promise<void> {
    this.#file.sizeBytes = Math.max(this.#file.sizeBytes, lengthBytes);
    await this.#turn();
  }

  async truncate(lengthBytes: number): Promise<void> {
    const before = this.#file.pages;
    if (lengthBytes < this.#file.sizeBytes) this.#file.truncate(lengthBytes);
    this.#change(this.#file.pages - before);
    await this.#turn();
  }

  sync(): Promise<void> {
    return this.#turn();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await nextTurn();
  }

  #turn(): Promise<void> {
    if (this.#closed) return Promise.reject(new DiskError("io", this.path, "the file is closed"));
    return nextTurn();
  }
}

const absent = (path: string): DiskError => new DiskError("notFound", path, "no such file");

function checkPath(path: string): void {
  if (path.split("/").some((part) => part === "" || part === "." || part === ".."))
    throw new Error(`not a relative path of a file: ${JSON.stringify(path)}`);
}
