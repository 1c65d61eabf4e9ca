/**
 * The snapshot that extent nodes and `stamp metadata backup` read in parts. It is written once, for everybody, into a file beside the store: an
 * iterator of LevelDB is the snapshot, and what is changed meanwhile comes with the next one.
 *
 * Invariants:
 *   - Memory is one chunk, whatever the store holds; between two chunks other requests are served.
 *   - Taking one is at most a fifth of the time: until then who asks gets the one that is there.
 *   - Every entry is compared with the proof of the store before anybody gets a part; if they differ, the process ends.
 */
import { FailureError, type Outcome, ok, refused } from "@stamp/base";
import { SnapshotWriter } from "@stamp/metadata-store";
import { DiskError, type DiskFile, type World, within } from "@stamp/ports";
import type { LockStore } from "./store.ts";

const partBytes = 1024 * 1024;
/** Multiple of a snapshot's making time for which it is given although the store has changed. */
const restTimes = 4;
/** Time within which a reader asks for its next part, in milliseconds; later it counts as gone. */
const readingMs = 5_000;
/** A caller that would wait longer is told to ask again. */
const waitMs = 5_000;
/** No reader keeps an older one. */
const keptMsMax = 600_000;
const files = ["snapshot-a", "snapshot-b"] as const;
const spaceEveryBytes = 4 * 1024 * 1024;

interface Taken {
  /** Checksum of the entries: the same as long as nothing changes. */
  readonly checksum: number;
  readonly version: number;
  readonly sequence: number;
  readonly totalBytes: number;
  readonly takenAtMs: number;
  readonly sinceMs: number;
  readonly tookMs: number;
  readonly name: (typeof files)[number];
  readonly file: DiskFile;
  /** Time at which somebody last read a part that was not the last one. */
  readMs: number;
}

export interface SnapshotPart {
  readonly checksum: number;
  readonly totalBytes: number;
  readonly version: number;
  readonly payload: Uint8Array;
}

export interface SnapshotFacts {
  readonly version: number;
  readonly takenAtMs: number;
  readonly bytes: number;
  readonly tookMs: number;
  /** Reason why the newest attempt failed; empty: it did not. */
  readonly failure: string;
}

export class Snapshots {
  readonly #world: World;
  readonly #store: LockStore;
  readonly #stampId: string;
  readonly #reserveBytes: number;
  #taken: Taken | undefined;
  #taking: Promise<Outcome<Taken>> | undefined;
  #failure = "";
  #closed = false;

  constructor(world: World, store: LockStore, stampId: string, reserveBytes: number) {
    this.#world = world;
    this.#store = store;
    this.#stampId = stampId;
    this.#reserveBytes = reserveBytes;
  }

