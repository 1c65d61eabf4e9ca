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

  private constructor(term: Term, metadata: MetadataClient, pause: CodingPause | undefined) {
    this.#term = term;
    this.#metadata = metadata;
    this.#pause = pause;
  }

  static async load(term: Term, metadata: MetadataClient): Promise<Outcome<CodingPauses>> {
    const { config, world } = term;
    const read = await metadata.get([codingPauseKey], config.metadataTimeoutMs);
    if (!read.ok) return read;
    const [stored] = read.value;
    if (stored === undefined || stored.version === 0) return ok(new CodingPauses(term, metadata, undefined));
    const decoded = decodeCodingPause(stored.value, (bytes) => world.digest.crc32c(bytes));
    if (decoded.ok) return ok(new CodingPauses(term, metadata, decoded.value));
    const { message } = decoded.failure;
    world.logger.error("the record of a pause of erasure coding can't be read: no extent is coded", { key: codingPauseKey, message });
    return ok(new CodingPauses(term, metadata, { note: `its record can't be read: ${message}`, wallMs: 0 }));
  }

  /** Undefined: it is not paused. */
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
