/** Numbers of one whole look at all coded extents, and the extents with a fragment to be made again. */
import type { ExtentId } from "@stamp/base";
import type { ExtentRecord, FragmentAssessment, FragmentHealth, FragmentPlace } from "@stamp/stream";
import { addTo } from "../repair/blocked-copies.ts";
import { fragmentsToMake } from "./coded-extent.ts";

interface Waiting {
  readonly id: ExtentId;
  /** Number of losses that the extent still bears for certain. */
  readonly lossesLeft: number;
}

export class FragmentSurvey {
  unreachable = 0;
  inGrace = 0;
  readonly #lossesLeft = new Map<number, number>();
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #reads = 0;

  /** `assessment` undefined: an attempt is under way, or the extent is not coded. */
  add(extent: ExtentRecord, assessment: FragmentAssessment | undefined, healthOf: (place: FragmentPlace) => FragmentHealth): void {
    const { attempt, coded, id } = extent;
    if (assessment?.kind === "unreachable") this.unreachable += 1;
    if (assessment?.kind === "grace") this.inGrace += 1;
    // A fragment that is to leave a draining node is not missing.
    const isMissing = assessment !== undefined && assessment.kind !== "fine" && coded?.fragments.some((place) => !healthOf(place).live);
    if (isMissing) addTo(this.#lossesLeft, assessment.lossesLeft, 1);
    if (assessment?.kind === "repair") this.#waiting.push({ id, lossesLeft: assessment.lossesLeft });
    if (assessment?.kind !== "repair" && attempt?.kind !== "repair") return;
    const { bytes, reads } = fragmentsToMake(extent, healthOf);
    this.#bytes += bytes;
    this.#reads += reads;
  }

  /** Returns the extents with a fragment to be made again, those with the fewest losses left last. */
  waiting(): Waiting[] {
    return this.#waiting.toSorted((a, b) => b.lossesLeft - a.lossesLeft);
  }

  /** Number of coded extents that bear no further loss for certain. */
  get endangered(): number {
    return [...this.#lossesLeft].reduce((sum, [losses, count]) => (losses <= 0 ? sum + count : sum), 0);
  }

  /** Coded extents that miss fragments, by the losses that they still bear, fewest first. */
  get lossesLeft(): readonly (readonly [losses: number, extents: number])[] {
    return [...this.#lossesLeft].sort(([a], [b]) => a - b);
  }

  /** Size of the fragments to be made again or being made, and of the reads for them, in bytes. */
  get toMake(): { readonly bytes: number; readonly reads: number } {
    return { bytes: this.#bytes, reads: this.#reads };
  }
}
