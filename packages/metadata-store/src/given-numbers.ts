/**
 * Numbers that the partition manager has given, as the lock service recorded them: its term, which is the epoch of its lease, and the last
 * owner epoch, which is a counter in the metadata store. Both are durable before the manager tells them to anybody, and a restored store
 * has both raised. So a receiver can tell a number that was given from one that a faulty process made up.
 *
 *     receiver: far ahead of what is known? ──no──> obeys at once
 *                        │ yes
 *                        └──> vouchFor: reads both ──still far ahead──> refuses (badRequest)
 *
 * Invariant: a number that was given before `vouchFor` was called passes. The bounds count from the numbers that were read, not from the
 * numbers that were obeyed, so that small steps do not add up.
 */
import type { Outcome } from "@stamp/base";
import { fromUtf8, ok, refused } from "@stamp/base";
import type { Client, World } from "@stamp/ports";
import { fromWire, LockService } from "@stamp/wire";
import { lockServices } from "./lock-services.ts";
import { MetadataClient } from "./metadata-client.ts";

/**
 * Distance from the last owner epoch that is known to be given up to which an epoch is obeyed without asking. Streams without a partition
 * manager have owners who count for themselves.
 */
export const unvouchedEpochsMax = 256;
/** Distance from the last known term up to which a term is obeyed without asking. A partition manager climbs by one a try, taking its lease anew. */
export const unvouchedTermsMax = 16;
const counterKey = "partition-manager/owner-epoch";
const leaseName = "partition-manager";

/** Numbers in a command of a partition manager; absent ones are not looked at. */
export interface CommandNumbers {
  readonly term?: number;
  readonly ownerEpoch?: number;
}

export class GivenNumbers {
  readonly #timeoutMs: number;
  readonly #metadata: MetadataClient;
  readonly #lockService: Client<typeof LockService>;
  #given = { term: 0, ownerEpoch: 0 };
  /** The read that was sent last; it may be over. */
  #sent: Promise<unknown> = Promise.resolve();
  /** The read that is sent when the last one is over, for all who asked meanwhile. */
  #next: Promise<Outcome<void>> | undefined;

  constructor(world: World, options: { readonly lockService: string; readonly timeoutMs: number }) {
    this.#timeoutMs = options.timeoutMs;
    this.#metadata = new MetadataClient(world, options.lockService);
    this.#lockService = lockServices(world, options.lockService, LockService);
  }

  /** The highest numbers that were read here; 0 before the first read. */
  get known(): Readonly<Required<CommandNumbers>> {
    return this.#given;
  }

  /** True if a number is so far above the known ones that it may never have been given: `vouchFor` must be asked. */
  isFar({ term = 0, ownerEpoch = 0 }: CommandNumbers): boolean {
    return term > this.#given.term + unvouchedTermsMax || ownerEpoch > this.#given.ownerEpoch + unvouchedEpochsMax;
  }

  /** Reads what was given, and refuses numbers that are still far ahead of that; with notReady if it can't read. */
  async vouchFor(numbers: CommandNumbers): Promise<Outcome<void>> {
    const read = await this.#readAnew();
    if (!read.ok) return refused("unavailable", "notReady", `${inWords(numbers)} can't be checked: ${read.failure.message}`);
    if (!this.isFar(numbers)) return ok();
    return refused("invalidArgument", "badRequest", `${inWords(numbers)} was never given: the last ones are ${inWords(this.#given)}`);
  }

  /** Reads once more: a read on its way may have left before these numbers were given. */
  #readAnew(): Promise<Outcome<void>> {
    this.#next ??= this.#sent.then(() => {
      this.#next = undefined;
      const read = this.#read();
      this.#sent = read.catch(() => {});
      return read;
    });
    return this.#next;
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
    const { term, ownerEpoch } = this.#given;
    this.#given = { term: Math.max(term, fromWire(lease.value.leaseEpoch)), ownerEpoch: Math.max(ownerEpoch, last) };
    return ok();
  }
}

function inWords({ term, ownerEpoch }: CommandNumbers): string {
  const parts = [
    ...(term === undefined ? [] : [`partition manager term ${term}`]),
    ...(ownerEpoch === undefined ? [] : [`owner epoch ${ownerEpoch}`]),
  ];
  return parts.join(" with ");
}
