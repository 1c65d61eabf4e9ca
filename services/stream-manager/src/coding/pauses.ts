/**
 * Keeps whether a person has paused the policy of erasure coding: read once when a term begins, written under the term's lease. The record is in the
 * metadata store, so that a pause holds under every later leader, and after a restart of everything.
 *
 * Invariant: a record that can't be read pauses the policy. Whoever wrote it wanted less to happen, not more.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { type CodingPause, codingPauseKey, decodeCodingPause, encodeCodingPause } from "@stamp/stream";
import { leaseName } from "../term/ledger.ts";
import type { Term } from "../term/term.ts";

const noteMax = 1_000;

export class CodingPauses {
  readonly #term: Term;
  readonly #metadata: MetadataClient;
  #pause: CodingPause | undefined;

  /** `stored`: bytes of the record; undefined: there is none. */
  constructor(term: Term, metadata: MetadataClient, stored: Uint8Array | undefined) {
    this.#term = term;
    this.#metadata = metadata;
    if (stored === undefined) return;
    const { digest, logger } = term.world;
    const decoded = decodeCodingPause(stored, (bytes) => digest.crc32c(bytes));
    if (decoded.ok) {
      this.#pause = decoded.value;
      return;
    }
    const { message } = decoded.failure;
    logger.error("the record of a pause of erasure coding can't be read: no extent is coded", { key: codingPauseKey, message });
    this.#pause = { note: `its record can't be read: ${message}`, wallMs: 0 };
  }

  /** Pause of coding; undefined: coding is not paused. */
  get pause(): CodingPause | undefined {
    return this.#pause;
  }

  async set(paused: boolean, note: string): Promise<Outcome<void>> {
    const { config, end, number, world } = this.#term;
    if (note.length > noteMax) return refused("invalidArgument", "badRequest", `a note has at most ${noteMax} characters`);
    const pause = paused ? { note, wallMs: world.clock.wallMs() } : undefined;
    const value = pause && encodeCodingPause(pause, (bytes) => world.digest.crc32c(bytes));
    const write = value === undefined ? { key: codingPauseKey } : { key: codingPauseKey, value };
    const fence = { leaseName, leaseEpoch: number };
    const written = await this.#metadata.transact({ fence, conditions: [], writes: [write] }, config.metadataTimeoutMs);
    if (!written.ok) {
      // The next term reads what holds.
      if (written.failure.applied === "unknown") end(`the outcome of a metadata write is unknown (${written.failure.message})`);
      return written;
    }
    this.#pause = pause;
    world.logger.info(paused ? "erasure coding is paused" : "erasure coding is resumed", { note });
    return ok();
  }
}
