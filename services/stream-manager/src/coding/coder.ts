/**
 * Drives attempts: an extent becomes fragments, a lost fragment is made anew, fragments become replicas again (docs/design/erasure-coding.md "Protocol"). An attempt is recorded
 * before a node is told anything. What is found recorded, also by a new leader, is gone on with or taken back.
 *
 * Invariants:
 * - The commit of a coding follows a comparison of what was stored with the extent's checksum and the code (rule `fragmentsVerified`).
 * - No replica and no fragment is deleted here: they are recorded as removed, and the garbage collection deletes them after its grace.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { neededLevels, ok, refused } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import type { Client } from "@stamp/ports";
import { sleep, Turns } from "@stamp/ports";
import type { AttemptRecord, ExtentRecord, ReplicaPlace } from "@stamp/stream";
import {
  assessFragments,
  type FragmentAssessment,
  type FragmentHealth,
  type FragmentPlace,
  place,
  placeFragment,
  placeFragments,
  planAbandonAttempt,
  planBeginCoding,
  planBeginDecoding,
  planBeginFragmentRepair,
  planFinishCoding,
  planFinishDecoding,
  planFinishFragmentRepair,
  targetsOf,
} from "@stamp/stream";
import { ExtentFragments, fromWire, toWire } from "@stamp/wire";
import type { StampLevel } from "../feature-level/stamp-level.ts";
import { addTo } from "../repair/blocked-copies.ts";
import type { RepairPace } from "../repair/repair-pace.ts";
import type { Completer } from "../seal/completer.ts";
import { Rounds } from "../term/rounds.ts";
import type { Term } from "../term/term.ts";
import { endIfStale } from "../term/term.ts";
import { bytesOfFragment, bytesToRepair, codedOnWire } from "./coded-extent.ts";
import { FragmentProgress } from "./fragment-progress.ts";
import { FragmentSurvey } from "./fragment-survey.ts";
import type { HeldFragments } from "./held-fragments.ts";

const triesMax = 3;
const tryPauseMs = 500;
/** An attempt that makes so much progress is not given up. */
const bytesPerSecondMin = 2 * 1024 * 1024;
/** Attempts that are looked at in one tick; the others wait for the next one. */
const looksPerTickMax = 1_000;
const scanEveryMs = 10_000;
const scanTroubledEveryMs = 2_000;

type Coding = Extract<AttemptRecord, { readonly kind: "code" }>;
type Repair = Extract<AttemptRecord, { readonly kind: "repair" }>;
type Decoding = Extract<AttemptRecord, { readonly kind: "decode" }>;

const finishes = { code: planFinishCoding, repair: planFinishFragmentRepair, decode: planFinishDecoding } as const;

export type AttemptOver = (id: ExtentId, kind: AttemptRecord["kind"], why: string | undefined) => void;

interface CoderParts {
  readonly completer: Completer;
  readonly held: HeldFragments;
  readonly pace: RepairPace;
  /** Called when an attempt has ended; `why`, if it was taken back. */
  readonly over: AttemptOver;
}

/** Why no extent becomes fragments at the level of the stamp; undefined: extents may. What is stored as fragments already is read and repaired at every level. */
export const whyCodingWaits = (level: Pick<StampLevel, "allows" | "level">): string | undefined =>
  level.allows(neededLevels.fragments)
    ? undefined
    : `fragments need feature level ${neededLevels.fragments}, and the stamp has level ${level.level}: ./stamp upgrade status`;

export class Coder {
  readonly #term: Term;
  readonly #completer: Completer;
  readonly #held: HeldFragments;
  readonly #over: AttemptOver;
  readonly #pace: RepairPace;
  readonly #progress: FragmentProgress;
  readonly #attempts: Rounds<ExtentId>;
  readonly #running = new Set<ExtentId>();
  /** Extents whose fragment can't be made anew now, and why; looked at again by the next scan. */
  readonly #blocked = new Map<ExtentId, string>();
  /** Extents with a lost fragment, by the number of losses that are left. */
  #waiting: ReturnType<FragmentSurvey["waiting"]> = [];
  /** The last whole look at all coded extents. */
  #survey = new FragmentSurvey();
  #scanning = false;
  #waking = false;
  #nextScanMs = 0;
  #codedCount = 0;
  #repairedCount = 0;

