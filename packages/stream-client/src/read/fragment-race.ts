/**
 * One range of one fragment of a coded extent. Its node is asked. If the node fails, or has not answered within its usual p95 (hedging), the same
 * range of the other fragments is asked for, as few as the code needs, the local group first. If these are late too, all others are asked, and
 * the first ones that determine the range give it. The first good answer wins, and the others are cancelled.
 */
import { type Failed, type Outcome, ok, refused } from "@stamp/base";
import { type Kernel, laneUnit, type Plan, type Profile, repairPlan } from "@stamp/erasure";
import type { Timer, World } from "@stamp/ports";
import { ExtentFragments, toWire } from "@stamp/wire";
import type { CodedPlaces } from "../place.ts";
import { doubtsPlaces, type NodeHistories } from "./replica-race.ts";

/** A node that failed so often lately is not waited for: the others are asked at once beside it. */
const failuresMax = 3;

export interface FragmentRange {
  readonly extentId: number;
  readonly coded: CodedPlaces;
  readonly profile: Profile;
  readonly index: number;
  /** In the fragment's content. */
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

/** Places with which a read begins. */
export interface KnownPlaces {
  /** True: the places were looked up for an earlier read, and may be old. */
  readonly isCached: boolean;
  /** A node says that it has no such fragment: the places are old. */
  disproved(): void;
}

export interface FragmentRaceParts {
  readonly world: World;
  readonly histories: NodeHistories;
  /** Lanes for all fragments of any code; nobody else uses it between two awaits. */
  readonly kernel: Kernel;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  readonly places: KnownPlaces;
}

export class FragmentRace {
  readonly #range: FragmentRange;
  readonly #parts: FragmentRaceParts;
  readonly #arrived = new Map<number, Uint8Array>();
  readonly #waiting = new Map<number, AbortController>();
  readonly #failed = new Set<number>();
  #last: Failed = refused("unavailable", "noPlacement", "no fragment was asked for");
  /** `others`: the sources of a plan are asked beside the fragment's node. `all`: everybody is. */
  #stage: "one" | "others" | "all" = "one";
  #hedge: Timer | undefined;
  #isDoubted = false;
  #resolve: ((outcome: Outcome<Uint8Array>) => void) | undefined;

  constructor(range: FragmentRange, parts: FragmentRaceParts) {
    this.#range = range;
    this.#parts = parts;
  }

  run(): Promise<Outcome<Uint8Array>> {
    const { signal } = this.#parts;
    const cancelAll = (): void => this.#finish(refused("cancelled", "cancelled", "the reader went away"));
    return new Promise<Outcome<Uint8Array>>((resolve) => {
      this.#resolve = resolve;
      signal?.addEventListener("abort", cancelAll, { once: true });
      if (signal?.aborted) return cancelAll();
      const { index } = this.#range;
      this.#ask(index);
      if (this.#parts.histories.failures(this.#addressOf(index)) >= failuresMax) this.#widen();
      else this.#wait([index]);
    }).finally(() => signal?.removeEventListener("abort", cancelAll));
  }

  #addressOf(index: number): string {
    return this.#range.coded.fragments[index]?.address ?? "";
  }

  #finish(outcome: Outcome<Uint8Array>): void {
    this.#hedge?.cancel();
    const resolve = this.#resolve;
    this.#resolve = undefined;
    for (const controller of this.#waiting.values()) controller.abort();
    this.#waiting.clear();
    resolve?.(outcome);
  }

