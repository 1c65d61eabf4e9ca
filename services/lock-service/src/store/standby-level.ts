/**
 * The feature level of the stamp as a standby lock service hears it: it reads the record in etcd whenever it looks at the active one. So `stamp
 * upgrade finalize` need not wait for a fail-over, and a release that does not know the level does not start in the folder of a standby either.
 *
 * Invariant: a level is noted in the folder's marker before it is told to others.
 */
import { equalBytes } from "@stamp/base";
import type { WatchedKey } from "@stamp/etcd";
import { decodeLevel, levelKey } from "@stamp/metadata-store";
import { DiskError, raiseFeatureLevel, type World } from "@stamp/ports";
import { decodeKeyState, storedKey } from "./store.ts";

export class StandbyLevel {
  readonly watched: WatchedKey = { key: storedKey(levelKey), seen: (stored) => this.#seen(stored) };
  readonly #world: World;
  /** Record that was seen last. */
  #last: Uint8Array | undefined;
  #level = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** The level that was heard and noted; 0: none. */
  get level(): number {
    return this.#level;
  }

  #seen(stored: Uint8Array | undefined): void {
    if (stored === undefined || (this.#last !== undefined && equalBytes(stored, this.#last))) return;
    this.#last = stored.slice();
    this.#note(this.#last).catch((error: unknown) => {
      if (!(error instanceof DiskError)) throw error;
      this.#world.logger.warn("the feature level of the stamp could not be noted; the next turn as the active lock service does it", {
        error,
      });
    });
  }

  async #note(stored: Uint8Array): Promise<void> {
    const checksum = (bytes: Uint8Array): number => this.#world.digest.crc32c(bytes);
    const state = decodeKeyState(stored, checksum);
    const value = state.ok ? state.value.value : stored;
    if (value === undefined || value.length === 0) return;
    const record = state.ok ? decodeLevel(value, checksum) : state;
    if (!record.ok) {
      this.#world.logger.warn("a standby does not take up the feature level of the stamp", { why: record.failure.message });
      return;
    }
    await raiseFeatureLevel(this.#world, record.value.level);
    this.#level = Math.max(this.#level, record.value.level);
  }
}
