/**
 * Keeps bytes pinned at the other stamp until the rows that refer to them are applied there. A part of a scan has the bytes of many
 * PartitionNames: the first ones wait until the last ones are copied, also while a copy waits for its turn at a bounded rate.
 *
 * Invariant: it saves work, and decides nothing. The other stamp refuses a row whose bytes are not there (rule `geoPlacesChecked`).
 */
import { type Failed, type Outcome, refused } from "@stamp/base";
import { sleep, type World } from "@stamp/ports";

/** Bytes of one PartitionName at the other stamp. */
export interface PinnedBytes {
  readonly name: Uint8Array;
  /** Extents of the bytes at the other stamp; the set grows while they are copied. */
  readonly extentIds: ReadonlySet<number>;
  /** Extents with bytes to which no row there refers yet. */
  readonly newIds: ReadonlySet<number>;
}

/** Calls that pin extents at the other stamp, so that it keeps bytes without a reference. */
export interface PinLink {
  /** Returns the extents that are gone. */
  pinData(
    name: Uint8Array,
    extentIds: readonly number[],
    limits: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<Outcome<readonly number[]>>;
}

/** Number of extents in one call. */
const extentsPerCallMax = 4_096;
const pinTimeoutMs = 5_000;
const renewalsPerTerm = 6;
/** PartitionNames that are pinned again at the same time. */
const namesAtOnce = 16;

export class PinHold {
  readonly #world: World;
  readonly #link: PinLink;
  readonly #onGone: (extentIds: ReadonlySet<number>) => void;
  readonly #stop = new AbortController();
  readonly #held = new Set<PinnedBytes>();
  #renewing: Promise<void> | undefined;
  #failure: Failed | undefined;
  readonly #doubtful = new Set<number>();

  /** `onGone`: called with extents that the other stamp has given back. */
  constructor(world: World, link: PinLink, onGone: (extentIds: ReadonlySet<number>) => void) {
    this.#world = world;
    this.#link = link;
    this.#onGone = onGone;
  }

  /** Refuses when bytes that are held are gone. The caller has to copy them again. */
  get failure(): Failed | undefined {
    return this.#failure;
  }

  /**
   * Extents that are gone, or about to be, and have bytes that were copied before. A row there may refer to them: then they stay, and the other
   * stamp takes a row that still does.
   */
  get doubtful(): ReadonlySet<number> {
    return this.#doubtful;
  }

  add(held: PinnedBytes): void {
    this.#held.add(held);
  }

  /** Notes that the other stamp pins bytes for this time, in milliseconds. */
  pinned(termMs: number): void {
    if (this.#stop.signal.aborted) return;
    this.#renewing ??= this.#renew(termMs / renewalsPerTerm);
  }

  /** Ends all pins. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#renewing;
  }

  async #renew(everyMs: number): Promise<void> {
    const { signal } = this.#stop;
    for (;;) {
      await sleep(this.#world.clock, everyMs, signal);
      if (signal.aborted) return;
      const all = [...this.#held];
      for (let at = 0; at < all.length && !signal.aborted; at += namesAtOnce) {
        await Promise.all(all.slice(at, at + namesAtOnce).map((held) => this.#pin(held)));
      }
    }
  }

  /** Pins extents. A failed call is repeated at the next renewal: several fit into a term. */
  async #pin({ name, extentIds, newIds }: PinnedBytes): Promise<void> {
    const { signal } = this.#stop;
    const ids = [...extentIds];
    for (let at = 0; at < ids.length; at += extentsPerCallMax) {
      const pinned = await this.#link.pinData(name, ids.slice(at, at + extentsPerCallMax), { timeoutMs: pinTimeoutMs, signal });
      if (!pinned.ok) continue;
      const gone = new Set(pinned.value);
      for (const extentId of gone) this.#doubtful.add(extentId);
      if (!pinned.value.some((extentId) => newIds.has(extentId))) continue;
      this.#onGone(gone);
      this.#failure = refused("aborted", "badPlace", "bytes that were copied are not at the other stamp any more");
    }
  }
}
