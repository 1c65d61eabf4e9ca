/**
 * Judges a tree of directories by what its clients sent and read. The reference tree is a model of cells: one for each name in each directory,
 * which holds an id or nothing, and one for each directory, which says that it was removed. An operation changes its cells at one moment
 * between the sending of its decision and the answer to it: a rename both names, a creation a name of an open directory, a removal of an
 * empty directory its name and the directory, all of whose names hold nothing. One order of all changes must explain every read.
 *
 * What was removed recursively is emptied by the collector at any time: names in directories that were ever put below it are left out, if
 * they can't be reached in the end. A directory that can be reached was never removed, so nobody may have taken anything from it.
 */
import { type BatchCall, batchModel, checkHistory, describeVerdict, type RecordedOperation } from "@stamp/linearizability";
import type { EntryAddress, HeldKind, Step, StepAnswer } from "@stamp/objects";
import type { Machine } from "@stamp/tree";
import { type ListCall, untoldEntry } from "./list-judge.ts";
import type { TreeChange } from "./tree-change.ts";

export interface EntryRead {
  readonly directory: string;
  readonly name: string;
  /** Id that the name stands for; undefined: nothing. */
  readonly id: string | undefined;
  readonly calledAt: number;
  readonly returnedAt: number;
}

export interface KnownNode {
  readonly kind: HeldKind;
  readonly id: string;
}

/** Entries that can be reached in the end, by directory id; the root's among them. */
export type ReachedTree = ReadonlyMap<string, readonly KnownNode[]>;

export class TreeJudge {
  readonly #nowMs: () => number;
  readonly #names: readonly string[];
  readonly #expected = new Map<string, string | undefined>();
  readonly #changes = new Map<string, TreeChange>();
  readonly #reads: EntryRead[] = [];
  readonly #lists: ListCall[] = [];
  /** Everything that ever got a node. */
  readonly nodes: Map<string, KnownNode> = new Map();
  readonly #numbers = new Map<string, number>();
  readonly #cells = new Map<string, number>();

  /** `names`: all that a directory ever holds. */
  constructor(nowMs: () => number, names: readonly string[]) {
    this.#nowMs = nowMs;
    this.#names = names;
  }

  /** Runs the machine, and records what it decides. */
  *recorded<T>(machine: Machine<T>): Machine<T> {
    let turn = machine.next();
    while (!turn.done) {
      const steps = turn.value;
      for (const step of steps) this.#sent(step);
      const answers = yield steps;
      for (const [index, step] of steps.entries()) this.#answered(step, answers[index]);
      turn = machine.next(answers);
    }
    return turn.value;
  }

  read(read: EntryRead): void {
    this.#reads.push(read);
  }

  listed(list: ListCall): void {
    this.#lists.push(list);
  }

