/**
 * Makes one fragment file: content in order, then table, sync, head, sync, and the final name (docs/formats/fragment.md). Until then the file
 * has a name of its own and is removed at the next start.
 */
import { assert, concatBytes, type Outcome, ok, type Rules, refused } from "@stamp/base";
import {
  encodeFragmentHead,
  encodeFragmentTable,
  type FragmentSpec,
  fragmentChunkBytes,
  fragmentChunkChecksum,
  fragmentContentChecksum,
  fragmentContentOffset,
  fragmentHeadBytes,
} from "@stamp/extent";
import type { World } from "@stamp/ports";
import { type DiskQueue, type Io, repairIo } from "../disk/disk-queue.ts";
import type { ExtentFiles } from "../disk/extent-files.ts";

/** Number of written bytes after which content is synced: a journal on the same file system waits for unwritten bytes. */
const syncBytes = 4 * 1024 * 1024;

interface Parts {
  readonly world: World;
  readonly files: ExtentFiles;
  readonly queue: DiskQueue;
  readonly spec: FragmentSpec;
  readonly maker: string;
  readonly stampId: string;
  readonly diskId: string;
  readonly path: string;
  /** Gives the synced file its final name. */
  finish(): Promise<Outcome<void>>;
  ended(): void;
}

/** Says why the content of a fragment is not the recorded one; undefined: it is, or none is recorded. */
export function otherContent(rules: Rules, checksum: number, recorded: number | undefined): string | undefined {
  if (recorded === undefined || checksum === recorded || !rules.on("fragmentsCompared")) return undefined;
  return `its content has checksum ${checksum}, recorded when the extent was coded is ${recorded}`;
}

export class FragmentWriter {
  readonly #parts: Parts;
  readonly #checksums: Uint32Array;
  #at = 0;
  #unsynced = 0;
  #state: "making" | "finishing" | "finished" | "discarded" = "making";
  /** Step under way; a discard waits for it. */
  #step: Promise<unknown> = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#checksums = new Uint32Array(parts.spec.fragmentBytes / fragmentChunkBytes);
  }

  get spec(): FragmentSpec {
    return this.#parts.spec;
  }

  /** Node that gives the content: another one may not go on with it. */
  get maker(): string {
    return this.#parts.maker;
  }

  /** Bytes of the content that were taken: the place of the next ones. */
  get nextBytes(): number {
    return this.#at;
  }

  /** Makes the file with room for everything. If the disk lacks it, nothing is left of the file, and DiskError is thrown. */
  allocate(): Promise<void> {
    const { files, path, spec } = this.#parts;
    const bytes = fragmentContentOffset(spec.fragmentBytes) + spec.fragmentBytes;
    const allocated = this.#run(() => files.with(path, true, (file) => file.allocate(bytes)));
    return allocated.catch(async (error: unknown) => {
      await this.discard();
      throw error;
    });
  }

  /** Writes whole chunks behind those before. `bytes` are borrowed until it resolves. Refused with `conflict` if the writer was given up. */
  append(bytes: Uint8Array, io: Io = repairIo): Promise<Outcome<void>> {
    const { fragmentBytes } = this.spec;
    if (this.#state !== "making") return Promise.resolve(this.#gone());
    if (bytes.length === 0 || bytes.length % fragmentChunkBytes !== 0 || this.#at + bytes.length > fragmentBytes) {
      const message = `a fragment of ${fragmentBytes} bytes takes whole chunks, not ${bytes.length} bytes at ${this.#at}`;
      return Promise.resolve(refused("invalidArgument", "badRequest", message));
    }
    const { crc32c } = this.#parts.world.digest;
    const first = this.#at / fragmentChunkBytes;
    const from = this.#at;
    for (let at = 0; at < bytes.length; at += fragmentChunkBytes) {
      const chunk = first + at / fragmentChunkBytes;
      this.#checksums[chunk] = fragmentChunkChecksum(crc32c, this.spec, chunk, bytes.subarray(at, at + fragmentChunkBytes));
    }
    this.#at += bytes.length;
    return this.#run(async () => {
      if (this.#state === "discarded") return this.#gone();
      await this.#write(fragmentContentOffset(fragmentBytes) + from, [bytes], io);
      this.#unsynced += bytes.length;
      if (this.#unsynced >= syncBytes) await this.#sync(io);
      return ok();
    });
  }

  /**
   * The whole content was appended: it is durable under its final name when this resolves. `recorded`: crc32c that the content has to have; with
   * another one nothing is left of the file.
   */
  async finish(recorded?: number, io: Io = repairIo): Promise<Outcome<void>> {
    if (this.#state !== "making") return this.#gone();
    const { spec, stampId, diskId, world } = this.#parts;
    if (this.#at !== spec.fragmentBytes)
      return refused("failedPrecondition", "badRequest", `the fragment has ${this.#at} of ${spec.fragmentBytes} bytes`);
    const checksum = fragmentContentChecksum(world.digest.crc32c, spec, this.#checksums);
    const differs = otherContent(world.rules, checksum, recorded);
    if (differs !== undefined) {
      await this.discard();
      return refused("unavailable", "extentStale", `fragment ${spec.index} of extent ${spec.extentId} was made wrong: ${differs}`);
    }
    this.#state = "finishing";
    return this.#run(async () => {
      const { crc32c } = world.digest;
      const table = encodeFragmentTable(crc32c, this.#checksums);
      await this.#write(fragmentHeadBytes, [table.bytes], io);
      await this.#sync(io);
      await this.#write(0, [encodeFragmentHead(crc32c, { ...spec, stampId, diskId, tableChecksum: table.checksum })], io);
      await this.#sync(io);
      const finished = await this.#parts.finish();
      if (!finished.ok) await this.#remove();
      this.#state = finished.ok ? "finished" : "discarded";
      this.#parts.ended();
      return finished;
    });
  }

  /** Gives up: nothing is left of the file, unless it is finished. */
  async discard(): Promise<void> {
    if (this.#state === "making") this.#state = "discarded";
    await this.#step.catch(() => {});
    if (this.#state === "finished") return;
    this.#state = "discarded";
    await this.#remove();
    this.#parts.ended();
  }

  #run<T>(work: () => Promise<T>): Promise<T> {
    const step = this.#step.then(work);
    // A failed step fails every later one: the content would have a hole.
    this.#step = step;
    step.catch(() => {});
    return step;
  }

  #gone(): Outcome<never> {
    assert(this.#state !== "making", "a writer that is given up or finished");
    return refused("aborted", "conflict", `the making of fragment ${this.spec.index} of extent ${this.spec.extentId} was ${this.#state}`);
  }

  #write(offsetBytes: number, chunks: readonly Uint8Array[], io: Io): Promise<void> {
    const { files, queue, path } = this.#parts;
    const bytes = concatBytes([...chunks]);
    return files.with(path, true, (file) => queue.run(io, bytes.length, () => file.write(offsetBytes, [bytes])));
  }

  async #sync(io: Io): Promise<void> {
    const { files, queue, path, world } = this.#parts;
    if (world.rules.on("fragmentSynced")) await files.with(path, false, (file) => queue.run(io, 0, () => file.sync()));
    this.#unsynced = 0;
  }

  async #remove(): Promise<void> {
    const { files, path, world } = this.#parts;
    await files.close(path);
    if (await world.disk.exists(path)) await world.disk.remove(path);
  }
}
