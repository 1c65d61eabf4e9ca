/**
 * The way of an owned stream from an extent that is full or failed to the next one. It asks the stream manager until there is an answer: without the
 * sealed length nobody knows which appends happened.
 *
 * `owned-stream.ts` sends the appends and says when an extent is left; `append-window.ts` decides which of them are sent again.
 *
 * - Extents that fail one after another, before they acknowledge anything, are left ever more slowly.
 * - While no extent node has room, appends that do not wait for room are refused, and the question goes on.
 */
import { type Failed, type Failure, refused, unknownOutcome } from "@stamp/base";
import { jittered, sleep, type World } from "@stamp/ports";
import { type ExtentLocation, fromWire } from "@stamp/wire";
import { changeBackoffMaxMs, type ManagerCalls } from "./manager-calls.ts";
import type { ExtentChange } from "./types.ts";

const backoffStartMs = 10;

export interface Successor {
  /** Number of the extent before it, and the sealed length of that one, in bytes. */
  readonly afterExtentId: number;
  readonly sealedLengthBytes: number;
  readonly location: ExtentLocation;
}

export interface NextExtentParts {
  readonly world: World;
  readonly manager: ManagerCalls;
  /** Name of the stream. */
  readonly stream: string;
  /** Number of the stream's last extent when it was opened; 0: the list was empty. */
  readonly lastAtOpen: number;
  /** Deadline of one append, in milliseconds: after it no node answers what was sent to it. */
  readonly appendTimeoutMs: number;
  /** Aborts when the stream is closed or lost. */
  readonly signal: AbortSignal;
  readonly ended: () => boolean;
  /** Returns the end of what is acknowledged in the extent that is left, in bytes. */
  readonly committedBytes: () => number;
  /** Called once for each call of `after`, unless the stream ends before. */
  readonly entered: (successor: Successor) => void;
  /** Called when the stream has another owner, or is gone. */
  readonly fence: (failure: Failure) => void;
  /**
   * Called each time no extent node has room. The first failure is for appends that certainly did not happen; the second for those that were sent,
   * once all their answers are overdue.
   */
  readonly withoutRoom: (notDone: Failed, inDoubt: Failed | undefined) => void;
  readonly onExtentChange?: ((change: ExtentChange) => void) | undefined;
}

export class NextExtent {
  readonly #parts: NextExtentParts;
  /** Addresses of the nodes that the last extent failed on. */
  #avoid: readonly string[] = [];
  /** Number of extents in a row that failed before they acknowledged anything. */
  #emptyExtents = 0;
  #refusal: Failure | undefined;
  #noRoom: Failed | undefined;

  constructor(parts: NextExtentParts) {
    this.#parts = parts;
  }

  /** Reason why the next extent was not given, while it is asked for. */
  get refusal(): Failure | undefined {
    return this.#refusal;
  }
  /** Refusal of appends while not enough extent nodes can take an extent; undefined once there is an extent. */
  get noRoom(): Failed | undefined {
    return this.#noRoom;
  }

  /** Notes that the open extent acknowledged an append. */
  acknowledged(): void {
    this.#emptyExtents = 0;
  }

  /** Notes that the open extent failed. */
  failed(): void {
    this.#emptyExtents = this.#parts.committedBytes() > 0 ? 0 : this.#emptyExtents + 1;
  }

  /** Has the next extent made elsewhere than on the nodes with these addresses. */
  avoid(addresses: readonly string[]): void {
    this.#avoid = addresses;
  }

  /** Asks for the successor of the extent until there is one. `complete`: the extent is full, and every append in it was acknowledged. */
  async after(extentId: number, complete: boolean): Promise<void> {
    const { world, signal, stream, appendTimeoutMs, onExtentChange } = this.#parts;
    const { clock, random, logger } = world;
    const startMs = clock.monotonicMs();
    let [backoffMs, toldWhy] = [backoffStartMs, ""];
    if (this.#emptyExtents > 0) {
      // The next extent is asked for at once when one fails, but not in a storm when all do.
      const pauseMs = Math.min(backoffStartMs * 2 ** Math.min(this.#emptyExtents - 1, 10), changeBackoffMaxMs);
      await sleep(clock, jittered(random, pauseMs), signal);
    }
    while (!signal.aborted && !this.#parts.ended()) {
      const knownCommittedBytes = this.#parts.committedBytes;
      const outcome = await this.#parts.manager.sealAndAllocate(extentId, { complete, knownCommittedBytes, avoidAddresses: this.#avoid });
      if (this.#parts.ended()) return;
      if (outcome.ok && outcome.value.extent !== undefined) {
        [this.#refusal, this.#noRoom, this.#avoid] = [undefined, undefined, []];
        const { sealedLengthBytes, extent } = outcome.value;
        this.#parts.entered({ afterExtentId: extentId, sealedLengthBytes: fromWire(sealedLengthBytes), location: extent });
        const why = complete ? "full" : extentId === this.#parts.lastAtOpen ? "first" : "failed";
        const [toExtentId, tookMs] = [fromWire(extent.extentId), clock.monotonicMs() - startMs];
        onExtentChange?.({ stream, fromExtentId: extentId, toExtentId, why, tookMs });
        return;
      }
      if (!outcome.ok && (outcome.failure.reason === "staleOwnerEpoch" || outcome.failure.reason === "streamNotFound")) {
        this.#parts.fence(outcome.failure);
        return;
      }
      const why = outcome.ok ? "no successor in the answer" : `${outcome.failure.reason}: ${outcome.failure.message}`;
      // While all disks are full the answer comes at once, and again and again.
      if (why !== toldWhy) logger.warn("no next extent for a stream yet", { stream, extentId, why });
      toldWhy = why;
      this.#refusal = outcome.ok ? undefined : outcome.failure;
      if (!outcome.ok && outcome.failure.reason === "noPlacement") {
        this.#refuse(outcome.failure.message, clock.monotonicMs() - startMs > appendTimeoutMs);
      }
      await sleep(clock, jittered(random, backoffMs), signal);
      backoffMs = Math.min(backoffMs * 2, changeBackoffMaxMs);
    }
  }

  #refuse(message: string, answersOverdue: boolean): void {
    this.#noRoom = refused("resourceExhausted", "noPlacement", message);
    this.#parts.withoutRoom(this.#noRoom, answersOverdue ? unknownOutcome("resourceExhausted", "noPlacement", message) : undefined);
  }
}
