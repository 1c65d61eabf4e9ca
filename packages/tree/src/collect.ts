/**
 * Takes everything that hangs below removed directories, piece by piece. The collector removes each entry as anybody would (changes/remove.ts): an entry that
 * is being renamed away is settled first, so that nothing goes that has a name elsewhere.
 */

import { removeHeld } from "./changes/remove.ts";
import { askOne, type Machine, type MachineContext, Refused } from "./machine.ts";
import { freed, look } from "./settle.ts";

export interface Collected {
  /** Number of entries that were taken. */
  readonly taken: number;
  /** True if there is more in this directory. */
  readonly more: boolean;
}

/** Takes up to `entriesMax` entries of a removed directory; `context.removed` is told of directories among them. Takes nothing of any other. */
export function* collect(context: MachineContext, directory: string, entriesMax: number): Machine<Collected> {
  const node = yield* look({ kind: "directory", id: directory });
  const isRemoved = node?.removed === true || (node === undefined && directory !== context.root);
  if (!isRemoved && context.rules.on("treeCollectsRemoved")) return { taken: 0, more: false };
  const page = yield* askOne({ kind: "page", directory, after: "", rowsMax: entriesMax });
  let taken = 0;
  let busy = false;
  for (const { name } of page.rows ?? []) {
    const at = { kind: "entry", directory, name } as const;
    try {
      const held = (yield* freed(context, at))?.held;
      if (!held) continue;
      yield* removeHeld(context, at, held, { recursive: true });
      taken++;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      busy = true;
    }
  }
  return { taken, more: page.more === true || busy };
}

/** Forgets a removed directory that is empty. The caller owes: longer ago than any request lives. */
export function* forget(_context: MachineContext, directory: string): Machine<boolean> {
  const page = yield* askOne({ kind: "page", directory, after: "", rowsMax: 1 });
  if ((page.rows?.length ?? 0) > 0) return false;
  return (yield* askOne({ kind: "forget", at: { kind: "directory", id: directory } })).done;
}
