/**
 * One range of one fragment of a coded extent. Its node is asked. If the node fails, or has not answered within its usual p95 (hedging), the same
 * range of the other fragments is asked for, as few as the code needs, the local group first. If these are late too, all others are asked, and
 * the first ones that determine the range give it. The first good answer wins, and the others are cancelled. Hedges have a budget
 * (hedge-budget.ts); what a failed answer makes necessary has none.
 */
import { type Failed, type Outcome, ok, refused } from "@stamp/base";
import { type CodingPlan, type Kernel, laneUnit, type Profile, repairPlan } from "@stamp/erasure";
import type { Timer, World } from "@stamp/ports";
import { ExtentFragments, type ReadFragmentResponse, toWire } from "@stamp/wire";
import type { CodedPlaces } from "../place.ts";
import { patienceMax } from "./hedge-budget.ts";
import { doubtsPlaces, type NodeHistories } from "./replica-race.ts";

/** Number of recent failures from which on a node is not waited for: the others are asked at once beside it. */
const failuresMax = 3;
/** Longest wait of a read for its next hedge, in milliseconds; also bounded by a part of its remaining time. */
const patientMsMax = 400;
const patientPart = 1 / 3;
/** Least and most time after which a read is overdue, in milliseconds; in between `patienceMax` times the usual time. */
const overdueMs = { least: 400, most: 1_000 } as const;

export interface FragmentRange {
  readonly extentId: number;
  readonly coded: CodedPlaces;
  readonly profile: Profile;
  readonly sealedLengthBytes: number;
  readonly index: number;
  /** Position in the fragment's content. */
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

/** Places with which a read begins. */
export interface KnownPlaces {
  /** True if the places were looked up for an earlier read, and may be old. */
  readonly isCached: boolean;
  /** Notes that a node has no such fragment: the places are old. */
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
  /** Stage of the race. `others`: the sources of a plan are asked beside the fragment's node. `all`: everybody is. */
  #stage: "one" | "others" | "all" = "one";
  #stageSinceMs = 0;
  #isHedgedOverdue = false;
  #hedge: Timer | undefined;
  /** Number of hedges that the budget gave to this read. */
  #hedges = 0;
  /** Takes back that this read waits for a hedge. */
  #noLonger: (() => void) | undefined;
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
      const { histories } = this.#parts;
      histories.hedges.read();
      this.#stageSinceMs = this.#parts.world.clock.monotonicMs();
      this.#ask(index);
      if (histories.failures(this.#addressOf(index)) >= failuresMax) this.#hedgeOrWait([index]);
      else this.#wait([index]);
    }).finally(() => signal?.removeEventListener("abort", cancelAll));
  }

