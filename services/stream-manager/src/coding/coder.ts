/**
 * Drives attempts: an extent becomes fragments, a lost fragment is made anew, fragments become replicas again (docs/design/erasure-coding.md "Protocol"). An attempt is recorded
 * before a node is told anything. What is found recorded, also by a new leader, is gone on with or taken back.
 *
 * Invariants:
 * - A try that fails while nodes may not have reported to this leader yet says nothing: the attempt goes on until they have. The nodes may be at work on it for the leader before.
 * - The commit of a coding follows a comparison of what was stored with the extent's checksum and the code (rule `fragmentsVerified`).
 * - No replica and no fragment is deleted here: they are recorded as removed, and the garbage collection deletes them after its grace.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { neededLevels, refused } from "@stamp/base";
import { profileOf } from "@stamp/erasure";
import { sleep, Turns } from "@stamp/ports";
import type { AttemptRecord, ExtentRecord } from "@stamp/stream";
import {
  type FragmentPlace,
  place,
  placeFragments,
  planAbandonAttempt,
  planBeginCoding,
  planBeginDecoding,
  planFinishCoding,
  planFinishDecoding,
  planFinishFragmentRepair,
  targetsOf,
} from "@stamp/stream";
import type { StampLevel } from "../feature-level/stamp-level.ts";
import { RepairPace } from "../repair/repair-pace.ts";
import type { Completer } from "../seal/completer.ts";
import { Rounds } from "../term/rounds.ts";
import type { Term } from "../term/term.ts";
import { type AttemptDone, AttemptSteps } from "./attempt-steps.ts";
import { UnrecordedChecksums } from "./checksums/unrecorded-checksums.ts";
import { type CodingPace, Decodings } from "./decodings.ts";
import { FragmentRepairs } from "./fragment-repairs.ts";
import type { HeldFragments } from "./held-fragments.ts";

/** Factor on `codingsMax` that bounds all codings at once, those that people asked for included. */
const askedCodingsFactor = 8;
const triesMax = 3;
const tryPauseMs = 500;
/** Time between two looks for extents that fragments can give back, in milliseconds. */
const lookEveryMs = 1_000;
/** Attempts that are looked at in one tick; the others wait for the next one. */
const looksPerTickMax = 1_000;

const finishes = { code: planFinishCoding, repair: planFinishFragmentRepair, decode: planFinishDecoding } as const;

export type AttemptOver = (id: ExtentId, kind: AttemptRecord["kind"], why: string | undefined) => void;

interface CoderParts {
  readonly completer: Completer;
  readonly held: HeldFragments;
  readonly pace: RepairPace;
  /** True while lost replicas wait to be made anew and can be. */
  readonly copiesWait: () => boolean;
  /** Called when an attempt has ended; `why`, if it was taken back. */
  readonly over: AttemptOver;
}

/** Returns why no extent becomes fragments at the stamp's level; undefined: extents may. Existing fragments are read and repaired at every level. */
export const whyCodingWaits = (level: Pick<StampLevel, "allows" | "level">): string | undefined =>
  level.allows(neededLevels.fragments)
    ? undefined
    : `fragments need feature level ${neededLevels.fragments}, and the stamp has level ${level.level}: ./stamp upgrade status`;

export class Coder {
  readonly #term: Term;
  readonly #held: HeldFragments;
  readonly #over: AttemptOver;
  readonly #attempts: Rounds<ExtentId>;
  readonly #steps: AttemptSteps;
  readonly #running = new Set<ExtentId>();
  readonly repairs: FragmentRepairs;
  readonly codingPace: CodingPace;
  readonly #unrecorded: UnrecordedChecksums;
  readonly decodings: Decodings;
  #adoptable: readonly ExtentId[] = [];
  /** Extents taken back since the look that goes on began. */
  readonly #adopted = new Set<ExtentId>();
  #nextLookMs = 0;
  #codedCount = 0;

