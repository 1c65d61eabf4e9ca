/**
 * Judges the promises about handles by what gateways and clients of REST saw. A handle is held for certain from the answer of its open until
 * its gateway asks to close it, or until the session may have ended, counted from when its last renewal was asked for. Meanwhile nobody reads,
 * writes or deletes by REST what it does not share, nobody opens the file beside it against its share mode, and its gateway is not told that it
 * has no handle, unless a deletion by REST may have taken a file that it shared.
 */

export interface FileCall {
  readonly file: string;
  readonly sentMs: number;
  readonly answeredMs: number;
}

export interface HeldHandle extends FileCall {
  readonly gateway: string;
  /** Id of the file: a name may stand for another one after a deletion. */
  readonly id: string;
  /** True if others may do everything beside it. */
  readonly sharesAll: boolean;
  /** Time up to which the gateway's session lasts for certain; grows with each renewal. */
  untilMs: number;
  /** Time at which the gateway asked to close it, or gave it up. */
  endedMs: number;
}

export class HandleJudge {
  readonly #held: HeldHandle[] = [];
  readonly #byRest: (FileCall & { readonly what: string })[] = [];
  /** Deletions by REST that were done, or whose answer is not known. */
  readonly #deletions: FileCall[] = [];
  readonly #lost: { readonly handle: HeldHandle; readonly call: FileCall }[] = [];

  opened(handle: HeldHandle): void {
    this.#held.push(handle);
  }

  /** A write or deletion by REST that was answered as done. */
  done(call: FileCall & { readonly what: string }): void {
    this.#byRest.push(call);
  }

  mayHaveDeleted(call: FileCall): void {
    this.#deletions.push(call);
  }

  /** The gateway was told that there is no such handle. */
  lost(handle: HeldHandle, call: FileCall): void {
    this.#lost.push({ handle, call });
  }

  /** Returns a breach. */
  check(): string | undefined {
    for (const { handle, call } of this.#lost) {
      const mayBeGone = this.#deletions.some(
        ({ file, sentMs, answeredMs }) => file === handle.file && answeredMs >= handle.sentMs && sentMs <= call.answeredMs,
      );
      if (isDuring(call, handle) && !(handle.sharesAll && mayBeGone))
        return `${shown(handle)} was told between ${times(call)} that it has no handle`;
    }
    for (const call of this.#byRest) {
      const holder = this.#held.find((handle) => !handle.sharesAll && isDuring(call, handle));
      if (holder) return `${call.file}: ${call.what} by REST between ${times(call)}, and ${shown(holder)} shares nothing`;
    }
    for (const second of this.#held) {
      const excludes = (first: HeldHandle): boolean => first !== second && first.id === second.id && !(first.sharesAll && second.sharesAll);
      const holder = this.#held.find((first) => excludes(first) && isDuring(second, first));
      if (holder) return `${shown(second)} beside ${shown(holder)}`;
    }
    return undefined;
  }
}

/** True if the call was asked and answered while the handle was held for certain. */
const isDuring = (call: FileCall, { file, answeredMs, untilMs, endedMs }: HeldHandle): boolean =>
  call.file === file && answeredMs <= call.sentMs && call.answeredMs < Math.min(untilMs, endedMs);

const times = ({ sentMs, answeredMs }: FileCall): string => `${sentMs.toFixed(0)} and ${answeredMs.toFixed(0)} ms`;
const shown = (handle: HeldHandle): string =>
  `${handle.gateway} with ${handle.file}, opened between ${times(handle)}, held until ${Math.min(handle.untilMs, handle.endedMs).toFixed(0)} ms`;