  #addressOf(index: number): string {
    return this.#range.coded.fragments[index]?.address ?? "";
  }

  /** Takes a hedge from the budget; false: the budget is used up. */
  #mayHedge(): boolean {
    const { histories, world } = this.#parts;
    if (!world.rules.on("hedgesBounded")) return true;
    const may = histories.hedges.take(world.clock.monotonicMs());
    if (may) this.#hedges += 1;
    return may;
  }

  #finish(outcome: Outcome<Uint8Array>): void {
    const { histories } = this.#parts;
    this.#hedge?.cancel();
    this.#noLonger?.();
    const resolve = this.#resolve;
    this.#resolve = undefined;
    if (this.#isHedgedOverdue) histories.hedges.endOverdue();
    this.#isHedgedOverdue = false;
    for (const controller of this.#waiting.values()) controller.abort();
    this.#waiting.clear();
    resolve?.(outcome);
  }

  /** Begins the next stage when the slowest of these nodes is later than usual. */
  #wait(indices: readonly number[]): void {
    const { histories, world } = this.#parts;
    this.#hedge?.cancel();
    if (this.#resolve === undefined) return;
    if (this.#stage === "all") {
      this.#giveUpIfOver();
      return;
    }
    if (!world.rules.on("fragmentReadsHedged")) return;
    const nowMs = world.clock.monotonicMs();
    const usualMs = this.#usualMs(indices);
    const longestMs = Math.min(patientMsMax, (this.#parts.deadlineMs - nowMs) * patientPart);
    const patience = world.rules.on("hedgesBounded") ? histories.hedges.patience(nowMs) : 1;
    const hedgeMs = Math.max(usualMs, Math.min(usualMs * patience, longestMs));
    this.#hedge = world.clock.after(hedgeMs, () => this.#hedgeOrWait(indices));
  }

  #usualMs(indices: readonly number[]): number {
    return Math.max(...indices.map((index) => this.#parts.histories.hedgeMs(this.#addressOf(index), this.#range.lengthBytes)));
  }

  /** True if the read has waited so long that it is hedged without a budget, as a few at once may be. */
  #isOverdue(indices: readonly number[]): boolean {
    const { histories, world } = this.#parts;
    const longMs = this.#stage === "one" ? Math.min(overdueMs.most, this.#usualMs(indices) * patienceMax) : 0;
    if (world.clock.monotonicMs() - this.#stageSinceMs < Math.max(overdueMs.least, longMs)) return false;
    if (!this.#isHedgedOverdue && !histories.hedges.beginOverdue()) return false;
    this.#isHedgedOverdue = true;
    return true;
  }

  #hedgeOrWait(indices: readonly number[]): void {
    this.#noLonger?.();
    if (this.#mayHedge() || this.#isOverdue(indices)) {
      this.#widen();
      return;
    }
    this.#wait(indices);
    this.#noLonger = this.#parts.histories.hedges.whenThereIs(() => this.#hedgeOrWait(indices));
  }

  #widen(): void {
    if (this.#resolve === undefined) return;
    this.#noLonger?.();
    this.#stage = this.#stage === "one" ? "others" : "all";
    this.#stageSinceMs = this.#parts.world.clock.monotonicMs();
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
    const range = { offsetBytes: toWire(offsetBytes), lengthBytes };
    const of = { profile: coded.profile, sealedLengthBytes: toWire(this.#range.sealedLengthBytes) };
    const { checksum } = coded;
    const fragmentChecksum = coded.fragments[index]?.checksum;
    const compared = { ...(checksum === undefined ? {} : { checksum }), ...(fragmentChecksum === undefined ? {} : { fragmentChecksum }) };
    const request = { extentId: toWire(extentId), version, index, ...range, ...of, ...compared };
    const options = { timeoutMs: Math.max(1, deadlineMs - startMs), signal: controller.signal };
    void world.transport
      .client(address, ExtentFragments)
      .readFragment(request, options)
      .then((answer) => {
        if (this.#resolve === undefined) return;
        this.#waiting.delete(index);
        if (answer.ok && this.#isWhole(answer.value)) {
          const nowMs = world.clock.monotonicMs();
          histories.succeeded(address, nowMs - startMs, nowMs, lengthBytes);
          this.#came(index, answer.value.payload);
          return;
        }
        histories.failed(address);
        if (!answer.ok && answer.failure.reason === "unknownExtent") this.#parts.places.disproved();
        this.#isDoubted ||= answer.ok || doubtsPlaces(answer.failure);
        this.#lost(index, answer.ok ? this.#notWhole(address, answer.value) : answer);
      });
  }

  /** True if the payload fits its checksum. Nodes of releases before 26 November 2026 send none. */
  #isWhole({ payload, payloadChecksum }: Pick<ReadFragmentResponse, "payload" | "payloadChecksum">): boolean {
    const { crc32c } = this.#parts.world.digest;
    return payload.length === this.#range.lengthBytes && (payloadChecksum === undefined || payloadChecksum === crc32c(payload));
  }

  #notWhole(address: string, { payload }: Pick<ReadFragmentResponse, "payload">): Failed {
    const { extentId, lengthBytes } = this.#range;
    return payload.length === lengthBytes
      ? refused("unavailable", "extentStale", `bytes of extent ${extentId} from ${address} are not what it sent`)
      : refused("internal", "outOfRange", `${address} gave ${payload.length} bytes`);
  }

  #came(index: number, bytes: Uint8Array): void {
    const { histories, world } = this.#parts;
    if (index === this.#range.index) {
      histories.hedges.lost(this.#hedges, world.clock.monotonicMs());
      this.#finish(ok(bytes));
      return;
    }
    this.#arrived.set(index, bytes);
    const plan = repairPlan(this.#range.profile, [this.#range.index], [...this.#arrived.keys()]);
    if (plan === undefined) {
      // The last one that was asked, and it was not enough.
      if (this.#waiting.size === 0 && this.#stage !== "all") this.#widen();
      else this.#giveUpIfOver();
      return;
    }
    // A node whose answer the reader did not wait for is asked later next time.
    const slow = this.#waiting.has(this.#range.index) ? this.#addressOf(this.#range.index) : undefined;
    if (slow !== undefined) histories.failed(slow);
    histories.hedges.won(this.#hedges);
    this.#finish(ok(this.#decode(plan)));
  }

  #lost(index: number, why: Failed): void {
    this.#failed.add(index);
    this.#last = why;
    if (this.#parts.signal?.aborted) return;
    // A node that has too much to do is no reason to ask many others, if hedges come to nothing: they may have too much to do as well.
    const isBusy = why.failure.code === "resourceExhausted";
    if (this.#stage === "one" && isBusy && !this.#mayHedge()) this.#finish(why);
    else if (this.#stage === "one") this.#widen();
    else {
      this.#askOthers();
      this.#giveUpIfOver();
    }
  }

  /** Ends the race if it is lost. Places that a refusal put in doubt are looked up again instead of waiting for silent nodes. */
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
  #decode(plan: CodingPlan): Uint8Array {
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
