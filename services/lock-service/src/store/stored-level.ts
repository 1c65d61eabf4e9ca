/**
 * The feature level in the store of a lock service (docs/design/mixed-releases.md). The lock service asks nobody: it reads the record in its own
 * store, and sees it when a stream manager writes it.
 *
 * Invariant: a level is noted in the folder's marker before it is committed here, or served from here. So a release that does not know the level
 * does not start in the folder.
 */
import { type Outcome, ok } from "@stamp/base";
import { decodeLevel, levelKey } from "@stamp/metadata-store";
import { raiseFeatureLevel, type World } from "@stamp/ports";
import type { TransactionInput } from "../judge.ts";
import type { LockStore } from "./store.ts";

export class StoredLevel {
  readonly #world: World;
  #level = 0;

  private constructor(world: World) {
    this.#world = world;
  }

  /** Opens the record. Refuses with `newerFormat` if a release with a higher level wrote the store. */
  static async open(world: World, store: LockStore): Promise<Outcome<StoredLevel>> {
    const level = new StoredLevel(world);
    const stored = await store.key(levelKey);
    if (!stored.ok) return stored;
    const noted = await level.#note(stored.value.value);
    return noted.ok ? ok(level) : noted;
  }

  /** The level in the store; 0: none. */
  get level(): number {
    return this.#level;
  }

  /** Called before a transaction is judged. Refuses one that writes a level which this release does not know. */
  async before({ writes }: TransactionInput): Promise<Outcome<void>> {
    const write = writes.find(({ key }) => key === levelKey);
    return write === undefined ? ok() : this.#note(write.value);
  }

  async #note(value: Uint8Array | undefined): Promise<Outcome<void>> {
    if (value === undefined || value.length === 0) return ok();
    const decoded = decodeLevel(value, (bytes) => this.#world.digest.crc32c(bytes));
    if (!decoded.ok) return decoded;
    await raiseFeatureLevel(this.#world, decoded.value.level);
    this.#level = Math.max(this.#level, decoded.value.level);
    return ok();
  }
}
