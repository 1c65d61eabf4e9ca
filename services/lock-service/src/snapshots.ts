/** The snapshot that is handed out in parts: one at a time, taken anew when somebody begins to read. */
import { type Outcome, ok, refused } from "@stamp/base";
import { encodeSnapshot, snapshotBytesMax } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import type { LockStore } from "./store.ts";

const partBytes = 1024 * 1024;

interface Taken {
  /** Of the entries: the same as long as nothing changes. */
  readonly checksum: number;
  readonly version: number;
  readonly bytes: Uint8Array;
}

export interface SnapshotPart {
  readonly checksum: number;
  readonly totalBytes: number;
  readonly version: number;
  readonly payload: Uint8Array;
}

export class Snapshots {
  readonly #world: World;
  readonly #store: LockStore;
  readonly #stampId: string;
  #taken: Taken | undefined;
  #taking: Promise<Outcome<Taken>> | undefined;

  constructor(world: World, store: LockStore, stampId: string) {
    this.#world = world;
    this.#store = store;
    this.#stampId = stampId;
  }

  async part(offsetBytes: number, checksum: number, knownChecksum: number): Promise<Outcome<SnapshotPart>> {
    if (offsetBytes === 0) {
      // Who begins at the same time reads the same one.
      this.#taking ??= this.#take().finally(() => {
        this.#taking = undefined;
      });
      const taken = await this.#taking;
      if (!taken.ok) return taken;
      this.#taken = taken.value;
      if (taken.value.checksum === knownChecksum) return ok(partOf(taken.value, 0, 0));
      return ok(partOf(taken.value, 0, partBytes));
    }
    if (this.#taken?.checksum !== checksum) return refused("aborted", "conflict", "another snapshot was taken meanwhile: begin again");
    return ok(partOf(this.#taken, offsetBytes, partBytes));
  }

  async #take(): Promise<Outcome<Taken>> {
    const { clock, digest } = this.#world;
    const version = await this.#store.lastVersion();
    if (!version.ok) return version;
    const entries: [Uint8Array, Uint8Array][] = [];
    let bytes = 0;
    let checksum = 0;
    for await (const [key, value] of this.#store.everything()) {
      bytes += key.length + value.length;
      if (bytes > snapshotBytesMax)
        return refused("resourceExhausted", "overloaded", `the metadata are more than ${snapshotBytesMax} bytes`);
      checksum = digest.crc32c(value, digest.crc32c(key, checksum));
      entries.push([key, value]);
    }
    const header = { stampId: this.#stampId, version: version.value, takenAtMs: Math.floor(clock.wallMs()) };
    return ok({ checksum, version: version.value, bytes: encodeSnapshot({ ...header, entries }, (content) => digest.crc32c(content)) });
  }
}

const partOf = ({ checksum, version, bytes }: Taken, offsetBytes: number, lengthBytes: number): SnapshotPart => ({
  checksum,
  version,
  totalBytes: bytes.length,
  payload: bytes.subarray(offsetBytes, offsetBytes + lengthBytes),
});
