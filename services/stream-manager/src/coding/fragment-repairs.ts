/**
 * Finds lost fragments of coded extents and begins to make them anew, those of the extents with the fewest losses left first, as many at a time as
 * copies of replicas and not faster than the rate that both share.
 *
 * Invariants:
 * - A repair that failed rests, and waits apart from those that did not fail. Both begin in turn, and repairs of extents that failed before take at
 *   most half of the places: repairs that fail each time leave the rest of the rate and of the places to the others.
 * - Only a repair that begins takes from the rate: one that no node can take leaves the rate to the others.
 * - When nothing else is to be made anew, a fragment that shares its fault domain with others is moved to a domain with fewer, one at a time (rule
 *   `fragmentsApart`). Extents get such fragments while hosts are away.
 */
import type { ExtentId } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { Turns } from "@stamp/ports";
import type { ExtentRecord, FragmentAssessment, FragmentHealth, FragmentPlace, PlacementNode } from "@stamp/stream";
import { assessFragments, crowdedFragment, placeFragment, planBeginFragmentRepair } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import { addTo } from "../repair/blocked-copies.ts";
import type { RepairPace } from "../repair/repair-pace.ts";
import type { Term } from "../term/term.ts";
import type { AttemptSteps } from "./attempt-steps.ts";
import { bytesOfFragment, bytesToRepair } from "./coded-extent.ts";
import { FragmentProgress } from "./fragment-progress.ts";
import { FragmentSurvey } from "./fragment-survey.ts";
import type { HeldFragments } from "./held-fragments.ts";
import { RepairRests } from "./repair-rests.ts";

const scanEveryMs = 10_000;
const scanTroubledEveryMs = 2_000;

/** Number of reasons that are shown; a repair that failed has one of its own. */
const reasonsMax = 50;

type Waiting = ReturnType<FragmentSurvey["waiting"]>;

interface Parts {
  readonly steps: AttemptSteps;
  readonly held: HeldFragments;
  readonly pace: RepairPace;
  /** Extents with an attempt that runs or begins. */
  readonly running: Set<ExtentId>;
  /** Goes on with the attempt of an extent. */
  readonly drive: (id: ExtentId) => void;
  /** True while lost replicas wait to be made anew and can be. */
  readonly copiesWait: () => boolean;
}

export class FragmentRepairs {
  readonly #term: Term;
  readonly #parts: Parts;
  readonly #progress: FragmentProgress;
  /** Extents whose fragment can't be made anew now, and why; looked at again by the next scan. */
  readonly #blocked = new Map<ExtentId, string>();
  readonly #rests: RepairRests;
  /** Extents with a lost fragment, by the number of losses that are left. */
  #waiting: Waiting = [];
  /** Extents with a lost fragment whose last repair failed, in the same order. */
  #failedBefore: Waiting = [];
  /** True if the next repair to begin is one of `#failedBefore`, unless none of these can begin. */
  #isTurnOfFailed = false;
  /** Extents whose repair under way needs good chunks of damaged fragments. */
  readonly #uncertain = new Set<ExtentId>();
  /** Extents with several fragments in one fault domain while another one has room. */
  #crowded: ExtentId[] = [];
  /** The last whole look at all coded extents. */
  #survey = new FragmentSurvey();
  #scanning = false;
  #waking = false;
  #nextScanMs = 0;
  #madeCount = 0;
  #movedCount = 0;
  readonly #moving = new Set<ExtentId>();

  constructor(term: Term, parts: Parts) {
    this.#term = term;
    this.#parts = parts;
    this.#rests = new RepairRests(term.world.clock);
    this.#progress = new FragmentProgress(term.world.clock, term.config.repairBytesPerSecond);
  }

  /** Facts about repairs of fragments, for the status. Counts are of this term. */
  get facts() {
    return {
      fragmentsMadeAnew: this.#madeCount,
      fragmentsMoved: this.#movedCount,
      fragmentsWaiting: this.#waitingCount,
      crowded: this.#crowded.length + this.#moving.size,
      unreachable: this.#survey.unreachable,
      inGrace: this.#survey.inGrace,
      endangered: this.#survey.endangered,
      blocked: [...this.blockedReasons.keys()],
    };
  }

