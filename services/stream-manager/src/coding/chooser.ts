/**
 * Has extents coded by the policy (`@stamp/stream` coding-policy): looks at all extents now and then, and begins attempts with those that the policy
 * takes, the oldest first, a few at a time and not faster than a given rate.
 *
 * Invariants:
 * - No coding begins while a lost replica or fragment waits to be made anew: full redundancy comes before saved space.
 * - An extent whose attempt was taken back rests, longer each time: an extent that can't be coded costs no disk and network for ever.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { fragmentBytesOf, fragmentContentOffset } from "@stamp/extent";
import { sleep, Turns } from "@stamp/ports";
import type { AttemptRecord, CodingPause, CodingPolicy, ExtentRecord } from "@stamp/stream";
import { chooseProfile, ExtentAges, whyNotCoded } from "@stamp/stream";
import { codingPolicyOf } from "../config.ts";
import type { Repairer } from "../repair/repairer.ts";
import type { Completer } from "../seal/completer.ts";
import type { Term } from "../term/term.ts";
import { type Coder, whyCodingWaits } from "./coder.ts";
import type { CodingPauses } from "./pauses.ts";
import type { SavedAges } from "./saved-ages.ts";

const scanEveryMs = 10_000;
/** Extents that a scan chooses at most; the next scan finds the others. */
const chosenMax = 10_000;
const restMinMs = 60_000;
const restMaxMs = 3_600_000;
/** Extents whose attempt was taken back and that are remembered; beyond, the oldest is forgotten and may be tried again. */
const failedMax = 10_000;
/** Different reasons that are counted apart; others are counted together. */
const reasonsMax = 50;

interface Parts {
  readonly coder: Coder;
  readonly completer: Completer;
  readonly repairer: Repairer;
  readonly pauses: CodingPauses;
  readonly savedAges: SavedAges;
}

interface Failed {
  readonly untilMs: number;
  readonly restMs: number;
  readonly why: string;
}

export interface Amount {
  readonly extents: number;
  readonly bytes: number;
}

/** Result of the last whole look at all extents. */
interface Survey {
  readonly codedBytes: number;
  readonly fragmentBytes: number;
  /** Extents that are not coded, by the reason; those that wait to be coded have none and are left out. */
  readonly reasons: ReadonlyMap<string, Amount>;
  readonly waiting: Amount;
}

const nothing: Amount = { extents: 0, bytes: 0 };

export class Chooser {
  readonly #term: Term;
  readonly #parts: Parts;
  readonly policy: CodingPolicy;
  readonly #ages: ExtentAges;
  /** Chosen by the last scan, oldest last. */
  #chosen: ExtentId[] = [];
  readonly #failed = new Map<ExtentId, Failed>();
  #survey: Survey = { codedBytes: 0, fragmentBytes: 0, reasons: new Map(), waiting: nothing };
  #starting = 0;
  #done: Amount = nothing;
  #scanning = false;
  #nextScanMs = 0;
  #waking = false;