  /** True if the file or directory got its name for certain. */
  wasNamed(id: string): boolean {
    return [...this.#changes.values()].some(({ decides, returnedAt }) => decides.operation.next?.id === id && returnedAt !== undefined);
  }

  /** Ids of directories that were ever put below one that may have been removed recursively, and of that one. */
  belowRemoved(): ReadonlySet<string> {
    const below = new Map<string, string[]>();
    const found: string[] = [];
    for (const { decides } of this.#changes.values()) {
      const { next, participants } = decides.operation;
      if (next?.kind === "directory") below.set(decides.at.directory, [...(below.get(decides.at.directory) ?? []), next.id]);
      for (const { at, fate } of participants) if (fate === "condemn" && at.kind === "directory") found.push(at.id);
    }
    const all = new Set<string>();
    for (let id = found.pop(); id !== undefined; id = found.pop()) {
      if (all.has(id)) continue;
      all.add(id);
      found.push(...(below.get(id) ?? []));
    }
    return all;
  }

  /** Returns a breach. `undecided` is told if the search met its bounds. */
  check(reached: ReachedTree, undecided: () => void): string | undefined {
    const below = this.belowRemoved();
    const isJudged = (directory: string): boolean => reached.has(directory) || !below.has(directory);
    const history: RecordedOperation<BatchCall>[] = [];
    for (const change of this.#changes.values()) {
      const changes = this.#cellsOf(change).filter(({ directory }) => isJudged(directory));
      const { calledAt, returnedAt } = change;
      const cells = changes.map(({ cell, from, to }) => ({ cell, from, to }));
      if (cells.length > 0) {
        history.push({ call: { kind: "batch", changes: cells, done: returnedAt === undefined ? undefined : true }, calledAt, returnedAt });
      }
    }
    for (const { directory, name, id, calledAt, returnedAt } of this.#reads) {
      if (!isJudged(directory)) continue;
      history.push({ call: { kind: "read", first: this.#cell(directory, name), values: [this.#number(id)] }, calledAt, returnedAt });
    }
    const model = batchModel(this.#cells.size);
    const verdict = checkHistory(model, history);
    if (verdict.kind === "violation") return `${describeVerdict(model, verdict)}\n${this.#legend()}`;
    if (verdict.kind === "unknown") undecided();
    for (const list of this.#lists) {
      const breach = untoldEntry(list, [...this.#changes.values()]);
      if (breach !== undefined) return breach;
    }
    return undefined;
  }

  #sent(step: Step): void {
    if (step.kind === "make") this.nodes.set(step.at.id, step.at);
    if (step.kind === "begin") this.#expected.set(step.operation.id, step.expectedId);
    if (step.kind !== "decide" || this.#changes.has(step.operation.id)) return;
    const expectedId = this.#expected.get(step.operation.id);
    this.#changes.set(step.operation.id, { decides: step, expectedId, calledAt: this.#nowMs(), returnedAt: undefined });
  }

  /** After an answer that was lost, a refusal says nothing: others may have ended the operation. */
  #answered(step: Step, answer: StepAnswer | undefined): void {
    if (step.kind !== "decide") return;
    const { id } = step.operation;
    const change = this.#changes.get(id);
    if (answer?.done && change) change.returnedAt = this.#nowMs();
    else if (answer && !this.#lost.has(id)) this.#changes.delete(id);
    else this.#lost.add(id);
  }

  readonly #lost = new Set<string>();

  #cellsOf({ decides: { at, operation }, expectedId }: TreeChange) {
    const { next, participants } = operation;
    const before = this.#number(expectedId);
    const changes = [this.#change(at, before, this.#number(next?.id))];
    // A name comes into an open directory only.
    if (next && next.id !== expectedId) changes.push(this.#change({ directory: at.directory, name: "" }, 0, 0));
    for (const { at: place, fate } of participants) {
      if (fate !== "take") continue;
      if (place.kind === "entry") changes.push(this.#change(place, this.#number(next?.id), 0));
      if (place.kind !== "directory") continue;
      changes.push(this.#change({ directory: place.id, name: "" }, 0, 1));
      for (const name of this.#names) changes.push(this.#change({ directory: place.id, name }, 0, 0));
    }
    return changes;
  }

  #change({ directory, name }: Omit<EntryAddress, "kind">, from: number, to: number) {
    return { directory, cell: this.#cell(directory, name), from, to };
  }

  #cell(directory: string, name: string): number {
    return numbered(this.#cells, `${directory}/${name}`, 0);
  }

  #number(id: string | undefined): number {
    return id === undefined ? 0 : numbered(this.#numbers, id, 1);
  }

  #legend(): string {
    const cells = [...this.#cells].map(([place, cell]) => `${cell}: ${place}`);
    return `cells ${cells.join(", ")}; values ${[...this.#numbers].map(([id, number]) => `${number}: ${id}`).join(", ")}`;
  }
}

function numbered(numbers: Map<string, number>, text: string, first: number): number {
  const known = numbers.get(text);
  if (known !== undefined) return known;
  const number = numbers.size + first;
  numbers.set(text, number);
  return number;
}
