/**
 * Extents that a release before checksums of fragments has coded: one at a time, at the rate of codings, a node reads all fragments and compares them
 * with the extent's checksum, and the checksums are recorded. A fragment that a repair of that release has made wrong is found by leaving out one
 * fragment after another: without it the others give the extent's checksum. It counts as lost then, and is made anew.
 *
 * Invariants:
 * - Nothing is recorded below the feature level, and nothing that does not give the extent's checksum.
 * - A wrong fragment is given up by the transaction that records the checksums, so that no later leader takes it for intact (rule
 *   `wrongFragmentGivenUp`).
 * - Only extents whose fragments are all intact, as far as is known, are compared. The repair of another one compares by itself (`AttemptSteps`).
 * - One that could not be compared rests for an hour: no read of clients waits for it.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { neededLevels } from "@stamp/base";
import type { CodedRecord, ExtentRecord, FragmentPlace } from "@stamp/stream";
import { planRecordFragmentChecksums } from "@stamp/stream";
import { Rounds } from "../../term/rounds.ts";
import type { Term } from "../../term/term.ts";
import type { AttemptSteps } from "../attempt-steps.ts";
import { bytesOfFragment } from "../coded-extent.ts";
import type { CodingPace } from "../decodings.ts";
import type { HeldFragments } from "../held-fragments.ts";

/** Extents that are looked at in one tick. */
const looksPerTickMax = 1_000;
const restMs = 3_600_000;

interface Parts {
  readonly steps: AttemptSteps;
  readonly held: HeldFragments;
  readonly pace: CodingPace;
  /** Called when a fragment was found to be wrong. */
  readonly found: () => void;
}

type Coded = ExtentRecord & { readonly coded: CodedRecord };

export class UnrecordedChecksums {
  readonly #term: Term;
  readonly #parts: Parts;
  readonly #extents: Rounds<ExtentRecord>;
  /** Extents that could not be compared, with the end of their rest. */
  readonly #rests = new Map<ExtentId, number>();
  #isAtWork = false;

  constructor(term: Term, parts: Parts) {
    this.#term = term;
    this.#parts = parts;
    this.#extents = new Rounds(() => term.state.extents(), looksPerTickMax);
  }

  /** Takes the next step. Called every tick. */
  tick(): void {
    const { level, state } = this.#term;
    if (this.#isAtWork || state.codedCount === 0 || !level.allows(neededLevels.fragmentChecksums)) return;
    for (const extent of this.#extents.next()) {
      if (!this.#isUnrecorded(extent)) continue;
      if (this.#parts.pace.waitMs("checksums") > 0) return;
      this.#parts.pace.spend("checksums", extent.coded.fragments.length * bytesOfFragment(extent));
      this.#isAtWork = true;
      void this.#compare(extent).finally(() => {
        this.#isAtWork = false;
      });
      return;
    }
  }

  #isUnrecorded(extent: ExtentRecord): extent is Coded {
    const { attempt, coded, id, phase } = extent;
    if (phase !== "sealed" || coded === undefined || coded.checksums !== undefined || attempt !== undefined) return false;
    if ((this.#rests.get(id) ?? 0) > this.#term.world.clock.monotonicMs()) return false;
    return coded.fragments.every((place) => this.#parts.steps.isIntact(id, place));
  }

  async #compare(extent: Coded): Promise<void> {
    const { clock, logger } = this.#term.world;
    const { fragments } = extent.coded;
    const compared = await this.#verify(extent, undefined);
    if (compared.ok) return this.#record(extent, compared.value);
    this.#rests.set(extent.id, clock.monotonicMs() + restMs);
    if (compared.failure.reason !== "damaged") return;
    for (const [index, place] of fragments.entries()) {
      const others = await this.#verify(extent, index);
      if (this.#term.ended.aborted) return;
      if (!others.ok) continue;
      logger.error("a fragment is not what its extent was coded to: it is made anew", { extent: extent.id, index, node: place.nodeId });
      await this.#record(extent, others.value, index);
      return;
    }
    const why = compared.failure.message;
    logger.error("the fragments of an extent do not give its checksum, whichever one is left out", { extent: extent.id, why });
  }

  /** Verifies an extent; `leftOut`: index of a fragment that is not read. */
  #verify({ coded, ...extent }: Coded, leftOut: number | undefined): Promise<Outcome<readonly number[] | undefined>> {
    const { steps } = this.#parts;
    const named = coded.fragments.flatMap((place, index) => (index === leftOut ? [] : [steps.target(place, index, place.version)]));
    const verifier = coded.fragments[leftOut === 0 ? 1 : 0] as FragmentPlace;
    return steps.verify({ ...extent, coded }, coded.profile, verifier, named);
  }

  /** Records checksums; `wrong`: index of a fragment that does not fit them. */
  async #record(extent: Coded, checksums: readonly number[] | undefined, wrong?: number): Promise<void> {
    const { ended, ledger, state, world } = this.#term;
    if (checksums === undefined || ended.aborted) return;
    const { held, found } = this.#parts;
    const isGiven = wrong !== undefined && world.rules.on("wrongFragmentGivenUp");
    const given = isGiven ? { index: wrong, heldVersion: held.heldVersion(extent) } : undefined;
    const recorded = await ledger.commit((now) => planRecordFragmentChecksums(now, extent, checksums, given));
    if (!recorded.ok) return;
    this.#rests.delete(extent.id);
    const place = wrong === undefined ? undefined : state.extent(extent.id)?.coded?.fragments[wrong];
    if (place === undefined) return;
    held.missing(extent.id, place);
    found();
  }
}