  constructor(term: Term, parts: Parts) {
    this.#term = term;
    this.#parts = parts;
    this.policy = codingPolicyOf(term.config);
    this.#ages = new ExtentAges(this.policy.afterSeconds * 1_000);
    parts.savedAges.restore(this.#ages);
  }

  /** Facts about coding, for the status. */
  get facts() {
    const { codedBytes, fragmentBytes, waiting } = this.#survey;
    const choice = this.choice();
    return {
      policy: this.policy.profile,
      profile: typeof choice === "string" ? "" : choice.name,
      whyNotCoding: typeof choice === "string" ? choice : "",
      paused: this.#parts.pauses.pause !== undefined,
      codedBytes,
      fragmentBytes,
      savedBytes: codedBytes * this.#term.config.copies - fragmentBytes,
      codeWaiting: waiting.extents,
      codeWaitingBytes: waiting.bytes,
      failing: this.#failed.size,
      failures: this.failed.reasons,
    };
  }

  /** Result of the last scan. */
  get survey(): Survey {
    return this.#survey;
  }

  /** Returns undefined if the policy is not paused. */
  get pause(): CodingPause | undefined {
    return this.#parts.pauses.pause;
  }

  /** Coded since this leader began. */
  get done(): Amount {
    return this.#done;
  }

  /** Number of extents that are being coded now. */
  get running(): number {
    const { state } = this.#term;
    return [...state.attempts()].filter((id) => state.extent(id)?.attempt?.kind === "code").length;
  }

  /** Number of extents whose last attempt was taken back, and some of the reasons. */
  get failed(): { readonly count: number; readonly reasons: readonly string[] } {
    return { count: this.#failed.size, reasons: [...new Set([...this.#failed.values()].map(({ why }) => why))].slice(0, 5) };
  }

  /** Pauses or resumes the policy, for this leader and all later ones. What was begun goes on. */
  async setPaused(paused: boolean, note: string): Promise<Outcome<void>> {
    const set = await this.#parts.pauses.set(paused, note);
    if (set.ok) this.#nextScanMs = 0;
    return set;
  }

  /** Returns the code that extents get now, or the reason why they get none. */
  choice(): Profile | string {
    const why = whyCodingWaits(this.#term.level);
    if (why !== undefined && this.policy.profile !== "off") return why;
    const nodes = [...this.#term.state.nodes()].filter(({ duty }) => duty === undefined || duty === "serving");
    return chooseProfile(
      this.policy,
      nodes.map(({ nodeId, faultDomain }) => (faultDomain === "" ? nodeId : faultDomain)),
    );
  }

  /** Takes the next step. Called every tick. */
  tick(): void {
    if (!this.#scanning && this.#term.world.clock.monotonicMs() >= this.#nextScanMs) void this.#scan();
    this.#start();
  }

  /** Notes that an attempt has ended; `why`, if it was taken back. */
  over(id: ExtentId, kind: AttemptRecord["kind"], why: string | undefined): void {
    if (kind === "decode" && why === undefined) {
      this.#ages.renew(id);
      this.#saveAges(this.choice());
    }
    if (kind !== "code") return;
    if (why === undefined) {
      const bytes = this.#term.state.extent(id)?.sealedLengthBytes ?? 0;
      this.#done = { extents: this.#done.extents + 1, bytes: this.#done.bytes + bytes };
      this.#failed.delete(id);
    } else this.#rest(id, why);
    this.#start();
  }

  /** Returns why the extent is not coded, in words; undefined: the policy takes it, and it waits for its turn. */
  whyNot(extent: ExtentRecord, choice: Profile | string = this.choice()): string | undefined {
    const { clock } = this.#term.world;
    const nowMs = clock.monotonicMs();
    const why = whyNotCoded(extent, this.policy, () => ({
      copies: this.#term.config.copies,
      isOld: this.#ages.isOld(extent.id, nowMs),
      isWhole: this.#isWhole(extent),
    }));
    // First what concerns the extent: what concerns the whole stamp is told once in the status.
    if (why !== undefined) return why;
    if (typeof choice === "string") return choice;
    const failed = this.#failed.get(extent.id);
    return failed !== undefined && nowMs < failed.untilMs ? `an attempt was taken back, and rests: ${failed.why}` : undefined;
  }

  /** Ages that no code waits for are not written. */
  #saveAges(choice: Profile | string): void {
    if (typeof choice !== "string") void this.#parts.savedAges.save(this.#ages, this.policy.afterSeconds * 1_000);
  }

  #isWhole(extent: ExtentRecord): boolean {
    const { nodes, state } = this.#term;
    return extent.replicas.every(
      (replica) =>
        this.#parts.completer.complete(extent, replica) &&
        nodes.reachable(replica) &&
        (state.node(replica.nodeId)?.duty ?? "serving") === "serving",
    );
  }

  #rest(id: ExtentId, why: string): void {
    const before = this.#failed.get(id);
    const restMs = Math.min(restMaxMs, before === undefined ? restMinMs : before.restMs * 2);
    this.#failed.delete(id);
    this.#failed.set(id, { untilMs: this.#term.world.clock.monotonicMs() + restMs, restMs, why });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > failedMax && oldest !== undefined) this.#failed.delete(oldest);
  }

  async #scan(): Promise<void> {
    const { ended, state, world } = this.#term;
    const choice = this.choice();
    this.#nextScanMs = world.clock.monotonicMs() + Math.min(scanEveryMs, Math.max(1_000, this.policy.afterSeconds * 500));
    if (typeof choice === "string" && state.codedCount === 0) {
      this.#chosen = [];
      this.#survey = { codedBytes: 0, fragmentBytes: 0, reasons: new Map(), waiting: nothing };
      return;
    }
    this.#scanning = true;
    const counted = new Counted();
    const chosen: ExtentId[] = [];
    const unsealed: ExtentId[] = [];
    let lastId = 0;
    const turns = new Turns(world.clock);
    for (const extent of state.extents()) {
      lastId = Math.max(lastId, extent.id);
      if (extent.phase !== "sealed") unsealed.push(extent.id);
      else if (extent.coded !== undefined) counted.coded(extent);
      else {
        const why = this.whyNot(extent, choice);
        counted.kept(extent, why);
        if (why === undefined && chosen.length < chosenMax) chosen.push(extent.id);
      }
      if (turns.over) await turns.next();
      if (ended.aborted) return;
    }
    for (const id of this.#failed.keys()) if (state.extent(id) === undefined) this.#failed.delete(id);
    if (this.#ages.looked(world.clock.monotonicMs(), lastId, unsealed)) this.#saveAges(choice);
    this.#chosen = chosen.sort((a, b) => b - a);
    this.#survey = counted.survey();
    this.#scanning = false;
    this.#start();
  }

  /** Begins attempts with what the last scan chose, as many and as fast as the configuration allows. */
  #start(): void {
    const { config, ended, state, world } = this.#term;
    const { coder, repairer } = this.#parts;
    const choice = this.choice();
    if (typeof choice === "string" || this.pause !== undefined) return;
    if (coder.repairs.mustRepair || repairer.mustCopy) return;
    const { running } = this;
    // The policy may take none of the chosen extents any more: a node went away since.
    const turns = new Turns(world.clock);
    while (this.#chosen.length > 0 && running + this.#starting < config.codingsMax && !ended.aborted) {
      const waitMs = coder.codingPace.waitMs("codings");
      if (waitMs > 0 || turns.over) {
        void this.#wake(waitMs);
        return;
      }
      const extent = state.extent(this.#chosen.pop() as ExtentId);
      if (extent === undefined || this.whyNot(extent, choice) !== undefined) continue;
      coder.codingPace.spend("codings", extent.sealedLengthBytes ?? 0);
      this.#starting += 1;
      void this.#begin(extent.id, choice).finally(() => {
        this.#starting -= 1;
      });
    }
  }

  async #wake(afterMs: number): Promise<void> {
    if (this.#waking) return;
    this.#waking = true;
    await sleep(this.#term.world.clock, afterMs, this.#term.ended);
    this.#waking = false;
    if (!this.#term.ended.aborted) this.#start();
  }

  async #begin(id: ExtentId, profile: Profile): Promise<void> {
    const begun = await this.#parts.coder.code(id, profile.name);
    // Nodes may be away: the next scan tries again, and nothing was made.
    if (!begun.ok && begun.failure.reason !== "conflict") this.#chosen = [];
    if (!begun.ok) this.#term.world.logger.info("an extent is not coded now", { extent: id, why: begun.failure.message });
  }
}

/** Returns the bytes on disks of an extent's fragments, files with heads and checksums. */
function fragmentFileBytes({ coded, sealedLengthBytes = 0 }: ExtentRecord): number {
  const profile = profileOf(coded?.profile ?? "");
  if (profile === undefined) return 0;
  const fragmentBytes = fragmentBytesOf(sealedLengthBytes, profile.data);
  return profile.fragments * (fragmentContentOffset(fragmentBytes) + fragmentBytes);
}

/** Sums that one scan makes. */
class Counted {
  #codedBytes = 0;
  #fragmentBytes = 0;
  readonly #reasons = new Map<string, Amount>();
  #waiting: Amount = nothing;

  coded(extent: ExtentRecord): void {
    this.#codedBytes += extent.sealedLengthBytes ?? 0;
    this.#fragmentBytes += fragmentFileBytes(extent);
  }

  kept({ sealedLengthBytes = 0 }: ExtentRecord, why: string | undefined): void {
    const more = ({ extents, bytes }: Amount): Amount => ({ extents: extents + 1, bytes: bytes + sealedLengthBytes });
    if (why === undefined) {
      this.#waiting = more(this.#waiting);
      return;
    }
    const reason = this.#reasons.has(why) || this.#reasons.size < reasonsMax ? why : "other reasons";
    this.#reasons.set(reason, more(this.#reasons.get(reason) ?? nothing));
  }

  survey(): Survey {
    return { codedBytes: this.#codedBytes, fragmentBytes: this.#fragmentBytes, reasons: this.#reasons, waiting: this.#waiting };
  }
}