  /** Goes on to the next stage when the slowest of these is later than it usually is. */
  #wait(indices: readonly number[]): void {
    const { histories, world } = this.#parts;
    this.#hedge?.cancel();
    if (this.#resolve === undefined) return;
    if (this.#stage === "all") {
      this.#giveUpIfOver();
      return;
    }
    if (!world.rules.on("fragmentReadsHedged")) return;
    const hedgeMs = Math.max(...indices.map((index) => histories.hedgeMs(this.#addressOf(index), this.#range.lengthBytes)));
    this.#hedge = world.clock.after(hedgeMs, () => this.#widen());
  }

  #widen(): void {
    if (this.#resolve === undefined) return;
    this.#stage = this.#stage === "one" ? "others" : "all";
    const asked = this.#askOthers();
    if (this.#resolve !== undefined && asked.length > 0) this.#wait(asked);
    else this.#giveUpIfOver();
  }

  /** Asks for what is still needed, or for everything in the last stage. Returns whom. */
  #askOthers(): number[] {
    const { histories, world } = this.#parts;
    const { profile, index, coded } = this.#range;
    const known = (each: number): boolean => this.#arrived.has(each) || this.#waiting.has(each) || this.#failed.has(each);
    const rest = coded.fragments.map((_, each) => each).filter((each) => !known(each) && this.#addressOf(each) !== "");
    const ordered = histories.quickestFirst(rest, (each) => this.#addressOf(each), world.clock.monotonicMs());
    const waiting = [...this.#waiting.keys()].filter((each) => each !== index);
    const plan = repairPlan(profile, [index], [...this.#arrived.keys(), ...waiting, ...ordered]);
    const wanted = this.#stage === "all" ? ordered : (plan?.sources.filter((each) => !known(each)) ?? []);
    for (const each of wanted) this.#ask(each);
    return wanted;
  }

  #ask(index: number): void {
    const { histories, world, deadlineMs } = this.#parts;
    const { extentId, coded, offsetBytes, lengthBytes } = this.#range;
    const address = this.#addressOf(index);
    if (address === "") {
      this.#lost(index, refused("unavailable", "noPlacement", `the node of fragment ${index} of extent ${extentId} is not known`));
      return;
    }
    const controller = new AbortController();
    this.#waiting.set(index, controller);
    const startMs = world.clock.monotonicMs();
    const version = toWire(coded.fragments[index]?.version ?? 0);
    const request = { extentId: toWire(extentId), version, index, offsetBytes: toWire(offsetBytes), lengthBytes };
    const options = { timeoutMs: Math.max(1, deadlineMs - startMs), signal: controller.signal };
    void world.transport
      .client(address, ExtentFragments)
      .readFragment(request, options)
      .then((answer) => {
        if (this.#resolve === undefined) return;
        this.#waiting.delete(index);
        if (answer.ok && answer.value.payload.length === lengthBytes) {
          const nowMs = world.clock.monotonicMs();
          histories.succeeded(address, nowMs - startMs, nowMs, lengthBytes);
          this.#came(index, answer.value.payload);
          return;
        }
        histories.failed(address);
        if (!answer.ok && answer.failure.reason === "unknownExtent") this.#parts.places.disproved();
        this.#isDoubted ||= answer.ok || doubtsPlaces(answer.failure);
        this.#lost(index, answer.ok ? refused("internal", "outOfRange", `${address} gave ${answer.value.payload.length} bytes`) : answer);
      });
  }

  #came(index: number, bytes: Uint8Array): void {
    if (index === this.#range.index) {
      this.#finish(ok(bytes));
      return;
    }
    this.#arrived.set(index, bytes);
    const plan = repairPlan(this.#range.profile, [this.#range.index], [...this.#arrived.keys()]);
    if (plan === undefined) return;
    // A node whose answer the reader did not wait for is asked later next time.
    const slow = this.#waiting.has(this.#range.index) ? this.#addressOf(this.#range.index) : undefined;
    if (slow !== undefined) this.#parts.histories.failed(slow);
    this.#finish(ok(this.#decode(plan)));
  }

  #lost(index: number, why: Failed): void {
    this.#failed.add(index);
    this.#last = why;
    if (this.#parts.signal?.aborted) return;
    if (this.#stage === "one") this.#widen();
    else {
      this.#askOthers();
      this.#giveUpIfOver();
    }
  }

  /** Cached places that a node's refusal has put in doubt are looked up again, instead of waiting for nodes that are silent. */
  #giveUpIfOver(): void {
    if (this.#waiting.size === 0) {
      this.#finish(this.#last);
      return;
    }
    const { histories, places, world } = this.#parts;
    if (this.#stage !== "all" || !this.#isDoubted || !places.isCached) return;
    const silent = [...this.#waiting.keys()].map((index) => this.#addressOf(index));
    const { lengthBytes } = this.#range;
    this.#hedge?.cancel();
    this.#hedge = world.clock.after(Math.max(...silent.map((address) => histories.hedgeMs(address, lengthBytes))), () => {
      for (const address of silent) histories.failed(address);
      this.#finish(this.#last);
    });
  }

  /** Computes the range in steps of a lane, so that the memory of a reader has a bound. */
  #decode(plan: Plan): Uint8Array {
    const { kernel } = this.#parts;
    const { index, lengthBytes } = this.#range;
    const decoded = new Uint8Array(lengthBytes);
    for (let at = 0; at < lengthBytes; at += kernel.laneBytes) {
      const bytes = Math.min(kernel.laneBytes, lengthBytes - at);
      for (const source of plan.sources) kernel.lane(source).set((this.#arrived.get(source) as Uint8Array).subarray(at, at + bytes));
      kernel.run(plan, (each) => each, Math.ceil(bytes / laneUnit) * laneUnit);
      decoded.set(kernel.lane(index).subarray(0, bytes), at);
    }
    return decoded;
  }
}
