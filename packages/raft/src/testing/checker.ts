/**
 * Checks the properties of the paper's figure 3, and that reads are linearizable, from outside of the members.
 *
 * - Election Safety: one leader in a term.
 * - Log Matching: an entry with the same index and term has the same content, and the same entry before it.
 * - Leader Completeness: a leader's log has every entry that was committed in an earlier term.
 * - State Machine Safety: all members apply the same entry at an index.
 * - Linearizable reads: a read sees every entry that was acknowledged before it was asked, and whatever an earlier answer has shown.
 */
import type { Raft } from "../raft.ts";
import type { Ready } from "../ready.ts";
import type { Entry, MemberId } from "../types.ts";

export class Broken extends Error {
  override readonly name = "Broken";
}

interface Observed {
  readonly id: MemberId;
  readonly raft: Raft;
  readonly session: number;
}

export class Checker {
  /** Highest index that a client was told of: by an answer to its write or to its read. */
  acknowledged = 0;
  readonly #leaders = new Map<number, string>();
  /** Entries that were committed anywhere: index → term, content, and the term of the first member that applied it. */
  readonly #committed = new Map<number, { readonly term: number; readonly text: string; readonly seenIn: number }>();
  /** Content of "index.term" in any log, and the term of the entry before it. */
  readonly #entries = new Map<string, string>();

  get committedCount(): number {
    return this.#committed.size;
  }

  observe({ id, raft, session }: Observed, ready: Ready): void {
    this.#follow(id, raft, ready);
    const { role, term } = raft.status;
    if (role !== "leader") return;
    const name = `${id}, start ${session},`;
    const before = this.#leaders.get(term);
    if (before === undefined) this.#complete(id, raft, term);
    else if (before !== name) throw new Broken(`Election Safety: ${before} and ${name} both lead in term ${term}`);
    this.#leaders.set(term, name);
  }

  /** `seenIn`: term of the member that applies it, so it was committed in that term or before. */
  applied(id: MemberId, entry: Entry, text: string, seenIn: number): void {
    const known = this.#committed.get(entry.index);
    if (known === undefined) this.#committed.set(entry.index, { term: entry.term, text, seenIn });
    else if (known.term !== entry.term || known.text !== text) {
      throw new Broken(
        `State Machine Safety: ${id} applies ${text}@${entry.term} at ${entry.index}, where ${known.text}@${known.term} was`,
      );
    }
  }

  acknowledge(index: number): void {
    this.acknowledged = Math.max(this.acknowledged, index);
  }

  read(id: MemberId, floor: number, index: number): void {
    if (index < floor) throw new Broken(`Reads: ${id} answers a read at ${index}, and ${floor} was acknowledged before it`);
    this.acknowledge(index);
  }

  #follow(id: MemberId, raft: Raft, ready: Ready): void {
    for (const entry of ready.entries) {
      const before = raft.entryTerm(entry.index - 1);
      const content = `${JSON.stringify(entry.body.kind === "data" ? [...entry.body.data] : entry.body)} after term ${before ?? "?"}`;
      const key = `${entry.index}.${entry.term}`;
      const known = this.#entries.get(key);
      if (known === undefined || known.endsWith("?")) this.#entries.set(key, content);
      else if (known !== content && before !== undefined)
        throw new Broken(`Log Matching: entry ${key} of ${id} is ${content}, and was ${known}`);
    }
  }

  #complete(id: MemberId, raft: Raft, term: number): void {
    for (const [index, known] of this.#committed) {
      const here = raft.entryTerm(index);
      if (known.seenIn < term && index >= raft.firstHeld && here !== known.term) {
        throw new Broken(
          `Leader Completeness: ${id} leads in term ${term} without entry ${index} of term ${known.term} (has ${here ?? "none"})`,
        );
      }
    }
  }
}
