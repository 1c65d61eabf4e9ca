/**
 * Judges the lock service's promises about one lease name by what its callers were told and when:
 *
 *   epochs      no epoch is granted twice, and nobody who asks later is told of a lower one
 *   held        whoever was granted or renewed an epoch has it for the whole term, counted from when he asked
 *   ended       what was said to have ended stays so: it is never renewed and never shown as running again
 *   refused     whose renewals were said to be refused is never renewed, and is shown so
 *   run out     what can't be running any more, by all that anybody was told, is not renewed
 *
 * Times are the simulation's, in milliseconds; those of clocks that drift differ from them by less than `slackMs`.
 */
import { BrokenPromise } from "@stamp/histories";

/** When a call was made and answered. */
export interface Called {
  readonly calledAt: number;
  readonly returnedAt: number;
}

export interface LeaseShown {
  readonly epoch: number;
  readonly ended: boolean;
  readonly refused: boolean;
}

interface Epoch {
  /** Time until which it was held at least, by a grant or renewal that was answered. */
  heldUntil: number;
  /** Time beyond which it was not held by what was answered; infinite while an unanswered renewal may have come later. */
  runsUntil: number;
  termMs: number;
  granted: boolean;
  /** True since somebody asked for its end; then it is held no longer. */
  released: boolean;
  /** Time since somebody was told of its end. */
  endedAt: number;
  refusedAt: number;
}

const slackMs = 5;

export class LockJudge {
  readonly #name: string;
  /** Until when the lock service, by its last start, may have extended what runs. */
  readonly #servedSince: () => number;
  readonly #epochs = new Map<number, Epoch>();
  /** The highest epoch that somebody was told, and when. */
  readonly #told: { readonly epoch: number; readonly at: number }[] = [];

  constructor(name: string, servedSince: () => number) {
    this.#name = name;
    this.#servedSince = servedSince;
  }

  granted(epoch: number, termMs: number, { calledAt, returnedAt }: Called): void {
    const known = this.#of(epoch);
    if (known.granted) throw this.#broken(epoch, "it was granted twice");
    known.granted = true;
    known.termMs = termMs;
    this.#seen(epoch, { calledAt, returnedAt });
    this.#holds(epoch, known, { calledAt, returnedAt });
  }

  /** A renewal without an answer may come at any time. */
  renewalUnanswered(epoch: number): void {
    this.#of(epoch).runsUntil = Number.POSITIVE_INFINITY;
  }

  renewed(epoch: number, { calledAt, returnedAt }: Called): void {
    const known = this.#of(epoch);
    if (known.endedAt < calledAt) throw this.#broken(epoch, `it was renewed after it was said to have ended`);
    if (known.refusedAt < calledAt) throw this.#broken(epoch, `it was renewed after its renewals were said to be refused`);
    const runsUntil = Math.max(known.runsUntil, this.#servedSince() + known.termMs);
    if (known.granted && runsUntil + slackMs < calledAt)
      throw this.#broken(epoch, `it was renewed at ${calledAt}, and ran out by ${runsUntil}`);
    this.#seen(epoch, { calledAt, returnedAt });
    this.#holds(epoch, known, { calledAt, returnedAt });
  }

  releaseCalled(epoch: number): void {
    this.#of(epoch).released = true;
  }

  /** Takes the answer to a look, a release or a refusal of renewals. */
  shown({ epoch, ended, refused }: LeaseShown, called: Called): void {
    if (epoch === 0) return;
    const known = this.#of(epoch);
    if (!ended && known.endedAt < called.calledAt) throw this.#broken(epoch, "it is shown as running after it was said to have ended");
    if (!ended && !refused && known.refusedAt < called.calledAt)
      throw this.#broken(epoch, "its renewals are not refused any more, and were said to be");
    this.#seen(epoch, called);
    if (ended) this.#ended(epoch, known, called.returnedAt);
    if (refused) known.refusedAt = Math.min(known.refusedAt, called.returnedAt);
  }

  #holds(epoch: number, known: Epoch, { calledAt, returnedAt }: Called): void {
    known.heldUntil = Math.max(known.heldUntil, calledAt + known.termMs);
    known.runsUntil = Math.max(known.runsUntil, returnedAt + known.termMs);
    this.#checkHeld(epoch, known);
  }

  #ended(epoch: number, known: Epoch, at: number): void {
    known.endedAt = Math.min(known.endedAt, at);
    this.#checkHeld(epoch, known);
  }

  #checkHeld(epoch: number, { released, endedAt, heldUntil }: Epoch): void {
    if (released || endedAt + slackMs >= heldUntil) return;
    throw this.#broken(epoch, `somebody was told at ${endedAt} that it is over, and its holder has it until ${heldUntil}`);
  }

  /** All before it are over. */
  #seen(epoch: number, { calledAt, returnedAt }: Called): void {
    const later = this.#told.find((one) => one.epoch > epoch && one.at < calledAt);
    if (later) throw this.#broken(epoch, `it is told of after epoch ${later.epoch} was`);
    if (!this.#told.some((one) => one.epoch >= epoch && one.at <= returnedAt)) this.#told.push({ epoch, at: returnedAt });
    for (const [other, known] of this.#epochs) if (other < epoch) this.#ended(other, known, returnedAt);
  }

  #of(epoch: number): Epoch {
    let known = this.#epochs.get(epoch);
    if (!known) {
      known = {
        heldUntil: 0,
        runsUntil: 0,
        termMs: 0,
        granted: false,
        released: false,
        endedAt: Number.POSITIVE_INFINITY,
        refusedAt: Number.POSITIVE_INFINITY,
      };
      this.#epochs.set(epoch, known);
    }
    return known;
  }

  #broken(epoch: number, what: string): BrokenPromise {
    return new BrokenPromise(`lease ${this.#name}, epoch ${epoch}: ${what}`);
  }
}