  constructor(term: Term, { completer, held, pace, over }: CoderParts) {
    this.#over = over;
    this.#pace = pace;
    this.#term = term;
    this.#completer = completer;
    this.#held = held;
    this.#progress = new FragmentProgress(term.world.clock, term.config.repairBytesPerSecond);
    this.#attempts = new Rounds(() => term.state.attempts(), looksPerTickMax);
  }

  /** For the status. Counts of what was done are of this term. */
  get facts() {
    return {
      coded: this.#term.state.codedCount,
      attempts: this.#running.size,
      codedSinceItLeads: this.#codedCount,
      fragmentsMadeAnew: this.#repairedCount,
      fragmentsWaiting: this.#waiting.length + this.#blocked.size,
      unreachable: this.#survey.unreachable,
      inGrace: this.#survey.inGrace,
      endangered: this.#survey.endangered,
      blocked: [...new Set(this.#blocked.values())],
      strays: this.#held.strays,
    };
  }

  /** True if a lost fragment waits to be made anew and can be: full redundancy comes before saved space. */
  get mustRepair(): boolean {
    return this.#waiting.length > 0;
  }

  /** Coded extents that miss fragments, by the number of losses that they still bear, the fewest first. */
  get lossesLeft() {
    return this.#survey.lossesLeft;
  }

  /** For the status of repairs. */
  repairStatus() {
    const { inGrace, unreachable } = this.#survey;
    const repairing = [...this.#term.state.attempts()].filter((id) => this.#term.state.extent(id)?.attempt?.kind === "repair");
    return {
      fragmentsWaiting: toWire(this.#waiting.length + this.#blocked.size + repairing.length),
      fragmentsInGrace: toWire(inGrace),
      fragmentsUnreachable: toWire(unreachable),
      fragmentsEndangered: toWire(this.#survey.endangered),
      fragmentsDone: toWire(this.#repairedCount),
      fragmentRepairsRunning: repairing.length,
      ...this.#progress.status(),
    };
  }

  /** Why fragments can't be made again now, with the number of extents. */
  get blockedReasons(): ReadonlyMap<string, number> {
    const reasons = new Map<string, number>();
    for (const why of this.#blocked.values()) addTo(reasons, why, 1);
    return reasons;
  }

  /** Why fragments of this node can't be made elsewhere now, with the number of extents. */
  blockedOn(nodeId: string): ReadonlyMap<string, number> {
    const reasons = new Map<string, number>();
    for (const [id, why] of this.#blocked)
      if (this.#term.state.extent(id)?.coded?.fragments.some((place) => place.nodeId === nodeId)) addTo(reasons, why, 1);
    return reasons;
  }

  /** True if the fragment is there and intact, as far as is known, and its node is up with that disk. */
  isIntact(id: ExtentId, place: FragmentPlace): boolean {
    return this.#term.nodes.reachable(place) && !this.#held.isLost(id, place);
  }

  /** Called every tick. */
  tick(): void {
    for (const id of this.#attempts.next()) this.#drive(id);
    if (!this.#scanning && this.#term.world.clock.monotonicMs() >= this.#nextScanMs) void this.#scan();
    this.#repairMost();
  }

  /** Looks at all coded extents soon: something changed for many of them. */
  rescan(): void {
    this.#nextScanMs = 0;
  }

  /** Begins to code an extent. Resolves when the attempt is recorded; what becomes of it is in the extent's record. */
  async code(id: ExtentId, profileName: string): Promise<Outcome<void>> {
    const { ledger, nodes, world } = this.#term;
    const profile = profileOf(profileName);
    if (profile === undefined) return refused("invalidArgument", "badRequest", `there is no code ${profileName}`);
    const why = whyCodingWaits(this.#term.level);
    if (why !== undefined) return refused("failedPrecondition", "conflict", why);
    const distrusted = nodes.distrusted();
    const usable = nodes.placeable().filter(({ nodeId }) => !distrusted.has(nodeId));
    const targets = placeFragments(profile, usable, () => world.random.float());
    if (typeof targets === "string") return refused("resourceExhausted", "noPlacement", targets);
    const begun = await ledger.commit((state) => planBeginCoding(state, id, profile.name, targets, world.rules));
    if (begun.ok) this.#drive(id);
    return begun;
  }

  /** Begins to make replicas of a coded extent. Resolves when the attempt is recorded. */
  async decode(id: ExtentId): Promise<Outcome<void>> {
    const { config, ledger, nodes, world } = this.#term;
    const { copies, minCopies } = config;
    const request = { copies, minCopies, avoid: nodes.distrusted(), random: () => world.random.float() };
    const targets = place({ ...request, nodes: nodes.placeable() });
    if (targets.length < minCopies) return refused("resourceExhausted", "noPlacement", `${targets.length} nodes take replicas now`);
    const begun = await ledger.commit((state) => planBeginDecoding(state, id, targets, world.rules));
    if (begun.ok) this.#drive(id);
    return begun;
  }

  #drive(id: ExtentId): void {
    const attempt = this.#term.state.extent(id)?.attempt;
    if (attempt === undefined || this.#running.has(id) || this.#term.ended.aborted) return;
    this.#running.add(id);
    void this.#go(id, attempt).finally(() => {
      this.#running.delete(id);
      this.#repairMost();
    });
  }

  async #go(id: ExtentId, attempt: AttemptRecord): Promise<void> {
    const { ended, ledger, nodes, world } = this.#term;
    let why = "this release does not know how";
    for (let tried = 0; tried < triesMax && !ended.aborted; tried++) {
      const extent = this.#term.state.extent(id);
      if (extent?.phase !== "sealed" || extent.attempt?.version !== attempt.version) return;
      const away = targetsOf(attempt).find((target) => !nodes.reachable(target));
      if (away !== undefined && !nodes.settling) {
        why = `node ${away.nodeId} can't be reached`;
        break;
      }
      const done =
        away === undefined ? await this.#try(extent, attempt, tried) : refused("unavailable", "notReady", "nodes are not heard of yet");
      if (ended.aborted) return;
      if (done.ok) return this.#finish(extent, attempt, done.value);
      why = done.failure.message;
      // Files of this version are there, and are not what they should be: only another attempt can make others.
      if (done.failure.reason === "damaged" || done.failure.reason === "conflict") break;
      await sleep(world.clock, tryPauseMs, ended);
    }
    if (ended.aborted) return;
    world.logger.warn("an attempt is taken back", { extent: id, kind: attempt.kind, version: attempt.version, why });
    if (attempt.kind === "repair") this.#blocked.set(id, why);
    await ledger.commit((state) => planAbandonAttempt(state, id, attempt.version));
    this.#over(id, attempt.kind, why);
  }

  /** `bytesRead`: by the repair of a fragment. */
  async #finish(extent: ExtentRecord, attempt: AttemptRecord, bytesRead: number): Promise<void> {
    const { ledger, world } = this.#term;
    const { id } = extent;
    const finished = await ledger.commit((state) => finishes[attempt.kind](state, id, attempt.version));
    if (!finished.ok) return;
    if (attempt.kind === "code") this.#codedCount += 1;
    if (attempt.kind === "repair") {
      this.#repairedCount += 1;
      this.#progress.made(bytesOfFragment(extent), bytesRead);
    }
    this.#held.made(id, attempt);
    this.#over(id, attempt.kind, undefined);
    world.logger.info("attempt finished", { extent: id, kind: attempt.kind, version: attempt.version });
  }

  /** Returns the bytes that the repair of a fragment read; 0 of the other kinds. */
  async #try(extent: ExtentRecord, attempt: AttemptRecord, tried: number): Promise<Outcome<number>> {
    if (attempt.kind === "repair") return this.#repair(extent, attempt);
    const done = await (attempt.kind === "code" ? this.#code(extent, attempt, tried) : this.#decode(extent, attempt));
    return done.ok ? ok(0) : done;
  }

  async #code(extent: ExtentRecord, attempt: Coding, tried: number): Promise<Outcome<unknown>> {
    const { nodes, number, stampId, world } = this.#term;
    const sources = extent.replicas.filter((replica) => this.#completer.complete(extent, replica) && nodes.reachable(replica));
    const source = sources[tried % Math.max(1, sources.length)];
    if (source === undefined) return refused("unavailable", "noPlacement", "no intact replica can be reached");
    const targets = attempt.targets.map((target, index) => this.#at(target, index, attempt.version));
    const coded = codedOnWire(extent, attempt.profile);
    const made = await this.#call(source, extent, (node, timeoutMs) =>
      node.makeFragments({ smTerm: toWire(number), extent: coded, targets, stampId, diskId: source.diskId }, { timeoutMs }),
    );
    if (!made.ok && made.failure.reason === "damaged") {
      // The replica, not a fragment: it is made anew, and that takes the attempt back.
      this.#completer.recheck(extent.id, source.nodeId);
      return refused("unavailable", "extentStale", made.failure.message);
    }
    // With `conflict` all may be there since an earlier try whose answer was lost.
    if (!made.ok && made.failure.reason !== "conflict") return made;
    if (!world.rules.on("fragmentsVerified")) return ok();
    // Another node than the maker, so that not one node's memory is compared with itself.
    const verifier = attempt.targets.find((target) => target.nodeId !== source.nodeId) as ReplicaPlace;
    const verified = await this.#call(verifier, extent, (node, timeoutMs) =>
      node.verifyFragments({ smTerm: toWire(number), extent: coded, fragments: targets }, { timeoutMs }),
    );
    return !verified.ok && !made.ok ? made : verified;
  }

  async #repair(extent: ExtentRecord, attempt: Repair): Promise<Outcome<number>> {
    const { number, stampId } = this.#term;
    const { coded } = extent;
    if (coded === undefined) return refused("aborted", "conflict", "the extent is not coded");
    const sources = this.#intact(extent.id, coded.fragments).filter(({ index }) => index !== attempt.index);
    const target = this.#at(attempt.target, attempt.index, attempt.version);
    const request = { smTerm: toWire(number), extent: codedOnWire(extent, coded.profile), target, sources, stampId };
    const made = await this.#call(attempt.target, extent, (node, timeoutMs) => node.repairFragment(request, { timeoutMs }));
    return made.ok ? ok(fromWire(made.value.bytesRead)) : made;
  }

  async #decode(extent: ExtentRecord, attempt: Decoding): Promise<Outcome<unknown>> {
    const { number, stampId } = this.#term;
    const { coded, id, ownerEpoch } = extent;
    if (coded === undefined) return refused("aborted", "conflict", "the extent is not coded");
    const request = {
      smTerm: toWire(number),
      extentId: toWire(id),
      version: toWire(attempt.version),
      ownerEpoch: toWire(ownerEpoch),
      extent: codedOnWire(extent, coded.profile),
      fragments: this.#intact(id, coded.fragments),
      stampId,
    };
    const made = await Promise.all(
      attempt.targets.map((target) =>
        this.#call(target, extent, (node, timeoutMs) => node.decodeExtent({ ...request, diskId: target.diskId }, { timeoutMs })),
      ),
    );
    return made.find((each) => !each.ok) ?? ok();
  }

  /** Fragments that can be read now, as far as is known. */
  #intact(id: ExtentId, fragments: readonly FragmentPlace[]) {
    return fragments.flatMap((place, index) => (this.isIntact(id, place) ? [this.#at(place, index, place.version)] : []));
  }

  async #call<T>(
    place: ReplicaPlace,
    extent: ExtentRecord,
    work: (node: Client<typeof ExtentFragments>, timeoutMs: number) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { config, nodes, world } = this.#term;
    const address = nodes.address(place.nodeId);
    if (address === undefined) return refused("unavailable", "noPlacement", `the address of node ${place.nodeId} is not known`);
    const timeoutMs = config.copyTimeoutMs + ((extent.sealedLengthBytes ?? 0) * 1_000) / bytesPerSecondMin;
    const answer = await work(world.transport.client(address, ExtentFragments), timeoutMs);
    if (!answer.ok) endIfStale(this.#term, answer.failure);
    return answer;
  }

  #at({ nodeId, diskId }: ReplicaPlace, index: number, version: number) {
    return { index, version: toWire(version), address: this.#term.nodes.address(nodeId) ?? "", diskId };
  }

  async #scan(): Promise<void> {
    const { ended, nodes, state, world } = this.#term;
    this.#scanning = true;
    this.#blocked.clear();
    const survey = new FragmentSurvey();
    const turns = new Turns(world.clock);
    if (state.codedCount > 0) {
      for (const extent of state.extents()) {
        survey.add(extent, this.#assess(extent), (place) => this.#healthOf(extent.id, place));
        if (turns.over) await turns.next();
        if (ended.aborted) return;
      }
    }
    this.#waiting = survey.waiting();
    this.#survey = survey;
    this.#progress.looked(survey.toMake);
    const troubled = this.#waiting.length > 0 || [...state.nodes()].some((node) => node.duty === "draining" || !nodes.up(node.nodeId));
    this.#nextScanMs = world.clock.monotonicMs() + (troubled ? scanTroubledEveryMs : scanEveryMs);
    this.#scanning = false;
    this.#repairMost();
  }

  /** Undefined: it is not coded, or an attempt is under way. */
  #assess(extent: ExtentRecord): FragmentAssessment | undefined {
    const profile = extent.coded && profileOf(extent.coded.profile);
    if (extent.phase !== "sealed" || extent.coded === undefined || profile === undefined || extent.attempt !== undefined) return undefined;
    return assessFragments(extent.coded, profile, (place) => this.#healthOf(extent.id, place));
  }

  #healthOf(id: ExtentId, place: FragmentPlace): FragmentHealth {
    const { config, nodes, state } = this.#term;
    return {
      live: this.isIntact(id, place),
      lost: this.#held.isLost(id, place) || nodes.gone(place, config.repairAfterMs),
      leaving: state.node(place.nodeId)?.duty === "draining",
    };
  }

  /** Begins repairs, of the extents with the fewest losses left first, as many at a time as copies of replicas. */
  #repairMost(): void {
    const { config, ended, state } = this.#term;
    while (this.#waiting.length > 0 && this.#repairing < config.repairCopiesMax && !ended.aborted) {
      const { waitMs } = this.#pace;
      if (waitMs > 0) {
        this.#wakeAfter(waitMs);
        return;
      }
      const { id } = this.#waiting.pop() as { readonly id: ExtentId };
      const extent = state.extent(id);
      const assessment = extent && this.#assess(extent);
      if (extent === undefined || assessment?.kind !== "repair" || this.#running.has(id)) continue;
      this.#pace.spend(bytesToRepair(extent, assessment.index, (place) => this.isIntact(id, place)));
      this.#running.add(id);
      void this.#begin(extent, assessment.index).finally(() => {
        this.#running.delete(id);
        this.#drive(id);
      });
    }
  }

  /** Number of repairs that run or begin: codings and decodings take no place of theirs. */
  get #repairing(): number {
    const kindOf = (id: ExtentId): string => this.#term.state.extent(id)?.attempt?.kind ?? "repair";
    return [...this.#running].filter((id) => kindOf(id) === "repair").length;
  }

  #wakeAfter(delayMs: number): void {
    if (this.#waking) return;
    this.#waking = true;
    this.#term.world.clock.after(delayMs, () => {
      this.#waking = false;
      this.#repairMost();
    });
  }

  async #begin(extent: ExtentRecord, index: number): Promise<void> {
    const { ledger, nodes, state, world } = this.#term;
    const { coded, id } = extent;
    const profile = profileOf(coded?.profile ?? "") as Profile;
    const others = (coded?.fragments ?? []).filter((_, other) => other !== index);
    const distrusted = nodes.distrusted();
    const isFree = (nodeId: string): boolean => !distrusted.has(nodeId) && !others.some((place) => place.nodeId === nodeId);
    const free = nodes.placeable().filter(({ nodeId }) => isFree(nodeId));
    const used = others.map((place: FragmentPlace) => state.node(place.nodeId)?.faultDomain ?? place.nodeId);
    const target = placeFragment(profile, free, used, () => world.random.float());
    if (target === undefined) {
      this.#blocked.set(id, `no node can take a fragment (${free.length} have none of the extent and take some)`);
      return;
    }
    await ledger.commit((current) => planBeginFragmentRepair(current, id, index, target, world.rules));
  }
}
