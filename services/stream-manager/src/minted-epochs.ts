/**
 * Owner epochs that their minter can have given. A stream that recorded one far beyond would refuse its legitimate owner until the minter
 * had climbed above it, which is for ever.
 *
 * The partition manager opens its own tables (`/pm/…`) with its term, which is the epoch of its lease; every other stream's owner has an
 * epoch of the counter in the metadata store. Both are durable before they are told to anybody, and a restored store has both raised.
 */
import type { Outcome, OwnerEpoch } from "@stamp/base";
import { fromUtf8, ok, refused } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import type { Client, World } from "@stamp/ports";
import { fromWire, LockService } from "@stamp/wire";
import type { StreamManagerConfig } from "./config.ts";

/**
 * Distance from the last epoch that is known to be given up to which an epoch is recorded without asking. Streams without a partition
 * manager have owners who count for themselves.
 */
export const unvouchedEpochsMax = 256;
/** The same of terms: a partition manager climbs by one a try, taking its lease anew. */
export const unvouchedTermsMax = 16;
const counterKey = "partition-manager/owner-epoch";
const leaseName = "partition-manager";

const openedWithTerm = (stream: string): boolean => stream.startsWith("/pm/");

export class MintedEpochs {
  readonly #world: World;
  readonly #timeoutMs: number;
  readonly #metadata: MetadataClient;
  readonly #lockService: Client<typeof LockService>;
  #given = { epoch: 0, term: 0 };

  constructor(world: World, config: Pick<StreamManagerConfig, "lockService" | "metadataTimeoutMs">) {
    this.#world = world;
    this.#timeoutMs = config.metadataTimeoutMs;
    this.#metadata = new MetadataClient(world, config.lockService);
    this.#lockService = world.transport.client(config.lockService, LockService);
  }

  /** True if `vouchFor` must be asked before this epoch is recorded for the stream (rule `mintedEpochsOnly`). */
  isFar(stream: string, epoch: OwnerEpoch): boolean {
    const { epoch: given, term } = this.#given;
    const most = openedWithTerm(stream) ? term + unvouchedTermsMax : given + unvouchedEpochsMax;
    return epoch > most && this.#world.rules.on("mintedEpochsOnly");
  }

  /** Reads what was given, and refuses the epoch if it still is far beyond that. */
  async vouchFor(stream: string, epoch: OwnerEpoch): Promise<Outcome<void>> {
    const read = await this.#read();
    if (!read.ok) return refused("unavailable", "notReady", `owner epoch ${epoch} can't be checked: ${read.failure.message}`);
    if (!this.isFar(stream, epoch)) return ok();
    const { epoch: last, term } = this.#given;
    const given = openedWithTerm(stream) ? `the partition manager's term is ${term}` : `the last one is ${last}`;
    this.#world.logger.error("an owner epoch was never given", { stream, ownerEpoch: epoch, lastGiven: last, partitionManagerTerm: term });
    return refused("invalidArgument", "badRequest", `owner epoch ${epoch} of stream ${stream} was never given: ${given}`);
  }

  async #read(): Promise<Outcome<void>> {
    const [counter, lease] = await Promise.all([
      this.#metadata.get([counterKey], this.#timeoutMs),
      this.#lockService.getLease({ name: leaseName }, { timeoutMs: this.#timeoutMs }),
    ]);
    if (!counter.ok) return counter;
    if (!lease.ok) return lease;
    const entry = counter.value[0];
    const last = entry === undefined || entry.version === 0 ? 0 : Number(fromUtf8(entry.value));
    if (!Number.isSafeInteger(last) || last < 0) return refused("dataLoss", "damaged", `${counterKey} is not a number`);
    this.#given = { epoch: Math.max(this.#given.epoch, last), term: Math.max(this.#given.term, fromWire(lease.value.leaseEpoch)) };
    return ok();
  }
}