  constructor(term: Term, { completer, held, pace, copiesWait, over }: CoderParts) {
    this.#over = over;
    this.#term = term;
    this.#held = held;
    this.#steps = new AttemptSteps(term, completer, held);
    const drive = (id: ExtentId): void => this.#drive(id);
    this.repairs = new FragmentRepairs(term, { steps: this.#steps, held, pace, running: this.#running, drive, copiesWait });
    this.codingPace = new RepairPace(term.world.clock, term.config.codingBytesPerSecond);
    const found = (): void => this.repairs.rescan();
    this.#unrecorded = new UnrecordedChecksums(term, { steps: this.#steps, held, pace: this.codingPace, found });
    this.decodings = new Decodings(term, this.codingPace, (id) => this.#decode(id));
    this.#attempts = new Rounds(() => term.state.attempts(), looksPerTickMax);
  }

  /** Facts about attempts at coding, for the status. Counts are of this term. */
  get facts() {
    return {
      coded: this.#term.state.codedCount,
      attempts: this.#running.size,
      codedSinceItLeads: this.#codedCount,
      decodingsWaiting: this.decodings.facts.waiting,
      ...this.repairs.facts,
      strays: this.#held.strays,
      adoptable: this.#adoptable.length,
    };
  }

  /** True if the fragment is intact, as far as is known, and its node is up with that disk. */
  isIntact(id: ExtentId, fragment: FragmentPlace): boolean {
    return this.#steps.isIntact(id, fragment);
  }

  /** True if enough intact replicas or fragments can be reached to read the extent, by its record. */
  isReadable(extent: ExtentRecord): boolean {
    return this.#steps.isReadable(extent);
  }

  /**
   * Returns the number of fragments on nodes that are newer than the record, if the extent can't be read as the record says; 0: it can, or there
   * is none.
   */
  newerThan(extent: ExtentRecord): number {
    const count = this.#held.newerThan(extent);
    return count === 0 || this.#steps.isReadable(extent) ? 0 : count;
  }

  /** Extents that can't be read as their records say, and of which nodes hold newer fragments, as of the last look. */
  get adoptable(): readonly ExtentId[] {
    return this.#adoptable;
  }

  /** Notes that the extent's newer fragments were taken back. */
  adopted(id: ExtentId): void {
    this.#adopted.add(id);
    this.#adoptable = this.#adoptable.filter((other) => other !== id);
  }

  async #lookForAdoptable(): Promise<void> {
    const { ended, state, world } = this.#term;
    this.#nextLookMs = Number.POSITIVE_INFINITY;
    this.#adopted.clear();
    const found = new Set<ExtentId>();
    const turns = new Turns(world.clock);
    for (const id of this.#held.newerExtents()) {
      const extent = found.has(id) ? undefined : state.extent(id);
      if (extent !== undefined && this.newerThan(extent) > 0) found.add(id);
      if (turns.over) await turns.next();
      if (ended.aborted) return;
    }
    for (const id of this.#adopted) found.delete(id);
    this.#adoptable = [...found].sort((a, b) => a - b);
    this.#nextLookMs = world.clock.monotonicMs() + lookEveryMs;
  }

  /** Takes the next step. Called every tick. */
  tick(): void {
    for (const id of this.#attempts.next()) this.#drive(id);
    this.repairs.tick();
    this.decodings.tick();
    this.#unrecorded.tick();
    if (this.#term.world.clock.monotonicMs() >= this.#nextLookMs) void this.#lookForAdoptable();
  }

  /** Begins to code an extent that a person names. Refused with `overloaded` while too many are being coded. */
  codeAsked(id: ExtentId, profileName: string): Promise<Outcome<void>> {
    const { state } = this.#term;
    const running = [...state.attempts()].filter((each) => state.extent(each)?.attempt?.kind === "code").length;
    if (running < askedCodingsFactor * this.#term.config.codingsMax) return this.code(id, profileName);
    const message = `${running} extents are being coded: ask again when some are done (./stamp coding status)`;
    return Promise.resolve(refused("resourceExhausted", "overloaded", message));
  }

  /** Begins to code an extent. Resolves when the attempt is recorded; its outcome is recorded with the extent later. */
  async code(id: ExtentId, profileName: string): Promise<Outcome<void>> {
    const { ledger, world } = this.#term;
    const profile = profileOf(profileName);
    if (profile === undefined) return refused("invalidArgument", "badRequest", `there is no code ${profileName}`);
    const why = whyCodingWaits(this.#term.level);
    if (why !== undefined) return refused("failedPrecondition", "conflict", why);
    const targets = placeFragments(profile, this.repairs.takers(), () => world.random.float());
    if (typeof targets === "string") return refused("resourceExhausted", "noPlacement", targets);
    const begun = await ledger.commit((state) => planBeginCoding(state, id, profile.name, targets, world.rules, this.#heldVersion(id)));
    if (begun.ok) this.#drive(id);
    return begun;
  }

  /** True if the extent waits to become replicas again. */
  waitsToDecode(id: ExtentId): boolean {
    return this.decodings.waits(id);
  }

  /** Begins to make replicas of a coded extent, if its turn has come. Resolves when the attempt is recorded, or at once if it waits. */
  decode(id: ExtentId): Promise<Outcome<void>> {
    return this.decodings.request(id);
  }

  async #decode(id: ExtentId): Promise<Outcome<void>> {
    const { config, ledger, nodes, world } = this.#term;
    const { copies, minCopies } = config;
    const request = { copies, minCopies, avoid: nodes.distrusted(), random: () => world.random.float() };
    const extent = this.#term.state.extent(id);
    // A node that keeps another extent's replica of this number refuses this one's.
    const refuses = (nodeId: string): boolean => extent !== undefined && nodes.keepsOther(nodeId, extent);
    const targets = place({ ...request, nodes: nodes.placeable().filter(({ nodeId }) => !refuses(nodeId)) });
    if (targets.length < minCopies) return refused("resourceExhausted", "noPlacement", `${targets.length} nodes take replicas now`);
    const begun = await ledger.commit((state) => planBeginDecoding(state, id, targets, world.rules, this.#heldVersion(id)));
    if (begun.ok) this.#drive(id);
    return begun;
  }

  /** Returns the highest version that fragments of the extent on nodes are known to have. */
  #heldVersion(id: ExtentId): number {
    const extent = this.#term.state.extent(id);
    return extent === undefined ? 0 : this.#held.heldVersion(extent);
  }

  #drive(id: ExtentId): void {
    if (this.#running.has(id) || this.#term.ended.aborted) return;
    const attempt = this.#term.state.extent(id)?.attempt;
    if (attempt === undefined) {
      this.repairs.over(id);
      return;
    }
    this.#running.add(id);
    void this.#go(id, attempt).finally(() => {
      this.#running.delete(id);
      this.repairs.over(id);
      this.repairs.start();
      this.decodings.tick();
    });
  }

  async #go(id: ExtentId, attempt: AttemptRecord): Promise<void> {
    const { ended, ledger, nodes, world } = this.#term;
    let why = "this release does not know how";
    for (let tried = 0; tried < triesMax && !ended.aborted; ) {
      const extent = this.#term.state.extent(id);
      if (extent?.phase !== "sealed" || extent.attempt?.version !== attempt.version) return;
      const away = targetsOf(attempt).find((target) => !nodes.reachable(target));
      if (away !== undefined && !nodes.mayBeAtWork) {
        why = `node ${away.nodeId} can't be reached`;
        break;
      }
      const done =
        away === undefined
          ? await this.#steps.run(extent, attempt, tried)
          : refused("unavailable", "notReady", "nodes are not heard of yet");
      if (ended.aborted) return;
      if (done.ok) return this.#finish(extent, attempt, done.value);
      why = done.failure.message;
      // Files of this version are there, and are not what they should be: only another attempt can make others.
      if (done.failure.reason === "damaged" || done.failure.reason === "conflict") break;
      if (!nodes.mayBeAtWork) tried += 1;
      await sleep(world.clock, tryPauseMs, ended);
    }
    if (ended.aborted) return;
    world.logger.warn("an attempt at coding an extent is given up", { extent: id, kind: attempt.kind, version: attempt.version, why });
    if (attempt.kind === "repair") this.repairs.failed(id, why);
    await ledger.commit((state) => planAbandonAttempt(state, id, attempt.version));
    this.#over(id, attempt.kind, why);
  }

  async #finish(extent: ExtentRecord, attempt: AttemptRecord, { bytesRead, checksums }: AttemptDone): Promise<void> {
    const { ledger, world } = this.#term;
    const { id } = extent;
    const finished = await ledger.commit((state) => finishes[attempt.kind](state, id, attempt.version, checksums));
    if (!finished.ok) return;
    if (attempt.kind === "code") this.#codedCount += 1;
    if (attempt.kind === "repair") this.repairs.made(extent, bytesRead);
    this.#held.made(id, attempt);
    this.#over(id, attempt.kind, undefined);
    world.logger.info("an attempt at coding an extent is finished", { extent: id, kind: attempt.kind, version: attempt.version });
  }
}
