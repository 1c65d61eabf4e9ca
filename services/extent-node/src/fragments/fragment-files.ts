/**
 * The fragments of coded extents on this node's disk (docs/formats/fragment.md). Files lie below `fragments`, apart from replicas, and share
 * their open handles and the disk's queue. Which fragments are here is known by their names alone; a head is read when its content is.
 *
 * Invariants:
 * - A file has its final name when table, content and head are synced (rule `fragmentSynced`). It is never changed afterwards.
 * - A node takes no second fragment of a version of an extent (rule `fragmentWrittenOnce`): a late write would replace what was verified.
 * - A version whose deletion was asked for is not made any more: the pieces of a slow maker may arrive after it.
 * - The content of a fragment is what was recorded when its extent was coded (rule `fragmentsCompared`): it gets no name otherwise, and gives nothing.
 * - No byte leaves whose chunk is not what the table says (rule `fragmentChunkVerified`). A bad chunk makes its fragment `damaged`; its other chunks are still read.
 * - The format is named in the folder's marker before the first file is made.
 */
import { type ExtentId, type Failed, newerFormat, OrderedIds, type Outcome, ok, refused } from "@stamp/base";
import {
  badFragmentChunk,
  decodeFragmentHead,
  decodeFragmentTable,
  type FragmentHead,
  type FragmentName,
  type FragmentSpec,
  fragmentChunkBytes,
  fragmentContentChecksum,
  fragmentContentOffset,
  fragmentHeadBytes,
  fragmentTableBytes,
  isFragmentSpec,
} from "@stamp/extent";
import { DiskError, type World } from "@stamp/ports";
import { type DiskQueue, type Io, repairIo } from "../disk/disk-queue.ts";
import type { ExtentFiles } from "../disk/extent-files.ts";
import { markFormat } from "../format-marks.ts";
import { DeletedVersions } from "./deleted-versions.ts";
import {
  fragmentFolderOf,
  fragmentMakingPath,
  fragmentMakingSuffix,
  fragmentNameOf,
  fragmentPath,
  fragmentsFolder,
} from "./fragment-paths.ts";
import { FragmentWriter, otherContent } from "./fragment-writer.ts";
import { isOf, otherThan, type WantedFragment } from "./wanted-fragment.ts";

/** Largest number of chunks whose checksums are kept in memory, over all fragments: 16 MiB. */
const keptChunksMax = 4 * 1024 * 1024;
/** Bytes that `verify` reads at a time. */
const verifyBytes = 1024 * 1024;

interface Kept {
  readonly head: FragmentHead;
  readonly table: Uint32Array;
  /** crc32c of the whole content, as the table says. */
  readonly checksum: number;
}

export interface FragmentDamage {
  readonly why: string;
  /** False: the head or the table can't be read or is not what was written, so no chunk can be verified. */
  readonly chunksReadable: boolean;
}

export type VerifiedFragment = { readonly kind: "intact"; readonly bytes: number } | { readonly kind: "bad"; readonly why: string };

const badOrGone = ({ failure }: Failed): VerifiedFragment | undefined =>
  failure.reason === "unknownExtent" ? undefined : { kind: "bad", why: failure.message };

export class FragmentFiles {
  readonly #world: World;
  readonly #files: ExtentFiles;
  readonly #queue: DiskQueue;
  readonly #identity: { readonly stampId: string; readonly diskId: string };
  /** Keyed by extent, then by version. */
  readonly #here = new Map<ExtentId, Map<number, FragmentName>>();
  readonly #order = new OrderedIds<ExtentId>((id) => this.#here.has(id));
  /** Known damage of fragments, by path. */
  readonly #damaged = new Map<string, FragmentDamage>();
  readonly #making = new Map<string, FragmentWriter>();
  readonly #deleted = new DeletedVersions();
  /** Versions of fragments that are getting their name. */
  readonly #adopting = new Set<string>();
  /** Heads and tables that were read, by path, in order of last use. */
  readonly #kept = new Map<string, Kept>();
  #keptChunks = 0;
  #count = 0;
  #damagesFound = 0;

  private constructor(world: World, files: ExtentFiles, queue: DiskQueue, identity: { readonly stampId: string; readonly diskId: string }) {
    this.#world = world;
    this.#files = files;
    this.#queue = queue;
    this.#identity = identity;
  }

  /** Reads the names of all fragments. Removes what was never finished, unless `changesNothing`. */
  static async open(
    world: World,
    files: ExtentFiles,
    queue: DiskQueue,
    identity: { readonly stampId: string; readonly diskId: string },
    changesNothing = false,
  ): Promise<FragmentFiles> {
    const fragments = new FragmentFiles(world, files, queue, identity);
    for (const folder of await world.disk.list(fragmentsFolder)) {
      for (const file of await world.disk.list(`${fragmentsFolder}/${folder}`)) {
        const path = `${fragmentsFolder}/${folder}/${file}`;
        const name = fragmentNameOf(path);
        if (name !== undefined) fragments.#add(name);
        else if (path.endsWith(fragmentMakingSuffix)) await (changesNothing ? undefined : world.disk.remove(path));
        else world.logger.error("a file that is no fragment lies among them; it is left alone", { path });
      }
    }
    return fragments;
  }

