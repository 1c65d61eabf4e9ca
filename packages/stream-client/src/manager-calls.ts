/** Calls of a stream's owner to the stream manager, under the owner's name and epoch. */
import { type Outcome, type OwnerEpoch, ok, refused } from "@stamp/base";
import type { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { type ExtentLocation, type SealAndAllocateResponse, StreamManager, toWire } from "@stamp/wire";

export const changeTimeoutMs = 5_000;
/** Longest pause between two attempts at a change. */
export const changeBackoffMaxMs = 500;

/** A part of a list, from one extent to before another (0: to its end). */
export interface KeptRange {
  readonly firstExtentId: number;
  readonly beforeExtentId: number;
}

export class ManagerCalls {
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #name: string;
  readonly #ownerEpoch: bigint;

  constructor(world: World, manager: LeaderCalls, name: string, ownerEpoch: OwnerEpoch) {
    this.#world = world;
    this.#manager = manager;
    this.#name = name;
    this.#ownerEpoch = toWire(ownerEpoch);
  }

  /** `knownCommittedBytes` is asked at every attempt: acknowledgements may have come in since the one before. */
  sealAndAllocate(
    extentId: number,
    more: { readonly complete: boolean; readonly knownCommittedBytes: () => number; readonly avoidAddresses: readonly string[] },
  ): Promise<Outcome<SealAndAllocateResponse>> {
    const { complete, knownCommittedBytes, avoidAddresses } = more;
    const request = { ...this.#owner, extentId: toWire(extentId), avoidAddresses: [...avoidAddresses], complete };
    return this.#manager.call(
      changeTimeoutMs,
      (address, timeoutMs) =>
        this.#client(address).sealAndAllocate({ ...request, knownCommittedBytes: toWire(knownCommittedBytes()) }, { timeoutMs }),
      { idempotent: true },
    );
  }

  allocateAhead(extentId: number): Promise<Outcome<unknown>> {
    const request = { ...this.#owner, extentId: toWire(extentId) };
    return this.#manager.call(changeTimeoutMs, (address, timeoutMs) => this.#client(address).allocateAhead(request, { timeoutMs }), {
      idempotent: true,
    });
  }

  truncate(beforeExtentId: number, limitMs: number): Promise<Outcome<unknown>> {
    const request = { ...this.#owner, beforeExtentId: toWire(beforeExtentId) };
    return this.#manager.call(limitMs, (address, timeoutMs) => this.#client(address).truncateStream(request, { timeoutMs }), {
      idempotent: true,
    });
  }

  /** Returns the list behind this extent (0: all of it), page by page. Refused with `staleOwnerEpoch` when it has another owner by now. */
  async extents(afterExtentId: bigint, limitMs: number): Promise<Outcome<ExtentLocation[]>> {
    const { name, ownerEpoch } = this.#owner;
    const { clock } = this.#world;
    const deadlineMs = clock.monotonicMs() + limitMs;
    const found: ExtentLocation[] = [];
    for (let [after, more] = [afterExtentId, true]; more; ) {
      const page = await this.#manager.call(
        Math.max(1, deadlineMs - clock.monotonicMs()),
        (address, timeoutMs) => this.#client(address).getStream({ name, afterExtentId: after }, { timeoutMs }),
        { idempotent: true },
      );
      if (!page.ok) return page;
      const { extents } = page.value;
      if (page.value.ownerEpoch !== ownerEpoch) {
        return refused("failedPrecondition", "staleOwnerEpoch", `stream ${name} was opened with owner epoch ${page.value.ownerEpoch}`);
      }
      found.push(...extents);
      after = extents.at(-1)?.extentId ?? after;
      more = page.value.more && extents.length > 0;
    }
    return ok(found);
  }

  /** Reduces the list to these parts. Not repeated if the outcome is unknown. */
  keep(ranges: readonly KeptRange[], limitMs: number): Promise<Outcome<unknown>> {
    const { name, ownerEpoch } = this.#owner;
    const extents = ranges.map(({ firstExtentId, beforeExtentId }) => ({
      stream: name,
      firstExtentId: toWire(firstExtentId),
      beforeExtentId: toWire(beforeExtentId),
    }));
    const request = { edits: [{ name, ownerEpoch, content: { ownerEpoch, extents } }] };
    return this.#manager.call(limitMs, (address, timeoutMs) => this.#client(address).multiModify(request, { timeoutMs }));
  }

  get #owner() {
    return { name: this.#name, ownerEpoch: this.#ownerEpoch };
  }

  #client(address: string) {
    return this.#world.transport.client(address, StreamManager);
  }
}
