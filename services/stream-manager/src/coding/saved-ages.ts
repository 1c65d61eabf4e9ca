/**
 * Keeps the looks of `ExtentAges` in the metadata store, so that a new leader does not wait the whole time again before it codes what was old for
 * the last one. Written under the term's lease each time a look is kept: about every 15th part of `afterSeconds`.
 *
 * Invariant: ages are only a wish to wait. A record that can't be read or written lets extents wait longer, and stops nothing else.
 */
import type { MetadataClient } from "@stamp/metadata-store";
import { codingAgesKey, decodeCodingAges, type ExtentAges, encodeCodingAges } from "@stamp/stream";
import { leaseName } from "../term/ledger.ts";
import type { Term } from "../term/term.ts";

/** Shorter times are not saved: a new leader has waited as long soon, and a write would follow every look. */
const savedFromMs = 60_000;

export class SavedAges {
  readonly #term: Term;
  readonly #metadata: MetadataClient;
  readonly #stored: Uint8Array | undefined;
  #busy = false;

  /** `stored`: bytes of the record; undefined: there is none. */
  constructor(term: Term, metadata: MetadataClient, stored: Uint8Array | undefined) {
    this.#term = term;
    this.#metadata = metadata;
    this.#stored = stored;
  }

  /** Gives the ages what an earlier leader has seen. */
  restore(ages: ExtentAges): void {
    const { clock, digest, logger } = this.#term.world;
    if (this.#stored === undefined) return;
    const decoded = decodeCodingAges(this.#stored, (bytes) => digest.crc32c(bytes));
    if (decoded.ok) ages.restore(decoded.value, clock.monotonicMs(), clock.wallMs());
    else logger.warn("the ages of extents can't be read, and begin anew", { key: codingAgesKey, message: decoded.failure.message });
  }

  /** Writes the looks, unless a write is under way: the next look is written as well. */
  async save(ages: ExtentAges, afterMs: number): Promise<void> {
    const { config, ended, number, world } = this.#term;
    if (this.#busy || ended.aborted || afterMs < savedFromMs) return;
    this.#busy = true;
    const looks = ages.saved(world.clock.monotonicMs(), world.clock.wallMs());
    const value = encodeCodingAges(looks, (bytes) => world.digest.crc32c(bytes));
    const fence = { leaseName, leaseEpoch: number };
    const writes = [{ key: codingAgesKey, value }];
    const written = await this.#metadata.transact({ fence, conditions: [], writes }, config.metadataTimeoutMs);
    if (!written.ok) world.logger.info("the ages of extents were not written", { message: written.failure.message });
    this.#busy = false;
  }
}