  get #waitingCount(): number {
    return this.#waiting.length + this.#failedBefore.length + this.#blocked.size;
  }

  /**
   * True if a lost fragment waits to be made anew and can be: full redundancy comes before saved space. One whose last repair failed may fail each
   * time, and saved space does not wait for it.
   */
  get mustRepair(): boolean {
    return this.#waiting.length > 0;
  }

  /** Number of coded extents that miss fragments, by the losses that they still bear, fewest first. */
  get lossesLeft() {
    return this.#survey.lossesLeft;
  }

  /** Returns the facts for the status of repairs. */
  repairStatus() {
    const { inGrace, unreachable } = this.#survey;
    const repairing = [...this.#term.state.attempts()].filter(
      (id) => this.#term.state.extent(id)?.attempt?.kind === "repair" && !this.#moving.has(id),
    );
    return {
      fragmentsWaiting: toWire(this.#waitingCount + repairing.length),
      fragmentsInGrace: toWire(inGrace),
      fragmentsUnreachable: toWire(unreachable),
      fragmentsEndangered: toWire(this.#survey.endangered),
      fragmentsDone: toWire(this.#madeCount),
      fragmentRepairsRunning: repairing.length,
      ...this.#progress.status(),
    };
  }

  /** Returns why fragments can't be made again now, with the number of extents. */
  get blockedReasons(): ReadonlyMap<string, number> {
    return this.#reasonsOf(() => true);
  }

  /** Returns why fragments of this node can't be made elsewhere now, with the number of extents. */
  blockedOn(nodeId: string): ReadonlyMap<string, number> {
    return this.#reasonsOf((id) => this.#term.state.extent(id)?.coded?.fragments.some((place) => place.nodeId === nodeId) ?? false);
  }

  #reasonsOf(isWanted: (id: ExtentId) => boolean): Map<string, number> {
    const reasons = new Map<string, number>();
    for (const [id, why] of this.#blocked)
      if (isWanted(id)) addTo(reasons, reasons.has(why) || reasons.size < reasonsMax ? why : "other reasons", 1);
    return reasons;
  }

  /** Takes the next step. Called every tick. */
  tick(): void {
    if (!this.#scanning && this.#term.world.clock.monotonicMs() >= this.#nextScanMs) void this.#scan();
    this.start();
  }

  /** Looks at all coded extents soon: something changed for many of them. */
  rescan(): void {
    this.#nextScanMs = 0;
  }

  /** Notes that an attempt at making a fragment anew was taken back. */
  failed(id: ExtentId, why: string): void {
    this.#rests.failed(id, why, this.#uncertain.delete(id));
    // A scan after the rest finds a crowded fragment again; nothing of it is missing.
    if (this.#moving.delete(id)) return;
    this.#blocked.set(id, why);
  }

  /** Notes that an attempt has ended, however: the extent may have been dropped meanwhile, or the commit refused. */
  over(id: ExtentId): void {
    this.#moving.delete(id);
  }

  /** Notes that a fragment was made anew, of this many bytes that were read. */
  made(extent: ExtentRecord, bytesRead: number): void {
    this.#uncertain.delete(extent.id);
    this.#rests.forget(extent.id);
    if (this.#moving.delete(extent.id)) {
      this.#movedCount += 1;
      return;
    }
    this.#madeCount += 1;
    this.#progress.made(bytesOfFragment(extent), bytesRead);
  }

  async #scan(): Promise<void> {
    const { ended, nodes, state, world } = this.#term;
    this.#scanning = true;
    this.#blocked.clear();
    const survey = new FragmentSurvey();
    const takers = this.takers();
    const crowded: ExtentId[] = [];
    const turns = new Turns(world.clock);
    if (state.codedCount > 0) {
      for (const extent of state.extents()) {
        const assessment = this.#assess(extent);
        survey.add(extent, assessment, (place) => this.#healthOf(extent.id, place));
        if (assessment?.kind === "fine" && this.#crowdedOf(extent, takers) !== undefined) crowded.push(extent.id);
        if (turns.over) await turns.next();
        if (ended.aborted) return;
      }
    }
    const waiting = survey.waiting();
    this.#waiting = waiting.filter(({ id }) => !this.#rests.hasFailed(id));
    this.#failedBefore = waiting.filter(({ id }) => this.#rests.hasFailed(id));
    this.#crowded = crowded;
    this.#survey = survey;
    this.#progress.looked(survey.toMake);
    const troubled = waiting.length > 0 || [...state.nodes()].some((node) => node.duty === "draining" || !nodes.up(node.nodeId));
    this.#nextScanMs = world.clock.monotonicMs() + (troubled ? scanTroubledEveryMs : scanEveryMs);
    this.#scanning = false;
    this.start();
  }

  /** Returns the needs of a coded extent; undefined: it is not coded, or an attempt is under way. */
  #assess(extent: ExtentRecord): FragmentAssessment | undefined {
    const profile = extent.coded && profileOf(extent.coded.profile);
    if (extent.phase !== "sealed" || extent.coded === undefined || profile === undefined || extent.attempt !== undefined) return undefined;
    return assessFragments(extent.coded, profile, (place) => this.#healthOf(extent.id, place));
  }

  #healthOf(id: ExtentId, place: FragmentPlace): FragmentHealth {
    const { config, nodes, state } = this.#term;
    return {
      live: this.#parts.steps.isIntact(id, place),
      readable: this.#parts.steps.isDamaged(id, place),
      lost: this.#parts.held.isLost(id, place) || nodes.gone(place, config.repairAfterMs),
      leaving: state.node(place.nodeId)?.duty === "draining",
    };
  }

  /** Begins repairs as far as the number and the rate allow; what can't be made anew now takes nothing of the rate. */
  start(): void {
    const { config, ended, state, world } = this.#term;
    const { pace, running, steps } = this.#parts;
    // Most of what waits may be whole again: a node with a fragment of every extent came back.
    const turns = new Turns(world.clock);
    for (let next = this.#next(); next !== undefined && this.#repairing < config.repairCopiesMax && !ended.aborted; next = this.#next()) {
      const waitMs = turns.over ? 1 : pace.waitMs("fragments");
      if (waitMs > 0) {
        this.#wakeAfter(waitMs);
        return;
      }
      const { id } = next.pop() as { readonly id: ExtentId };
      const extent = state.extent(id);
      const assessment = extent && this.#assess(extent);
      if (extent === undefined || assessment?.kind !== "repair" || running.has(id)) continue;
      const target = this.#rests.why(id, assessment.isUncertain) ?? this.#target(extent, assessment.index);
      if (typeof target === "string") {
        this.#blocked.set(id, target);
        continue;
      }
      pace.spend(
        "fragments",
        bytesToRepair(extent, assessment.index, (place) => steps.isIntact(id, place)),
      );
      if (assessment.isUncertain) this.#uncertain.add(id);
      this.#isTurnOfFailed = next === this.#waiting;
      this.#begin(id, assessment.index, target);
    }
    this.#spread();
  }

  /** Returns the queue that the next repair comes from; undefined: none can begin. */
  #next(): Waiting | undefined {
    const placesMax = Math.max(1, Math.floor(this.#term.config.repairCopiesMax / 2));
    const failed = [...this.#parts.running].filter((id) => this.#rests.hasFailed(id)).length;
    const isFailed = this.#failedBefore.length > 0 && failed < placesMax && (this.#isTurnOfFailed || this.#waiting.length === 0);
    if (isFailed) return this.#failedBefore;
    return this.#waiting.length > 0 ? this.#waiting : undefined;
  }

  /** Begins to move one crowded fragment, when nothing is to be made anew and none is being moved. */
  #spread(): void {
    const { ended, state, world } = this.#term;
    const { copiesWait, pace, running, steps } = this.#parts;
    const turns = new Turns(world.clock);
    while (
      this.#crowded.length > 0 &&
      this.#waiting.length + this.#failedBefore.length === 0 &&
      this.#repairing === 0 &&
      !copiesWait() &&
      !ended.aborted
    ) {
      const waitMs = turns.over ? 1 : pace.waitMs("fragments");
      if (waitMs > 0) {
        this.#wakeAfter(waitMs);
        return;
      }
      const id = this.#crowded.pop() as ExtentId;
      const extent = state.extent(id);
      if (extent === undefined || this.#assess(extent)?.kind !== "fine" || running.has(id)) continue;
      if (this.#rests.why(id, false) !== undefined) continue;
      const index = this.#crowdedOf(extent, this.takers());
      const target = index === undefined ? "" : this.#target(extent, index);
      if (index === undefined || typeof target === "string") continue;
      pace.spend(
        "fragments",
        bytesToRepair(extent, index, (place) => steps.isIntact(id, place)),
      );
      this.#moving.add(id);
      this.#begin(id, index, target);
    }
  }

  /** Returns the index of a fragment that shares its fault domain while a node of another one can take it; undefined if there is none. */
  #crowdedOf({ coded }: ExtentRecord, takers: readonly PlacementNode[]): number | undefined {
    if (coded === undefined || !this.#term.world.rules.on("fragmentsApart")) return undefined;
    return crowdedFragment(coded.fragments, (nodeId) => this.#domainOf(nodeId), takers);
  }

  /** Number of repairs that run or begin: codings and decodings take no place of theirs. */
  get #repairing(): number {
    const kindOf = (id: ExtentId): string => this.#term.state.extent(id)?.attempt?.kind ?? "repair";
    return [...this.#parts.running].filter((id) => kindOf(id) === "repair").length;
  }

  #wakeAfter(delayMs: number): void {
    if (this.#waking) return;
    this.#waking = true;
    this.#term.world.clock.after(delayMs, () => {
      this.#waking = false;
      this.start();
    });
  }

  #begin(id: ExtentId, index: number, target: PlacementNode): void {
    const { ledger, world } = this.#term;
    const { drive, running } = this.#parts;
    running.add(id);
    void ledger
      .commit((current) => {
        const extent = current.extent(id);
        const heldVersion = extent === undefined ? 0 : this.#parts.held.heldVersion(extent);
        return planBeginFragmentRepair(current, id, index, target, world.rules, heldVersion);
      })
      .then((begun) => {
        running.delete(id);
        if (begun.ok) drive(id);
        else {
          this.#moving.delete(id);
          this.#uncertain.delete(id);
        }
      });
  }

  /** Returns the node that gets a fragment anew, or why there is none. */
  #target({ coded }: ExtentRecord, index: number): PlacementNode | string {
    const { world } = this.#term;
    const profile = profileOf(coded?.profile ?? "") as Profile;
    const others = (coded?.fragments ?? []).filter((_, other) => other !== index);
    const free = this.takers().filter(({ nodeId }) => !others.some((place) => place.nodeId === nodeId));
    const used = others.map((place) => this.#domainOf(place.nodeId));
    const target = placeFragment(profile, free, used, () => world.random.float());
    return target ?? `no node can take a fragment (${free.length} have none of the extent and take some)`;
  }

  /** Returns nodes that take fragments. Their content was compared with the records: no attempt meets a fragment of its version there. */
  takers(): PlacementNode[] {
    const { nodes } = this.#term;
    const distrusted = nodes.distrusted();
    return nodes.placeable().filter((node) => !distrusted.has(node.nodeId) && this.#parts.held.isCompared(node));
  }

  #domainOf(nodeId: string): string {
    return this.#term.state.node(nodeId)?.faultDomain ?? nodeId;
  }
}
