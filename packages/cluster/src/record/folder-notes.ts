/**
 * Notes of a running supervisor in its data folder: which processes it has started, how the cluster was started, that a stamp is here. A disk
 * that is full, became read-only or fails must not end the supervisor, because nobody else starts a process again that dies.
 *
 * Invariants:
 * - A note that the system refuses is written at a later look, and the status tells it until then.
 * - Any other error is a bug, and is thrown.
 */
import { inWords, isSystemError } from "@stamp/ports-node";
import { StartError } from "../start-error.ts";

export class FolderNotes {
  readonly #refused = new Map<string, string>();

  /** Reasons why notes are not written yet, in words. */
  get problems(): readonly string[] {
    return [...this.#refused].map(([what, why]) => `${what}: ${why}`);
  }

  /** Returns false if the system refuses to write the note now. `what` names the note. */
  written(what: string, write: () => void): boolean {
    try {
      write();
    } catch (error) {
      // A note that is there and can't be read is a StartError (data-folder.ts).
      if (!isSystemError(error) && !(error instanceof StartError)) throw error;
      const why = inWords(error);
      if (this.#refused.get(what) !== why) process.stderr.write(`stamp: the supervisor can't write ${what}: ${why}\n`);
      this.#refused.set(what, why);
      return false;
    }
    if (this.#refused.delete(what)) process.stderr.write(`stamp: the supervisor can write ${what} again\n`);
    return true;
  }
}