  /** Number of finished fragments. */
  get count(): number {
    return this.#count;
  }

  /** Number of fragments that are here and in which this process has found damage. */
  get damagedCount(): number {
    return this.#damaged.size;
  }

  /** Returns how often this process has found damage of a fragment that it did not know before. Never falls, also when the fragment is deleted. */
  get damagesFound(): number {
    return this.#damagesFound;
  }

  /** Returns the fragments of an extent, in no order. */
  of(id: ExtentId): FragmentName[] {
    return [...(this.#here.get(id)?.values() ?? [])];
  }

  /** Returns the first `limit` extents above `id` that have a fragment here, ascending. */
  idsAfter(id: number, limit: number): ExtentId[] {
    return this.#order.after(id, limit);
  }

  find(id: ExtentId, version: number): FragmentName | undefined {
    return this.#here.get(id)?.get(version);
  }

  *names(): IterableIterator<FragmentName> {
    for (const versions of this.#here.values()) yield* versions.values();
  }

  /** Returns the damage of a fragment, as far as this process has seen it; undefined: nothing wrong is known. */
  damageOf(name: FragmentName): FragmentDamage | undefined {
    return this.#damaged.get(fragmentPath(name));
  }

  /**
   * Begins to make a fragment; `maker` names who gives its content. One of the same name that was begun before and is not finished is given up: its next step is refused. Refused
   * with `conflict` if a fragment of this version is here, or was deleted.
   */
  async begin(spec: FragmentSpec, maker: string): Promise<Outcome<FragmentWriter>> {
    if (!isFragmentSpec(spec)) return refused("invalidArgument", "badRequest", `no fragment has these numbers: ${JSON.stringify(spec)}`);
    const held = this.#refuse(spec);
    if (held !== undefined) return held;
    const path = fragmentMakingPath(spec);
    const marked = await markFormat(this.#world, "fragment", spec.creation);
    if (!marked.ok) return marked;
    const writer = new FragmentWriter({
      world: this.#world,
      files: this.#files,
      queue: this.#queue,
      spec,
      maker,
      ...this.#identity,
      path,
      finish: () => this.#adopt(spec, path),
      ended: () => {
        if (this.#making.get(path) === writer) this.#making.delete(path);
      },
    });
    const before = this.#making.get(path);
    this.#making.set(path, writer);
    await before?.discard();
    const refusal = this.#refuse(spec);
    if (refusal === undefined) await writer.allocate();
    else await writer.discard();
    return refusal ?? ok(writer);
  }

  /** Returns the writer of a fragment that was begun and is not finished. */
  making(name: FragmentName): FragmentWriter | undefined {
    return this.#making.get(fragmentMakingPath(name));
  }

  #refuse({ extentId: id, version }: FragmentName): Failed | undefined {
    if (this.#deleted.has(id, version))
      return refused(
        "aborted",
        "conflict",
        `the fragments of extent ${id}, version ${version}, were deleted: the attempt that makes them is over`,
      );
    const free = this.find(id, version) === undefined && !this.#adopting.has(`${id}-${version}`);
    if (free || !this.#world.rules.on("fragmentWrittenOnce")) return undefined;
    return refused("aborted", "conflict", `this node has a fragment of extent ${id}, version ${version}`);
  }

  /** Gives the synced file at `path` the name of its fragment. */
  async #adopt(name: FragmentName, path: string): Promise<Outcome<void>> {
    const held = this.#refuse(name);
    if (held !== undefined) return held;
    const adopting = `${name.extentId}-${name.version}`;
    this.#adopting.add(adopting);
    try {
      const to = fragmentPath(name);
      for (const each of [path, to]) await this.#files.close(each);
      await this.#world.disk.rename(path, to);
      await this.#world.disk.syncFolder(fragmentFolderOf(name.extentId));
      this.#forget(to);
      this.#add(name);
      return ok();
    } finally {
      this.#adopting.delete(adopting);
    }
  }

  #add(name: FragmentName): void {
    let versions = this.#here.get(name.extentId);
    if (versions === undefined) {
      versions = new Map();
      this.#here.set(name.extentId, versions);
      this.#order.add(name.extentId);
    }
    if (!versions.has(name.version)) this.#count += 1;
    versions.set(name.version, name);
  }

  /** Returns the head of a fragment. Refused with `damaged`, `newerFormat`, `unknownExtent`. */
  async head(name: FragmentName, io: Io): Promise<Outcome<FragmentHead>> {
    const kept = await this.#open(name, io);
    return kept.ok ? ok(kept.value.head) : kept;
  }

  /**
   * Reads bytes of a fragment's content; every chunk they lie in is verified before. Refused with `unknownExtent` if the fragment is not here,
   * with `damaged` if a chunk is not what the table says, with `badRequest` for bytes beyond its end. May throw DiskError (full handles). A
   * fragment that is not of the `wanted` code and content is not here.
   */
  async read(
    name: FragmentName,
    offsetBytes: number,
    lengthBytes: number,
    io: Io,
    wanted: WantedFragment = {},
  ): Promise<Outcome<Uint8Array>> {
    const kept = await this.#open(name, io);
    if (!kept.ok) return kept;
    const { checksum, head, table } = kept.value;
    const other = otherThan(head, wanted);
    if (other !== undefined && this.#world.rules.on("fragmentsOfTheirCode")) return refused("notFound", "unknownExtent", other);
    const differs = otherContent(this.#world.rules, checksum, wanted.fragmentChecksum);
    if (differs !== undefined) return this.#hurt(name, differs, false);
    if (lengthBytes <= 0 || offsetBytes < 0 || offsetBytes + lengthBytes > head.fragmentBytes)
      return refused("invalidArgument", "badRequest", `a fragment of ${head.fragmentBytes} bytes has no ${lengthBytes} at ${offsetBytes}`);
    const first = Math.floor(offsetBytes / fragmentChunkBytes);
    const from = first * fragmentChunkBytes;
    const chunksBytes = Math.ceil((offsetBytes + lengthBytes) / fragmentChunkBytes) * fragmentChunkBytes - from;
    const bytes = await this.#bytes(name, "content", fragmentContentOffset(head.fragmentBytes) + from, chunksBytes, io);
    if (!bytes.ok) return bytes;
    const bad = this.#world.rules.on("fragmentChunkVerified")
      ? badFragmentChunk(this.#world.digest.crc32c, head, table, first, bytes.value)
      : undefined;
    if (bad !== undefined) return this.#hurt(name, `chunk ${bad} is not what was written`, true);
    const at = offsetBytes - from;
    return ok(bytes.value.subarray(at, at + lengthBytes));
  }

  /** Reads a whole fragment and compares it with its table. Undefined: it is not here any more, or `pace` (called before each piece) ended it. */
  async verify(
    name: FragmentName,
    io: Io,
    pace: (bytes: number) => Promise<boolean> = async () => true,
    wanted: WantedFragment = {},
  ): Promise<VerifiedFragment | undefined> {
    const opened = await this.head(name, io);
    if (!opened.ok) return badOrGone(opened);
    const { fragmentBytes } = opened.value;
    for (let at = 0; at < fragmentBytes; at += verifyBytes) {
      const length = Math.min(verifyBytes, fragmentBytes - at);
      if (!(await pace(length))) return undefined;
      const bytes = await this.read(name, at, length, io, wanted);
      if (!bytes.ok) return badOrGone(bytes);
    }
    return { kind: "intact", bytes: fragmentBytes };
  }

  /**
   * Deletes a fragment of exactly this version, durably, and takes none of it any more. True if it was here. A fragment of another `creation` stays:
   * its number may have been given twice. Undefined: any creation.
   */
  async remove(id: ExtentId, version: number, creation?: number): Promise<boolean> {
    const held = this.find(id, version);
    if (held !== undefined && creation !== undefined && this.#world.rules.on("commandsNameCreations")) {
      if (await this.#mayBeOther(held, creation)) {
        this.#world.logger.warn("kept a fragment of another extent that had the same number", { extent: id, version, index: held.index });
        return false;
      }
    }
    this.#deleted.add(id, version);
    for (const writer of [...this.#making.values()])
      if (writer.spec.extentId === id && writer.spec.version === version && isOf(writer.spec, creation)) await writer.discard();
    const name = this.find(id, version);
    if (name === undefined) return false;
    const path = fragmentPath(name);
    const versions = this.#here.get(id);
    versions?.delete(version);
    this.#count -= 1;
    if (versions?.size === 0) {
      this.#here.delete(id);
      this.#order.removed();
    }
    await this.#files.close(path);
    this.#forget(path);
    if (await this.#world.disk.exists(path)) await this.#world.disk.remove(path);
    await this.#world.disk.syncFolder(fragmentFolderOf(id));
    return true;
  }

  /** False for a fragment whose head has rotted: no byte of it can be read, whosever it is. True if the disk does not tell. */
  async #mayBeOther(name: FragmentName, creation: number): Promise<boolean> {
    const path = fragmentPath(name);
    let page: Uint8Array;
    try {
      page = await this.#files.with(path, false, (file) =>
        this.#queue.run(repairIo, fragmentHeadBytes, () => file.read(0, fragmentHeadBytes)),
      );
    } catch (error) {
      if (!(error instanceof DiskError) || (error.kind !== "io" && error.kind !== "notFound")) throw error;
      return error.kind === "io";
    }
    const head = decodeFragmentHead(this.#world.digest.crc32c, page);
    return head.kind === "newer" || (head.kind !== "invalid" && (!this.#isOwn(head.value) || (head.value.creation ?? 0) !== creation));
  }

  #isOwn({ stampId, diskId }: FragmentHead): boolean {
    return stampId === this.#identity.stampId && diskId === this.#identity.diskId;
  }

  async #open(name: FragmentName, io: Io): Promise<Outcome<Kept>> {
    const { extentId: id, version } = name;
    const here = this.find(id, version);
    if (here === undefined || here.index !== name.index)
      return refused("notFound", "unknownExtent", `fragment ${name.index} of extent ${id}, version ${version}, is not on this node`);
    const path = fragmentPath(name);
    const known = this.#kept.get(path);
    if (known !== undefined) {
      this.#kept.delete(path);
      this.#kept.set(path, known);
      return ok(known);
    }
    const { crc32c } = this.#world.digest;
    const page = await this.#bytes(name, "head", 0, fragmentHeadBytes, io);
    if (!page.ok) return page;
    const head = decodeFragmentHead(crc32c, page.value);
    if (head.kind === "newer") return newerFormat(path, head);
    if (head.kind === "invalid") return this.#hurt(name, head.why, false);
    const { diskId, extentId: said, version: saidVersion, index } = head.value;
    if (!this.#isOwn(head.value) || said !== id || saidVersion !== version || index !== name.index)
      return this.#hurt(name, `its file is that of fragment ${index} of extent ${said}, version ${saidVersion}, disk ${diskId}`, false);
    const bytes = await this.#bytes(name, "head", fragmentHeadBytes, fragmentTableBytes(head.value.fragmentBytes), io);
    if (!bytes.ok) return bytes;
    const table = decodeFragmentTable(crc32c, head.value, bytes.value);
    if (table.kind === "invalid") return this.#hurt(name, table.why, false);
    const kept = { head: head.value, table: table.value, checksum: fragmentContentChecksum(crc32c, name, table.value) };
    if (this.find(id, version) === here) this.#keep(path, kept);
    return ok(kept);
  }

  #keep(path: string, kept: Kept): void {
    this.#forget(path, false);
    this.#kept.set(path, kept);
    this.#keptChunks += kept.table.length;
    for (const other of this.#kept.keys()) {
      if (this.#keptChunks <= keptChunksMax || other === path) return;
      this.#forget(other, false);
    }
  }

  #forget(path: string, damage = true): void {
    this.#keptChunks -= this.#kept.get(path)?.table.length ?? 0;
    this.#kept.delete(path);
    if (damage) this.#damaged.delete(path);
  }

  /** Reads bytes; damage in the head or table makes every chunk unreadable, damage in the content only the `part` that was read. */
  async #bytes(
    name: FragmentName,
    part: "head" | "content",
    offsetBytes: number,
    lengthBytes: number,
    io: Io,
  ): Promise<Outcome<Uint8Array>> {
    const isContent = part === "content";
    try {
      const bytes = await this.#files.with(fragmentPath(name), false, (file) =>
        this.#queue.run(io, lengthBytes, () => file.read(offsetBytes, lengthBytes)),
      );
      return bytes.length === lengthBytes ? ok(bytes) : this.#hurt(name, `its file ends at ${offsetBytes + bytes.length}`, isContent);
    } catch (error) {
      if (!(error instanceof DiskError) || (error.kind !== "io" && error.kind !== "notFound")) throw error;
      return this.#hurt(name, `it can't be read: ${error.message}`, isContent && error.kind === "io");
    }
  }

  /** `chunksReadable` false: no chunk can be verified any more. */
  #hurt(name: FragmentName, why: string, chunksReadable: boolean): Outcome<never> {
    const { extentId: id, version, index } = name;
    // It may have been deleted while it was read.
    if (this.find(id, version)?.index !== index)
      return refused("notFound", "unknownExtent", `fragment ${index} of extent ${id}, version ${version}, is not on this node`);
    const path = fragmentPath(name);
    const known = this.#damaged.get(path);
    if (known === undefined) this.#world.logger.error("a fragment is damaged", { extent: id, version, index, why });
    if (known === undefined || (known.chunksReadable && !chunksReadable)) this.#damagesFound += 1;
    this.#damaged.set(path, { why, chunksReadable: chunksReadable && (known?.chunksReadable ?? true) });
    return refused("dataLoss", "damaged", `fragment ${index} of extent ${id}, version ${version}, is damaged here: ${why}`);
  }
}
