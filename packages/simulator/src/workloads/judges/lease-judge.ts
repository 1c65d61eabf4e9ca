/**
 * Judges the promises about leases by what clients saw of them: from the answer that granted or renewed a lease until its duration is over,
 * counted from when it was asked for, nobody else gets the lease or writes without it, and its holder is not refused. Unless somebody asked to
 * release or break it meanwhile; and what was asked and not answered may happen for a while.
 */

export interface LeaseCall {
  /** A blob or a container. */
  readonly of: string;
  readonly sentMs: number;
  readonly answeredMs: number;
}

export interface Granted extends LeaseCall {
  readonly id: string;
  /** Length of the lease, counted from `sentMs`. */
  readonly durationMs: number;
  readonly by: "acquire" | "renew";
}

/** Servers count by clocks of their own, which go a little faster or slower. */
const slackMs = 100;

export class LeaseJudge {
  readonly #granted: Granted[] = [];
  /** Successful writes that named no lease. */
  readonly #writes: LeaseCall[] = [];
  readonly #refused: (LeaseCall & { readonly id: string; readonly code: string })[] = [];
  readonly #released: { readonly id: string; readonly sentMs: number }[] = [];
  readonly #broken: { readonly of: string; readonly sentMs: number; readonly untilMs: number }[] = [];

  granted(one: Granted): void {
    this.#granted.push(one);
  }

  wroteWithout(one: LeaseCall): void {
    this.#writes.push(one);
  }

  /** To whoever named this lease: a code of leases. */
  refused(one: LeaseCall & { readonly id: string; readonly code: string }): void {
    this.#refused.push(one);
  }

  /** Asked to release it, whatever was answered; nobody uses the id again. */
  released(id: string, sentMs: number): void {
    this.#released.push({ id, sentMs });
  }

  /** Asked to break it. `untilMs`: when it was answered, or can't happen any more. */
  broken(of: string, sentMs: number, untilMs: number): void {
    this.#broken.push({ of, sentMs, untilMs });
  }

  /** Returns the breaches. */
  check(): string | undefined {
    for (const one of this.#granted) {
      if (one.by !== "acquire") continue;
      const holder = this.#holderDuring(one, ({ id }) => id !== one.id);
      if (holder) return `two holders of ${one.of}: ${shown(holder)}, and ${shown(one)}`;
    }
    for (const write of this.#writes) {
      const holder = this.#holderDuring(write, () => true);
      if (holder) return `${write.of} was written without its lease between ${write.sentMs} and ${write.answeredMs} ms: ${shown(holder)}`;
    }
    for (const one of this.#refused) {
      const holder = this.#holderDuring(one, ({ id }) => id === one.id);
      if (holder)
        return `the holder of ${one.of} was refused (${one.code}) between ${one.sentMs} and ${one.answeredMs} ms: ${shown(holder)}`;
    }
    return undefined;
  }

  /** Returns a grant that holds during all of it, certainly. */
  #holderDuring(asked: LeaseCall, which: (granted: Granted) => boolean): Granted | undefined {
    return this.#granted.find(
      (one) =>
        one.of === asked.of &&
        which(one) &&
        one.answeredMs <= asked.sentMs &&
        asked.answeredMs < one.sentMs + one.durationMs - slackMs &&
        !this.#released.some(({ id, sentMs }) => id === one.id && sentMs <= asked.answeredMs) &&
        !this.#broken.some(({ of, sentMs, untilMs }) => of === one.of && sentMs <= asked.answeredMs && untilMs >= one.sentMs),
    );
  }
}

const shown = ({ id, by, sentMs, answeredMs, durationMs }: Granted): string =>
  `${id} has it for ${durationMs / 1000} s by ${by}, asked at ${sentMs.toFixed(0)} and answered at ${answeredMs.toFixed(0)} ms`;