  get facts(): SnapshotFacts | undefined {
    const { version = 0, takenAtMs = 0, totalBytes: bytes = 0, tookMs = 0 } = this.#taken ?? {};
    if (this.#taken === undefined && this.#failure === "") return undefined;
    return { version, takenAtMs, bytes, tookMs, failure: this.#failure };
  }

  /** Returns a part. Refuses with `throttled` while a snapshot is taken: ask again; with `conflict` if another one was taken meanwhile: begin again. */
  async part(offsetBytes: number, checksum: number, knownChecksum: number): Promise<Outcome<SnapshotPart>> {
    if (offsetBytes > 0) {
      if (this.#taken?.checksum !== checksum) return refused("aborted", "conflict", "another snapshot was taken meanwhile: begin again");
      return this.#read(this.#taken, offsetBytes);
    }
    if (!this.#serves(this.#taken)) {
      this.#taking ??= this.#take().finally(() => {
        this.#taking = undefined;
      });
      const taken = await within(this.#world.clock, waitMs, this.#taking);
      if (taken === undefined) return refused("unavailable", "throttled", "a snapshot is being taken: ask again");
      if (!taken.ok) return taken;
    }
    const taken = this.#taken;
    if (taken === undefined) return refused("unavailable", "stopping", "the lock service is stopping");
    if (taken.checksum === knownChecksum) return ok({ ...taken, payload: new Uint8Array(0) });
    return this.#read(taken, 0);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#taking;
    await this.#drop(this.#taken);
    this.#taken = undefined;
  }

  /** True if a new reader gets this snapshot. */
  #serves(taken: Taken | undefined): boolean {
    if (taken === undefined) return false;
    if (taken.sequence === this.#store.sequence) return true;
    const nowMs = this.#world.clock.monotonicMs();
    const ageMs = nowMs - taken.sinceMs;
    return ageMs < keptMsMax && (nowMs - taken.readMs < readingMs || ageMs < restTimes * taken.tookMs);
  }

  async #read(taken: Taken, offsetBytes: number): Promise<Outcome<SnapshotPart>> {
    const { checksum, totalBytes, version } = taken;
    try {
      const payload = await taken.file.read(offsetBytes, partBytes);
      taken.readMs = offsetBytes + payload.length < totalBytes ? this.#world.clock.monotonicMs() : Number.NEGATIVE_INFINITY;
      if (this.#taken !== taken) return refused("aborted", "conflict", "another snapshot was taken meanwhile: begin again");
      return ok({ checksum, totalBytes, version, payload });
    } catch (error) {
      return refused("unavailable", "diskFailed", `the snapshot can't be read: ${String(error)}`);
    }
  }

  async #take(): Promise<Outcome<Taken>> {
    const taken = await this.#write();
    const failure = taken.ok ? "" : taken.failure.message;
    if (failure !== "" && failure !== this.#failure) this.#world.logger.warn("no snapshot of the metadata can be taken", { why: failure });
    this.#failure = failure;
    if (taken.ok) {
      await this.#drop(this.#taken);
      this.#taken = taken.value;
    }
    return taken;
  }

  async #write(): Promise<Outcome<Taken>> {
    const { clock, digest, disk, logger } = this.#world;
    const name = this.#taken?.name === files[0] ? files[1] : files[0];
    const file = await disk.open(name, { create: true });
    try {
      await file.truncate(0);
      const startMs = clock.monotonicMs();
      const takenAtMs = Math.floor(clock.wallMs());
      const { sequence } = this.#store;
      const version = await this.#store.lastVersion();
      if (!version.ok) throw new FailureError(version.failure);
      const header = { stampId: this.#stampId, version: version.value, takenAtMs, lineage: this.#store.lineage };
      const writer = new SnapshotWriter(header, (bytes, seed) => digest.crc32c(bytes, seed));
      let [checksum, totalBytes, lookAtBytes] = [0, 0, 0];
      const append = async (bytes: Uint8Array): Promise<void> => {
        if (this.#closed) throw new FailureError(refused("unavailable", "stopping", "the lock service is stopping").failure);
        if (totalBytes >= lookAtBytes) {
          lookAtBytes += spaceEveryBytes;
          await this.#room(disk);
        }
        await file.write(totalBytes, [bytes]);
        totalBytes += bytes.length;
      };
      await append(writer.begin());
      for await (const entry of this.#store.everything()) {
        checksum = digest.crc32c(entry[1], digest.crc32c(entry[0], checksum));
        const chunk = writer.add(entry);
        if (chunk !== undefined) await append(chunk);
      }
      await append(writer.end());
      const nowMs = clock.monotonicMs();
      const tookMs = Math.round(nowMs - startMs);
      logger.debug("a snapshot of the metadata was taken", { version: version.value, bytes: totalBytes, tookMs });
      return ok({ checksum, version: version.value, sequence, totalBytes, takenAtMs, sinceMs: nowMs, tookMs, name, file, readMs: nowMs });
    } catch (error) {
      await file.truncate(0).catch(() => {});
      await file.close();
      if (error instanceof FailureError) {
        if (error.failure.code === "dataLoss") this.#world.fatal(error.message);
        return { ok: false, failure: error.failure };
      }
      if (!(error instanceof DiskError)) throw error;
      return refused(
        error.kind === "full" ? "resourceExhausted" : "unavailable",
        error.kind === "full" ? "diskFull" : "diskFailed",
        `the snapshot was not written: ${error.message}`,
      );
    }
  }

  /** Refuses a snapshot that would take the room which the store itself needs. */
  async #room(disk: World["disk"]): Promise<void> {
    const { freeBytes } = await disk.space();
    const neededBytes = 2 * this.#reserveBytes;
    if (freeBytes >= neededBytes) return;
    throw new DiskError("full", "snapshot", `${freeBytes} bytes are free, ${neededBytes} stay free for the store`);
  }

  async #drop(taken: Taken | undefined): Promise<void> {
    if (taken === undefined) return;
    await taken.file.truncate(0).catch(() => {});
    await taken.file.close();
  }
}
