/**
 * Keeps the newest snapshots of the metadata store on this node's disk, so that the map of the extents outlives the one disk that has it.
 * `stamp metadata restore` takes one. Best effort: nothing waits for it, nothing fails with it.
 */
import { decodeSnapshot, MetadataClient } from "@stamp/metadata-store";
import { jittered, sleep, type World } from "@stamp/ports";

export const metadataCopiesFolder = "metadata-copies";
const readTimeoutMs = 30_000;
const kept = 3;

export interface MetadataCopiesOptions {
  readonly lockService: string;
  readonly everyMs: number;
}

export class MetadataCopies {
  readonly #world: World;
  readonly #options: MetadataCopiesOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #checksum = 0;
  /** Of the newest one here. */
  facts: { readonly version: number; readonly takenAtMs: number } | undefined;

  constructor(world: World, options: MetadataCopiesOptions) {
    this.#world = world;
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, random, logger } = this.#world;
    const { signal } = this.#stop;
    const metadata = new MetadataClient(this.#world, this.#options.lockService);
    while (!signal.aborted) {
      await sleep(clock, jittered(random, this.#options.everyMs), signal);
      if (signal.aborted) return;
      try {
        const why = await this.#copy(metadata);
        if (why !== undefined) logger.debug("metadata not copied, later", { why });
      } catch (error) {
        // A full disk, mostly: the copies that are there stay.
        logger.warn("metadata not copied, later", { why: String(error) });
      }
    }
  }

  async #copy(metadata: MetadataClient): Promise<string | undefined> {
    const { disk, digest } = this.#world;
    const read = await metadata.snapshot(readTimeoutMs, this.#checksum);
    if (!read.ok) return read.failure.message;
    if (read.value === undefined) return undefined;
    const { bytes, checksum } = read.value;
    const snapshot = decodeSnapshot(bytes, (content) => digest.crc32c(content));
    if (!snapshot.ok) return snapshot.failure.message;
    const { version, takenAtMs } = snapshot.value;
    await disk.writeAtomically(`${metadataCopiesFolder}/${nameOf(version)}`, bytes);
    this.#checksum = checksum;
    this.facts = { version, takenAtMs };
    const names = (await disk.list(metadataCopiesFolder)).filter((name) => name.endsWith(suffix));
    for (const name of names.slice(0, -kept)) await disk.remove(`${metadataCopiesFolder}/${name}`);
    return undefined;
  }
}

const suffix = ".snapshot";
/** Names sort as versions do. */
const nameOf = (version: number): string => `${String(version).padStart(16, "0")}${suffix}`;
