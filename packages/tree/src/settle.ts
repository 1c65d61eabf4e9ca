/**
 * Rows that belong to an operation of somebody else: what they show, and how they become free.
 *
 *   primary says    marked row shows       whoever must change the row
 *   begun           what it holds          gives the operation up at the primary first, then the mark goes
 *   decided         nothing (entry)        does what the operation decided
 *   neither         look at it again: a mark that is still there is dead, for the primary ended without it
 */
import {
  type TreeAddress as Address,
  addressText,
  type EntryAddress,
  type HeldEntry,
  type TreeOperation as Operation,
  type Participant,
  type TreeRow,
} from "@stamp/objects";
import { askOne, attemptsMax, type Machine, type MachineContext, Refused } from "./machine.ts";

export function* look(at: Address): Machine<TreeRow | undefined> {
  return (yield* askOne({ kind: "look", at })).row;
}

/** Row of an entry that was read before; `row` undefined: nothing was there. */
export interface ReadRow {
  readonly row: TreeRow | undefined;
  /** Returns the row of another entry if it was read at the same moment: its operation shows what it showed then. */
  readonly beside?: ((at: EntryAddress) => Pick<ReadRow, "row"> | undefined) | undefined;
}

/** Returns what the entry holds at some time after this was called, or when `read` was; undefined: nothing. */
export function* shown({ rules }: MachineContext, at: EntryAddress, read?: ReadRow): Machine<HeldEntry | undefined> {
  let row = read ? read.row : yield* look(at);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    if (row?.decided) return row.decided.next;
    if (!row?.mark || !rules.on("treeMarksAskPrimary")) return row?.held;
    const { operation, primary } = row.mark;
    const then = attempt === 0 ? read?.beside?.(primary) : undefined;
    if (then) return then.row?.decided?.id === operation && fateOf(then.row.decided, at) === "take" ? undefined : row.held;
    const first = yield* look(primary);
    if (first?.decided?.id === operation) return fateOf(first.decided, at) === "take" ? undefined : row.held;
    if (first?.begun?.id === operation || !rules.on("treeMarksReadAgain")) return row.held;
    const again: TreeRow | undefined = yield* look(at);
    if (again?.mark?.operation === operation) return again.held;
    row = again;
  }
  throw new Refused("busy");
}

const fateOf = (operation: Operation, at: Address) =>
  operation.participants.find((each) => addressText(each.at) === addressText(at))?.fate ?? "release";

/** Frees the row of every operation, and returns the row as it was when it was free. Refuses with `busy` where a coordinator is at work. */
export function* freed(context: MachineContext, at: Address): Machine<TreeRow | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const row: TreeRow | undefined = yield* look(at);
    if (at.kind === "entry" && row?.decided) yield* finish(context, at, row.decided);
    else if (at.kind === "entry" && row?.begun) yield* giveUp(context, at, row.begun);
    else if (row?.mark) yield* unmarked(context, at, row.mark.operation, row.mark.primary);
    else return row;
  }
  throw new Refused("busy");
}

/** Ends a decided operation: every marked row first, then its primary, so that a mark can always ask. */
export function* finish(context: MachineContext, primary: EntryAddress, operation: Operation): Machine<void> {
  const { rules } = context;
  if (rules.on("treePrimaryFinished")) for (const participant of operation.participants) yield* fulfil(context, participant, operation.id);
  yield* askOne({ kind: "end", at: primary, operation: operation.id });
}

function* fulfil({ removed }: MachineContext, { at, fate }: Participant, operation: string): Machine<void> {
  yield* askOne({ kind: fate, at, operation });
  if (fate !== "release" && at.kind === "directory") removed?.(at.id);
}

function* giveUp({ mayGiveUp }: MachineContext, primary: EntryAddress, operation: Operation): Machine<void> {
  if (!mayGiveUp(operation)) throw new Refused("busy");
  yield* askOne({ kind: "giveUp", at: primary, operation: operation.id });
}

function* unmarked(context: MachineContext, at: Address, operation: string, primary: EntryAddress): Machine<void> {
  const first = yield* look(primary);
  if (first?.decided?.id === operation) {
    yield* fulfil(context, { at, fate: fateOf(first.decided, at) }, operation);
    return;
  }
  if (first?.begun?.id === operation) {
    if (context.rules.on("treeMarksOutliveClocks")) {
      yield* giveUp(context, primary, first.begun);
      // It may have been decided before: the next look tells.
      return;
    }
  }
  yield* releaseDead(at, operation);
}

/** The primary was seen without the operation, but perhaps before it was decided and ended: only a mark that outlived that is dead. */
function* releaseDead(at: Address, operation: string): Machine<void> {
  const again = yield* look(at);
  if (again?.mark?.operation === operation) yield* askOne({ kind: "release", at, operation });
}

/**
 * Refuses with `notFound` if nothing can be put into the directory any more. Called after the caller's entry is written, so that a removal
 * sees the entry, or the caller sees the removal. A removal that is not decided is given up: the directory is not empty.
 */
export function* openDirectory({ root }: MachineContext, directory: string): Machine<void> {
  const at: Address = { kind: "directory", id: directory };
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const row: TreeRow | undefined = yield* look(at);
    // The root has a row only once something is kept of it, and is never removed.
    if (!row && directory === root) return;
    if (!row || row.removed) throw new Refused("notFound");
    if (!row.mark) return;
    const { operation, primary } = row.mark;
    const first = yield* look(primary);
    const owner = first?.decided?.id === operation ? first.decided : first?.begun?.id === operation ? first.begun : undefined;
    // A directory that is renamed under conditions is marked too, and stays.
    if (owner && fateOf(owner, at) === "release") return;
    if (owner && owner === first?.decided) throw new Refused("notFound");
    if (owner) yield* askOne({ kind: "giveUp", at: primary, operation });
    else yield* releaseDead(at, operation);
  }
  throw new Refused("busy");
}
