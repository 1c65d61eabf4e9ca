/** Copies and decodings onto this node: one at a time for each extent. The same one asked for again gets the answer of the first; another one waits. */
import type { ExtentId, Outcome } from "@stamp/base";
import type { CopyExtentRequest } from "@stamp/wire";

export type CopyOutcome = Outcome<{ checksum: number }>;

interface Job {
  readonly name: string;
  readonly done: Promise<CopyOutcome>;
}

/** Returns a text that is the same for the same copy only. `kind`: where the content comes from. Sources don't matter: any will do. */
export function copyName(kind: string, request: CopyExtentRequest): string {
  const { version, ownerEpoch, sealedLengthBytes, checksum, creation } = request;
  return `${kind} ${creation} ${version} ${ownerEpoch} ${sealedLengthBytes} ${checksum}`;
}

export class CopyJobs {
  /** The last job of each extent that has not ended. */
  readonly #last = new Map<ExtentId, Job>();

  /** True if a copy of an extent with this number is being made. */
  runs(id: ExtentId): boolean {
    return this.#last.has(id);
  }

  run(id: ExtentId, name: string, work: () => Promise<CopyOutcome>): Promise<CopyOutcome> {
    const last = this.#last.get(id);
    if (last?.name === name) return last.done;
    const began = last === undefined ? work() : last.done.then(work, work);
    const done = began.finally(() => {
      if (this.#last.get(id)?.done === done) this.#last.delete(id);
    });
    this.#last.set(id, { name, done });
    return done;
  }
}
