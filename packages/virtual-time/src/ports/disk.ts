/** The Disk port of one incarnation over the machine's disk. A change is seen by readers at once, and durable as `Disk` says. */
import { concatBytes } from "@stamp/base";
import type { Disk, DiskFile, DiskSpace } from "@stamp/ports";
import { DiskError } from "@stamp/ports";
import type { Incarnation } from "../kernel/process.ts";
import type { FileState } from "./disk-file-state.ts";
import type { DiskOperation, SimDiskState } from "./disk-state.ts";

export class SimDisk implements Disk {
  readonly #incarnation: Incarnation;
  readonly #state: SimDiskState;

  constructor(incarnation: Incarnation, state: SimDiskState) {
    this.#incarnation = incarnation;
    this.#state = state;
  }

  open(path: string, options: { create?: boolean } = {}): Promise<DiskFile> {
    checkPath(path);
    return this.#do("open", "readUs", path, () => {
      const { totalFiles = Number.POSITIVE_INFINITY } = this.#state.options;
      const held = this.#state.get(path);
      if (held === undefined && options.create && this.#state.fileCount >= totalFiles)
        throw new DiskError("full", path, "no inode is free");
      const file = held ?? (options.create ? this.#state.create(path) : undefined);
      if (!file) throw new DiskError("notFound", path, "no such file");
      return new SimDiskFile(this.#incarnation, this.#state, path, file);
    });
  }

  exists(path: string): Promise<boolean> {
    checkPath(path);
    return this.#do("name", "readUs", path, () => this.#state.get(path) !== undefined);
  }

  list(folder: string): Promise<string[]> {
    return this.#do("name", "readUs", folder, () => this.#state.list(folder));
  }

  remove(path: string): Promise<void> {
    checkPath(path);
    return this.#do("name", "writeUs", path, () => {
      if (!this.#state.remove(path)) throw new DiskError("notFound", path, "no such file");
    });
  }

