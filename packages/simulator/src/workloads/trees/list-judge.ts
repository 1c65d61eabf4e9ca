/** Judges a list: what stayed where it was, with all above it, while the list went on is told once. */
import type { TreeChange } from "./tree-change.ts";

export interface ListCall {
  /** Id of the listed directory. */
  readonly root: string;
  readonly calledAt: number;
  readonly returnedAt: number;
  /** Ids, in the order in which the list told of them. */
  readonly told: readonly string[];
}

/** Returns a breach in words. Looks at directories that nothing may have been done to. */
export function untoldEntry({ root, calledAt, returnedAt, told }: ListCall, changes: readonly TreeChange[]): string | undefined {
  const byDirectory = stayed(changes, calledAt, returnedAt);
  const open = [root];
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    for (const [name, id] of byDirectory.get(directory) ?? []) {
      const times = told.filter((each) => each === id).length;
      const between = `between ${calledAt.toFixed(0)} and ${returnedAt.toFixed(0)} ms`;
      if (times !== 1) return `a list ${between} tells ${times} times of ${id}, which is ${name} in ${directory} all the time`;
      open.push(id);
    }
  }
  return undefined;
}

/** Returns the names of each directory that held the same from before the first time until after the second one, for certain. */
function stayed(changes: readonly TreeChange[], fromMs: number, toMs: number): ReadonlyMap<string, ReadonlyMap<string, string>> {
  interface Slot {
    readonly directory: string;
    readonly name: string;
    last: { readonly id: string | undefined; readonly calledAt: number; readonly returnedAt: number } | undefined;
    isSure: boolean;
  }
  const slots = new Map<string, Slot>();
  const sorted = [...changes].sort((a, b) => (a.returnedAt ?? Number.POSITIVE_INFINITY) - (b.returnedAt ?? Number.POSITIVE_INFINITY));
  for (const { decides, calledAt, returnedAt = Number.POSITIVE_INFINITY } of sorted) {
    const { next, participants } = decides.operation;
    const taken = participants.flatMap(({ at, fate }) => (at.kind === "entry" && fate === "take" ? [at] : []));
    for (const [at, id] of [[decides.at, next?.id] as const, ...taken.map((each) => [each, undefined] as const)]) {
      const key = `${at.directory}/${at.name}`;
      const slot: Slot = slots.get(key) ?? { directory: at.directory, name: at.name, last: undefined, isSure: true };
      slots.set(key, slot);
      if (calledAt > toMs) continue;
      // Nobody knows which of two changes beside each other was the last.
      if (returnedAt >= fromMs) slot.isSure = false;
      else if (slot.last && calledAt <= slot.last.returnedAt) slot.last = { id: undefined, calledAt, returnedAt };
      else slot.last = { id, calledAt, returnedAt };
    }
  }
  const found = new Map<string, Map<string, string>>();
  for (const { directory, name, last, isSure } of slots.values()) {
    if (!isSure || last?.id === undefined) continue;
    const names = found.get(directory) ?? new Map<string, string>();
    found.set(directory, names.set(name, last.id));
  }
  return found;
}
