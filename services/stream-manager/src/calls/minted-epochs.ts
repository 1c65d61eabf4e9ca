/**
 * Owner epochs that their minter can have given. A stream that recorded one far beyond would refuse its legitimate owner until the minter
 * had climbed above it, which is for ever.
 *
 * The partition manager opens its own tables (`/pm/…`) with its term, which is the epoch of its lease; every other stream's owner has an
 * epoch of the counter in the metadata store.
 */
import type { Outcome, OwnerEpoch } from "@stamp/base";
import { type CommandNumbers, GivenNumbers } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import type { StreamManagerConfig } from "../config.ts";

const numbersOf = (stream: string, epoch: OwnerEpoch): CommandNumbers =>
  stream.startsWith("/pm/") ? { term: epoch } : { ownerEpoch: epoch };

export class MintedEpochs {
  readonly #world: World;
  readonly #given: GivenNumbers;

  constructor(world: World, config: Pick<StreamManagerConfig, "lockService" | "metadataTimeoutMs">) {
    this.#world = world;
    this.#given = new GivenNumbers(world, { lockService: config.lockService, timeoutMs: config.metadataTimeoutMs });
  }

  /** True if `vouchFor` must be asked before this epoch is recorded for the stream (rule `mintedEpochsOnly`). */
  isFar(stream: string, epoch: OwnerEpoch): boolean {
    return this.#given.isFar(numbersOf(stream, epoch)) && this.#world.rules.on("mintedEpochsOnly");
  }

  /** Reads the given epochs, and refuses an epoch that is far beyond them. */
  async vouchFor(stream: string, epoch: OwnerEpoch): Promise<Outcome<void>> {
    const vouched = await this.#given.vouchFor(numbersOf(stream, epoch));
    if (!vouched.ok && vouched.failure.reason === "badRequest") {
      const { term, ownerEpoch } = this.#given.known;
      this.#world.logger.error("an owner epoch was never given", {
        stream,
        ownerEpoch: epoch,
        lastGiven: ownerEpoch,
        partitionManagerTerm: term,
      });
    }
    return vouched;
  }
}