  rename(from: string, to: string): Promise<void> {
    checkPath(from);
    checkPath(to);
    return this.#do("name", "writeUs", from, () => {
      if (!this.#state.rename(from, to)) throw new DiskError("notFound", from, "no such file");
    });
  }

  syncFolder(folder: string): Promise<void> {
    if (!this.#incarnation.alive) return new Promise(() => {});
    const before = this.#state.pendingNames();
    return this.#do("sync", "syncUs", folder, () => this.#state.syncNames(folder, before));
  }

  writeAtomically(path: string, content: Uint8Array): Promise<void> {
    checkPath(path);
    if (!this.#incarnation.alive) return new Promise(() => {});
    if (this.#state.usedBytes() + content.length > this.#state.options.totalBytes) {
      return Promise.reject(new DiskError("full", path, "no space left"));
    }
    const file = this.#state.beginAtomic(path, content);
    return this.#do("sync", "syncUs", path, () => this.#state.endAtomic(path, file));
  }

  readWhole(path: string): Promise<Uint8Array | undefined> {
    checkPath(path);
    return this.#do("read", "readUs", path, () => {
      const file = this.#state.get(path);
      return file?.read(0, file.sizeBytes);
    });
  }

  space(): Promise<DiskSpace> {
    return this.#do("name", "readUs", "", () => {
      const { totalBytes, totalFiles } = this.#state.options;
      const bytes = { freeBytes: Math.max(0, totalBytes - this.#state.usedBytes()), totalBytes };
      return totalFiles === undefined ? bytes : { ...bytes, freeFiles: Math.max(0, totalFiles - this.#state.fileCount), totalFiles };
    });
  }

  #do<T>(operation: DiskOperation, latency: "readUs" | "writeUs" | "syncUs", path: string, work: () => T): Promise<T> {
    return performed(this.#incarnation, this.#state, operation, latency, path, work);
  }
}

class SimDiskFile implements DiskFile {
  readonly path: string;
  readonly #incarnation: Incarnation;
  readonly #state: SimDiskState;
  readonly #file: FileState;
  #closed = false;

  constructor(incarnation: Incarnation, state: SimDiskState, path: string, file: FileState) {
    this.path = path;
    this.#incarnation = incarnation;
    this.#state = state;
    this.#file = file;
  }

  sizeBytes(): Promise<number> {
    return this.#do("name", "readUs", () => this.#file.sizeBytes);
  }

  read(offsetBytes: number, lengthBytes: number, into?: Uint8Array): Promise<Uint8Array> {
    return this.#do("read", "readUs", () => {
      const bytes = this.#file.read(offsetBytes, lengthBytes);
      if (into === undefined) return bytes;
      into.set(bytes);
      return into.subarray(0, bytes.length);
    });
  }

  write(offsetBytes: number, chunks: readonly Uint8Array[]): Promise<void> {
    if (!this.#incarnation.alive) return new Promise(() => {});
    // Copied now: seen by readers from now on, and the caller's again.
    const bytes = concatBytes(chunks);
    const failure = this.#state.plannedFailure("write", this.path) ?? this.#fullAt(offsetBytes + bytes.length);
    if (this.#closed) return Promise.reject(new DiskError("io", this.path, "the file is closed"));
    if (failure) {
      if (failure !== "full") this.#file.write(offsetBytes, bytes.subarray(0, this.#state.partOf(bytes.length)));
      return this.#do("name", "writeUs", () => {
        throw new DiskError(failure, this.path, failure === "full" ? "no space left" : "injected");
      });
    }
    if (bytes.length > 0) this.#file.write(offsetBytes, bytes);
    return this.#do("write", "writeUs", () => {});
  }

  allocate(lengthBytes: number): Promise<void> {
    return this.#do("name", "writeUs", () => {
      if (lengthBytes <= this.#file.sizeBytes) return;
      if (this.#fullAt(lengthBytes)) throw new DiskError("full", this.path, "no space left");
      this.#file.setSize(lengthBytes);
    });
  }

  truncate(lengthBytes: number): Promise<void> {
    if (!this.#incarnation.alive) return new Promise(() => {});
    if (lengthBytes < this.#file.sizeBytes) this.#file.setSize(lengthBytes);
    return this.#do("name", "writeUs", () => {});
  }

  sync(): Promise<void> {
    const order = this.#file.order;
    const synced = this.#do("sync", "syncUs", () => {
      if (!this.#state.lying) this.#file.makeDurable(order);
    });
    return synced.catch((error: unknown) => {
      if (error instanceof DiskError && error.kind === "syncFailed") this.#file.syncFailed(order);
      throw error;
    });
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#incarnation.later(0, "disk-close", this.path, () => {});
  }

  #fullAt(endBytes: number): "full" | undefined {
    const growth = endBytes - this.#file.sizeBytes;
    return growth > 0 && this.#state.usedBytes() + growth > this.#state.options.totalBytes ? "full" : undefined;
  }

  #do<T>(operation: DiskOperation, latency: "readUs" | "writeUs" | "syncUs", work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new DiskError("io", this.path, "the file is closed"));
    return performed(this.#incarnation, this.#state, operation, latency, this.path, work);
  }
}

/** Reads and opens have no failpoints: they persist nothing. A write's failure was planned when it was asked for. */
function performed<T>(
  incarnation: Incarnation,
  state: SimDiskState,
  operation: DiskOperation,
  latency: "readUs" | "writeUs" | "syncUs",
  path: string,
  work: () => T,
): Promise<T> {
  const done = (): T => {
    const failure = operation === "write" ? undefined : state.plannedFailure(operation, path);
    if (failure) throw new DiskError(failure, path, "injected");
    return work();
  };
  const kind = `disk-${operation}`;
  if (latency === "readUs") {
    return state.inTurn(path, () => {
      const hangsUs = Math.max(0, state.readsHangUntilUs - incarnation.nowUs);
      return incarnation.later(state.latencyUs(latency) + hangsUs, kind, path, done);
    });
  }
  return state.inTurn(path, () =>
    incarnation.persist(state.latencyUs(latency), kind, path, done, () => {
      return new DiskError(operation === "sync" ? "syncFailed" : "io", path, "struck by a failpoint");
    }),
  );
}

function checkPath(path: string): void {
  if (
    path === "" ||
    path.startsWith("/") ||
    path.endsWith("/") ||
    path.split("/").some((part) => part === "" || part === "." || part === "..")
  ) {
    throw new Error(`not a relative path of a file: ${JSON.stringify(path)}`);
  }
}
