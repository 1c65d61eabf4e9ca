/**
 * Keeps snapshots of the metadata store on this node's disk, so that the map of the extents outlives the one disk that has it.
 * `stamp metadata restore` takes one. Nothing waits for it and nothing fails with it; a failure is logged, and told in the facts of the node.
 *
 * Invariants:
 *   - Memory is one part (1 MiB), whatever the store holds.
 *   - A file gets its name when it was read back, intact and synced.
 */
import { MetadataClient, openSnapshot, type SeededChecksum, verifySnapshot } from "@stamp/metadata-store";
import { type DiskFile, jittered, sleep, type World } from "@stamp/ports";
import { copiesThatStay, type KeptCopy, whyNotKept } from "./copies-kept.ts";

export const metadataCopiesFolder = "metadata-copies";
const incoming = `${metadataCopiesFolder}/incoming`;
/** Timeout for a whole snapshot, with the time to make it, in milliseconds. */
const readTimeoutMs = 600_000;
/** A failure that lasts is logged again. */
const warnEveryMs = 300_000;

export interface MetadataCopiesOptions {
  readonly lockService: string;
  readonly stampId: string;
  readonly everyMs: number;
}

export interface MetadataCopyFacts {
  /** The newest one here; 0: none. */
  readonly version: number;
  readonly takenAtMs: number;
  /** Time since the lock service gave a copy or said that there is none newer, in milliseconds. */
  readonly ageMs: number;
  /** Attempts that failed since then. */
  readonly failures: number;
  readonly failure: string;
  readonly kept: number;
}

export class MetadataCopies {
  readonly #world: World;
  readonly #options: MetadataCopiesOptions;
  readonly #stop = new AbortController();
  readonly #checksumOf: SeededChecksum;
  #running: Promise<void> = Promise.resolve();
  #checksum = 0;
  #newest: KeptCopy | undefined;
  #kept = 0;
  #goodMs: number;
  #failures = 0;
  #failure = "";
  #warnedMs = Number.NEGATIVE_INFINITY;

  constructor(world: World, options: MetadataCopiesOptions) {
    this.#world = world;
    this.#options = options;
    this.#goodMs = world.clock.monotonicMs();
    this.#checksumOf = (bytes, seed) => world.digest.crc32c(bytes, seed);
  }

  get facts(): MetadataCopyFacts {
    return {
      version: this.#newest?.version ?? 0,
      takenAtMs: this.#newest?.takenAtMs ?? 0,
      ageMs: Math.round(this.#world.clock.monotonicMs() - this.#goodMs),
      failures: this.#failures,
      failure: this.#failure,
      kept: this.#kept,
    };
  }

  /** Name of the newest copy here in `metadataCopiesFolder`; undefined if there is none. */
  get newestName(): string | undefined {
    return this.#newest?.name;
  }

  /** Reason why copies are late, for people; undefined: they are not. */
  get trouble(): string | undefined {
    const { ageMs, failure } = this.facts;
    if (failure === "" || ageMs < 4 * this.#options.everyMs) return undefined;
    return `a copy of the metadata, for ${Math.round(ageMs / 1_000)} s: ${failure}`;
  }

  /** Reads the names of the copies on the disk, so that `facts` tell the newest. */
  async open(): Promise<void> {
    const kept = await this.#here();
    this.#kept = kept.length;
    for (const copy of kept) if (copy.version > (this.#newest?.version ?? 0)) this.#newest = copy;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#world;
    const { signal } = this.#stop;
    const metadata = new MetadataClient(this.#world, this.#options.lockService);
    while (!signal.aborted) {
      await sleep(clock, jittered(random, this.#options.everyMs), signal);
      if (signal.aborted) return;
      try {
        this.#tell(await this.#copy(metadata));
      } catch (error) {
        // A full disk, mostly: the copies that are there stay.
        this.#tell(String(error));
      }
    }
  }

  #tell(why: string | undefined): void {
    const { clock, logger } = this.#world;
    const nowMs = clock.monotonicMs();
    if (why === undefined) {
      if (this.#failures > 0) logger.info("the metadata is copied again", { failures: this.#failures });
      this.#goodMs = nowMs;
      this.#failures = 0;
      this.#failure = "";
      this.#warnedMs = Number.NEGATIVE_INFINITY;
      return;
    }
    this.#failures += 1;
    this.#failure = why;
    if (nowMs - this.#warnedMs < warnEveryMs) return;
    this.#warnedMs = nowMs;
    const newest = this.#newest === undefined ? {} : { newestCopy: `${metadataCopiesFolder}/${this.#newest.name}` };
    logger.warn("the metadata was not copied to this node", {
      why,
      failures: this.#failures,
      ageMs: Math.round(nowMs - this.#goodMs),
      ...newest,
    });
  }

  /** Returns why there is no new copy; undefined: there is, or nothing changed. */
  async #copy(metadata: MetadataClient): Promise<string | undefined> {
    const { disk } = this.#world;
    const file = await disk.open(incoming, { create: true });
    try {
      const write = async (bytes: Uint8Array, offsetBytes: number): Promise<void> => {
        if (this.#stop.signal.aborted) throw new Error("the node is stopping");
        if (offsetBytes === 0) await file.truncate(0);
        await file.write(offsetBytes, [bytes]);
      };
      const read = await metadata.readSnapshot(write, readTimeoutMs, this.#checksum, this.#stop.signal);
      if (!read.ok) return read.failure.message;
      if (read.value === undefined) return undefined;
      const why = await this.#adopt(file);
      if (why === undefined) this.#checksum = read.value.checksum;
      return why;
    } finally {
      await file.close();
      if (await disk.exists(incoming)) await disk.remove(incoming);
    }
  }

  async #adopt(file: DiskFile): Promise<string | undefined> {
    const { disk } = this.#world;
    const copy = await verifySnapshot(file, this.#checksumOf);
    if (!copy.ok) return copy.failure.message;
    const { version, takenAtMs, lineage } = copy.value;
    const kept = await this.#here();
    const why = whyNotKept(copy.value, this.#options.stampId, kept);
    if (why !== undefined) return why;
    await file.sync();
    const name = nameOf(version);
    await disk.rename(incoming, `${metadataCopiesFolder}/${name}`);
    await disk.syncFolder(metadataCopiesFolder);
    this.#newest = { name, version, takenAtMs, lineage };
    const all = [...kept.filter((each) => each.name !== name), this.#newest];
    const stay = copiesThatStay(all);
    this.#kept = stay.size;
    for (const each of all) if (!stay.has(each.name)) await disk.remove(`${metadataCopiesFolder}/${each.name}`);
    return undefined;
  }

  /** Returns the copies whose header can be read; other files are left alone. */
  async #here(): Promise<KeptCopy[]> {
    const { disk } = this.#world;
    const kept: KeptCopy[] = [];
    for (const name of await disk.list(metadataCopiesFolder)) {
      if (!name.endsWith(suffix)) continue;
      const file = await disk.open(`${metadataCopiesFolder}/${name}`);
      const opened = await openSnapshot(file, this.#checksumOf);
      await file.close();
      if (opened.ok) kept.push({ name, version: opened.value.version, takenAtMs: opened.value.takenAtMs, lineage: opened.value.lineage });
      else this.#world.logger.warn("a copy of the metadata can't be read", { name, why: opened.failure.message });
    }
    return kept;
  }
}

const suffix = ".snapshot";
/** Returns the name of a copy; names sort as versions do. */
const nameOf = (version: number): string => `${String(version).padStart(16, "0")}${suffix}`;
