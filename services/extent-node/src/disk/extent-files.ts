/**
 * The extent files of a node: names, open handles, headers. `extents/<xx>/<id>.extent`, xx = the id's last byte; a copy in the making
 * lies beside it as `<id>.copy`. At most `openFilesMax` handles stay open; one in use is never closed.
 */
import { type ExtentId, JoinedWork, newerFormat, totalLength, unwrap } from "@stamp/base";
import {
  decodeExtentHeader,
  type ExtentHeader,
  encodeExtentHeader,
  extentContentOffset,
  extentSlotOffset,
  type ReplicaMeta,
  type Versioned,
} from "@stamp/extent";
import { type Disk, DiskError, type DiskFile, type World } from "@stamp/ports";
import { appendIo, type DiskQueue, type Io } from "./disk-queue.ts";

export const extentsFolder = "extents";
export const extentFolder = (id: ExtentId): string => `${extentsFolder}/${(id % 256).toString(16).padStart(2, "0")}`;
const baseName = (id: ExtentId): string => `${extentFolder(id)}/${id.toString(16).padStart(14, "0")}`;
export const extentPath = (id: ExtentId): string => `${baseName(id)}.extent`;
export const copyPath = (id: ExtentId): string => `${baseName(id)}.copy`;

/** Gives memory for this many bytes when they are read, not while the read waits; undefined: they have memory of their own. */
export type ReadInto = (lengthBytes: number) => Uint8Array | undefined;

export interface FileWrite {
  readonly offsetBytes: number;
  readonly chunks: readonly Uint8Array[];
}

interface Handle {
  readonly opening: Promise<DiskFile>;
  /** Open file; undefined while it is closed. */
  file: DiskFile | undefined;
  users: number;
}

export class ExtentFiles {
  readonly #world: World;
  readonly #disk: Disk;
  readonly #openMax: number;
  readonly #queue: DiskQueue;
  readonly #identity: { readonly stampId: string; readonly diskId: string };
  /** Open files, in the order of their last use. */
  readonly #handles: Map<string, Handle> = new Map();
  readonly #generations: Map<string, number> = new Map();
  /** Bytes written since the start. */
  writtenBytes = 0;
  /** Extent files that are known to be there, name included; only of open handles. */
  readonly #present: Set<string> = new Set();
  /** Being made: by one only, since a second would write zeros over what the first has let others write. */
  readonly #making = new JoinedWork<string, void>();

  get clientOperations(): number {
    return this.#queue.clientOperations;
  }

  constructor(world: World, queue: DiskQueue, openMax: number, identity: { readonly stampId: string; readonly diskId: string }) {
    this.#queue = queue;
    this.#world = world;
    this.#disk = world.disk;
    this.#openMax = openMax;
    this.#identity = identity;
  }

