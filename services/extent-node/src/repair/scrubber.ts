/**
 * Reads every sealed replica and every fragment of this node again and again, at a low rate, in another order each time, and goes on where it
 * was after a restart. A replica that is not what was written is marked damaged: it is never served from then on, the next report tells the
 * stream manager, and that has it copied anew. A damaged fragment is told and made anew in the same way; its intact chunks are still served.
 */

import type { ExtentId } from "@stamp/base";
import { FailureError, newerFormat } from "@stamp/base";
import {
  beginScrubPass,
  decodeScrubState,
  encodeScrubState,
  endScrubPass,
  type FragmentName,
  noteScrubbed,
  type ScrubState,
  scrubOrder,
} from "@stamp/extent";
import { DiskError, jittered, sleep } from "@stamp/ports";
import { type VerifyResult, verifyReplica } from "../check/verify.ts";
import { scrubIo } from "../disk/disk-queue.ts";
import type { LocalExtent } from "../disk/local-extent.ts";
import type { VerifiedFragment } from "../fragments/fragment-files.ts";
import type { Node } from "../node.ts";

export const scrubFile = "scrub-state";
const saveEveryMs = 10_000;
const troublePauseMs = 1_000;

export class Scrubber {
  readonly #node: Node;
  readonly #stop: AbortController = new AbortController();
  #state: ScrubState | undefined;
  #left = 0;
  #savedMs = 0;
  #running: Promise<void> | undefined;

  constructor(node: Node) {
    this.#node = node;
  }

  start(): void {
    if (this.#node.config.scrubBytesPerSecond === 0) return;
    this.#running = this.#run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#node.world.logger.error("scrubbing ended", { error: String(error) });
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Facts for `stamp scrub status`. */
  get facts(): Readonly<Record<string, unknown>> {
    const state = this.#state;
    if (state === undefined) return { enabled: this.#node.config.scrubBytesPerSecond > 0, pass: 0 };
    const { number, startedAtMs, extents, bytes, findings } = state.pass;
    const running = state.finished?.number !== number;
    return {
      enabled: true,
      running,
      pass: number,
      startedAtMs,
      extents,
      bytes,
      findings,
      extentsLeft: running ? this.#left : 0,
      finished: state.finished,
      recent: state.findings,
    };
  }

  async #run(): Promise<void> {
    const { world, config } = this.#node;
    const held = await world.disk.readWhole(scrubFile);
    const decoded = held === undefined ? undefined : decodeScrubState(held);
    if (decoded?.kind === "newer")
      return world.logger.error("scrubbing does not begin", { why: newerFormat(scrubFile, decoded).failure.message });
    if (decoded?.kind === "invalid") world.logger.warn("scrubbing begins anew: its state can't be read", { why: decoded.why });
    if (decoded?.kind === "ok") this.#state = decoded.value;
    while (!this.#stop.signal.aborted) {
      const state = this.#state;
      if (state === undefined || state.finished?.number === state.pass.number) {
        // Not all nodes at once after they were started together.
        if ((await sleep(world.clock, jittered(world.random, config.scrubPauseMs), this.#stop.signal)) === "aborted") return;
        this.#state = beginScrubPass(state, world.random.uint32(), world.clock.wallMs());
      }
      await this.#pass();
    }
  }

  async #pass(): Promise<void> {
    const { world, store, fragments } = this.#node;
    const begun = this.#state as ScrubState;
    const ids = new Set<ExtentId>();
    for (const { replica } of store.extents.values()) if (replica.state === "sealed") ids.add(replica.extentId);
    for (const { extentId } of fragments.names()) ids.add(extentId);
    const order = scrubOrder(begun.pass.seed, ids, begun.pass.lastExtentId);
    this.#left = order.length;
    for (const id of order) {
      const extent = this.#node.find(id);
      for (const name of fragments.of(id)) if (!this.#stop.signal.aborted) await this.#fragment(name);
      if (extent !== undefined) await this.#one(extent);
      if (this.#stop.signal.aborted) return this.#save(true);
      this.#left -= 1;
      await this.#save(false);
    }
    this.#state = endScrubPass(this.#state as ScrubState, world.clock.wallMs());
    const { number, extents, bytes, findings } = this.#state.pass;
    // A small node ends a pass each minute: only one that found something is news. The figures of `stamp scrub status` have them all.
    const told = { pass: number, extents, bytes, findings };
    world.logger[findings > 0 ? "info" : "debug"]("every sealed replica and fragment was read and compared", told);
    await this.#save(true);
  }

  async #one(extent: LocalExtent): Promise<void> {
    const { world } = this.#node;
    let verified: VerifyResult | undefined;
    try {
      verified = await verifyReplica(this.#node, extent, scrubIo, (bytes) => this.#pace(bytes));
    } catch (error) {
      // Nothing is known of the data: the next pass comes to them.
      if (!(error instanceof DiskError) && !(error instanceof FailureError)) throw error;
      world.logger.warn("an extent was not scrubbed", { extent: extent.replica.extentId, error: error.message });
      await sleep(world.clock, troublePauseMs, this.#stop.signal);
    }
    if (this.#stop.signal.aborted) return;
    const { extentId: id } = extent.replica;
    const state = this.#state as ScrubState;
    if (verified?.kind !== "bad") {
      this.#state = noteScrubbed(state, id, verified?.bytes ?? 0, undefined);
      return;
    }
    const why = `at ${verified.offsetBytes}: ${verified.why}`;
    this.#state = noteScrubbed(state, id, 0, { extentId: id, atMs: world.clock.wallMs(), why });
    await this.#node.markDamaged(extent, `found by scrub ${why}`);
    await this.#save(true);
  }

  async #fragment(name: FragmentName): Promise<void> {
    const { world, fragments } = this.#node;
    const { extentId: id, version, index } = name;
    let verified: VerifiedFragment | undefined;
    try {
      verified = await fragments.verify(name, scrubIo, (bytes) => this.#pace(bytes));
    } catch (error) {
      // Nothing is known of the data: the next pass comes to them.
      if (!(error instanceof DiskError) && !(error instanceof FailureError)) throw error;
      world.logger.warn("a fragment was not scrubbed", { extent: id, version, index, error: error.message });
      await sleep(world.clock, troublePauseMs, this.#stop.signal);
    }
    if (this.#stop.signal.aborted || verified === undefined) return;
    const bad = verified.kind === "bad" ? { extentId: id, atMs: world.clock.wallMs(), why: verified.why } : undefined;
    this.#state = noteScrubbed(this.#state as ScrubState, id, verified.kind === "intact" ? verified.bytes : 0, bad);
    if (bad !== undefined) await this.#save(true);
  }

  /** Waits after a piece as long as the rate demands. */
  async #pace(bytes: number): Promise<boolean> {
    const { world, config } = this.#node;
    const pauseMs = (bytes * 1_000) / config.scrubBytesPerSecond;
    return (await sleep(world.clock, jittered(world.random, pauseMs), this.#stop.signal)) === "elapsed";
  }

  async #save(now: boolean): Promise<void> {
    const { world } = this.#node;
    const nowMs = world.clock.monotonicMs();
    if (this.#state === undefined || (!now && nowMs - this.#savedMs < saveEveryMs)) return;
    this.#savedMs = nowMs;
    try {
      await world.disk.writeAtomically(scrubFile, encodeScrubState(this.#state));
    } catch (error) {
      // A full disk: the pass is repeated from an earlier place.
      world.logger.warn("the state of scrubbing can't be written", { error: String(error) });
    }
  }
}
