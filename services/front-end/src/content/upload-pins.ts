/**
 * Keeps the extents of an upload in progress: from the append of its first bytes to the commit of the row that refers to them nobody but this
 * front-end knows of them (docs/decisions/0370). The partition server keeps them for a term; this renews it several times a term, for as long
 * as the upload goes on. Who is slower than the least rate is ended elsewhere, and then nothing is renewed any more.
 *
 * Invariants:
 * - Renewals go to the server that now has the range of the upload's key, over splits and moves.
 * - When `close` has resolved, every extent was renewed less than one interval ago: the commit that follows has most of a term.
 * - An extent that is gone makes the upload fail at its next piece, not at its end.
 */
import type { Outcome } from "@stamp/base";
import type { Route } from "@stamp/objects";
import { jittered, type Timer, type World } from "@stamp/ports";
import type { Place } from "@stamp/wire";
import type { CallLimits } from "../routing/router.ts";

/** Renewals in one term: a few of them may be lost. A new owner waits for three (`DataPins`). */
const renewalsPerTerm = 6;
/** Number of extents in one call. */
const extentsPerCallMax = 4_096;

export type PinData = (route: Route, extentIds: readonly bigint[], limits: CallLimits) => Promise<Outcome<readonly bigint[]>>;

export class UploadPins {
  readonly #world: World;
  readonly #route: Route;
  readonly #pinData: PinData;
  readonly #extentIds = new Set<bigint>();
  #termMs = 0;
  #renewedMs = 0;
  #timer: Timer | undefined;
  #renewing: Promise<void> | undefined;
  #closed = false;
  #gone: bigint | undefined;

  constructor(world: World, route: Route, pinData: PinData) {
    this.#world = world;
    this.#route = route;
    this.#pinData = pinData;
  }

  /** An extent of this upload that is gone: what was put there has to be put again. */
  get goneExtentId(): bigint | undefined {
    return this.#gone;
  }

  /** Notes bytes that were put, and the time for which their server keeps them; 0: not known. */
  add(places: readonly Place[], termMs: number): void {
    if (this.#extentIds.size === 0) this.#renewedMs = this.#world.clock.monotonicMs();
    for (const { extentId } of places) this.#extentIds.add(extentId);
    this.#termMs = termMs;
    this.#schedule();
  }

  /** Ends the renewing; before that everything is renewed once more, unless that was done just now. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#renewing;
    const sinceMs = this.#world.clock.monotonicMs() - this.#renewedMs;
    if (this.#termMs > 0 && sinceMs >= this.#intervalMs) await this.#renew();
  }

  /** Ends the renewing at once: nothing will refer to the bytes, or something does. */
  drop(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  get #intervalMs(): number {
    return this.#termMs / renewalsPerTerm;
  }

  #schedule(): void {
    if (this.#closed || this.#timer !== undefined || this.#termMs === 0 || !this.#world.rules.on("pinsRenewed")) return;
    this.#timer = this.#world.clock.after(jittered(this.#world.random, this.#intervalMs), () => {
      this.#timer = undefined;
      this.#renewing = this.#renew().finally(() => {
        this.#renewing = undefined;
        this.#schedule();
      });
    });
  }

  /**
   * A failed renewal is tried again at the next interval, or in vain: then the commit is refused, and nothing is lost.
   */
  async #renew(): Promise<void> {
    if (!this.#world.rules.on("pinsRenewed")) return;
    const { clock, logger } = this.#world;
    const startedMs = clock.monotonicMs();
    const extentIds = [...this.#extentIds];
    for (let at = 0; at < extentIds.length; at += extentsPerCallMax) {
      const limits = { deadlineMs: startedMs + this.#intervalMs };
      const renewed = await this.#pinData(this.#route, extentIds.slice(at, at + extentsPerCallMax), limits);
      if (!renewed.ok) {
        logger.warn("the pins of an upload in progress were not renewed, tried again later", {
          ...renewed.failure,
          extents: extentIds.length,
        });
        return;
      }
      this.#gone ??= renewed.value[0];
    }
    this.#renewedMs = startedMs;
  }
}