  /** Runs `use` with the open file. May throw DiskError. */
  async with<T>(path: string, create: boolean, use: (file: DiskFile) => Promise<T>): Promise<T> {
    let handle = this.#handles.get(path);
    if (handle === undefined) handle = { opening: this.#disk.open(path, { create }), file: undefined, users: 0 };
    else this.#handles.delete(path);
    this.#handles.set(path, handle);
    handle.users += 1;
    try {
      handle.file ??= await handle.opening;
      return await use(handle.file);
    } catch (error) {
      // A failed opening is not kept: the disk may have room, and the process file handles, a moment later.
      const isUseless = handle.file === undefined || (error instanceof DiskError && error.kind === "notFound");
      if (isUseless && this.#handles.get(path) === handle) {
        this.#handles.delete(path);
        this.#present.delete(path);
      }
      throw error;
    } finally {
      handle.users -= 1;
      this.#evict();
    }
  }

  #evict(): void {
    for (const [path, handle] of this.#handles) {
      if (this.#handles.size <= this.#openMax) return;
      if (handle.users > 0) continue;
      this.#handles.delete(path);
      this.#present.delete(path);
      handle.opening.then((file) => file.close()).catch(() => {});
    }
  }

  /** Closes the handle of a file that is about to be renamed or removed. */
  async close(path: string): Promise<void> {
    const handle = this.#handles.get(path);
    this.#handles.delete(path);
    this.#present.delete(path);
    this.#generations.delete(path);
    if (handle === undefined) return;
    await handle.opening.then((file) => file.close()).catch(() => {});
  }

  /** Makes the file, with its name, if it is absent. */
  async ensure(id: ExtentId): Promise<void> {
    const path = extentPath(id);
    if (this.#present.has(path)) return;
    await this.#making.run(path, () => this.#make(path, id));
  }

  async #make(path: string, id: ExtentId): Promise<void> {
    if (!(await this.#disk.exists(path))) await this.create(path, id);
    if (this.#handles.has(path)) this.#present.add(path);
  }

  /** Makes an empty file for an extent. */
  async create(path: string, id: ExtentId): Promise<void> {
    await this.with(path, true, (file) => file.allocate(extentContentOffset));
    await this.#disk.syncFolder(extentFolder(id));
  }

  /** Writes the header and syncs the whole file: data written before are durable with it. */
  async writeHeader(path: string, meta: ReplicaMeta, io: Io = appendIo): Promise<void> {
    await this.with(path, false, async (file) => {
      const before = this.#generations.get(path) ?? (await this.#readGeneration(file));
      const generation = before + 1;
      const page = encodeExtentHeader(this.#world.digest.crc32c, { generation, ...this.#identity, meta });
      await this.#queue.run(io, page.length, async () => {
        await file.write(extentSlotOffset(generation), [page]);
        await file.sync();
      });
      this.#generations.set(path, generation);
    });
  }

  async #readGeneration(file: DiskFile): Promise<number> {
    const header = decodeExtentHeader(this.#world.digest.crc32c, await file.read(0, extentContentOffset));
    if (header.kind === "newer") unwrap(newerFormat(file.path, header));
    return header.kind === "ok" ? header.value.generation : 0;
  }

  readHeader(path: string): Promise<Versioned<ExtentHeader>> {
    return this.with(path, false, async (file) => decodeExtentHeader(this.#world.digest.crc32c, await file.read(0, extentContentOffset)));
  }

  read(id: ExtentId, offsetBytes: number, lengthBytes: number, io: Io, into?: ReadInto): Promise<Uint8Array> {
    return this.with(extentPath(id), false, (file) =>
      this.#queue.run(io, lengthBytes, () => file.read(extentContentOffset + offsetBytes, lengthBytes, into?.(lengthBytes))),
    );
  }

  write(path: string, offsetBytes: number, chunks: readonly Uint8Array[], io: Io = appendIo): Promise<void> {
    const bytes = totalLength(chunks);
    this.writtenBytes += bytes;
    return this.with(path, true, (file) => this.#queue.run(io, bytes, () => file.write(extentContentOffset + offsetBytes, chunks)));
  }

  /** Does one operation: all of it is durable afterwards, the file's new length included. */
  writeSynced(path: string, writes: readonly FileWrite[], io: Io = appendIo): Promise<void> {
    const bytes = writes.reduce((sum, { chunks }) => sum + totalLength(chunks), 0);
    this.writtenBytes += bytes;
    return this.with(path, false, (file) =>
      this.#queue.run(io, bytes, async () => {
        for (const { offsetBytes, chunks } of writes) await file.write(extentContentOffset + offsetBytes, chunks);
        await file.sync();
      }),
    );
  }

  sync(path: string, io: Io = appendIo): Promise<void> {
    return this.with(path, false, (file) => this.#queue.run(io, 0, () => file.sync()));
  }

  /** Cuts the file, so that nothing lies beyond this length. */
  async truncate(id: ExtentId, lengthBytes: number): Promise<void> {
    await this.with(extentPath(id), false, async (file) => {
      const end = extentContentOffset + lengthBytes;
      if ((await file.sizeBytes()) > end) await file.truncate(end);
    });
  }

  async remove(id: ExtentId): Promise<void> {
    let removed = false;
    for (const path of [extentPath(id), copyPath(id)]) {
      await this.close(path);
      if (!(await this.#disk.exists(path))) continue;
      await this.#disk.remove(path);
      removed = true;
    }
    if (removed) await this.#disk.syncFolder(extentFolder(id));
  }

  async discardCopy(id: ExtentId): Promise<void> {
    await this.close(copyPath(id));
    if (await this.#disk.exists(copyPath(id))) await this.#disk.remove(copyPath(id));
  }

  /** Puts the finished copy, if there is one, in the place of the extent file. */
  async adoptCopy(id: ExtentId): Promise<void> {
    await this.close(copyPath(id));
    if (!(await this.#disk.exists(copyPath(id)))) return;
    await this.close(extentPath(id));
    await this.#disk.rename(copyPath(id), extentPath(id));
    await this.#disk.syncFolder(extentFolder(id));
  }

  async closeAll(): Promise<void> {
    for (const path of [...this.#handles.keys()]) await this.close(path);
  }
}
