/** Files and directories are removed. The entry is the primary. */
import type { Conditions, EntryAddress, HeldEntry, TreeOperation as Operation, StepAnswer } from "@stamp/objects";
import { askOne, type Machine, type MachineContext, mustBeAdmitted, Refused } from "../machine.ts";
import { placeOf } from "../resolve.ts";
import { freed } from "../settle.ts";
import { coordinate, mark } from "./coordinate.ts";

export interface RemoveOptions {
  readonly kind: "file" | "directory" | "either";
  /** True: also a directory that is not empty. */
  readonly recursive: boolean;
  readonly conditions?: Conditions | undefined;
}

export function* remove(context: MachineContext, path: readonly string[], options: RemoveOptions): Machine<HeldEntry> {
  const { at } = yield* placeOf(context, path);
  const held = (yield* freed(context, at))?.held;
  if (!held) throw new Refused("notFound");
  mustBeAdmitted(context, held.id);
  if (options.kind === "file" && held.kind === "directory") throw new Refused("isDirectory");
  if (options.kind === "directory" && held.kind === "file") throw new Refused("isFile");
  yield* removeHeld(context, at, held, options);
  return held;
}

/** Removes the file or directory with this id if the entry still holds it, whatever stands in the way of clients. True: it is gone. */
export function* removeKnown(context: MachineContext, at: EntryAddress, id: string): Machine<boolean> {
  const held = (yield* freed(context, at))?.held;
  if (held?.id !== id) return false;
  yield* removeHeld(context, at, held, { recursive: false });
  return true;
}

/** Removes what the entry holds. With `recursive` a directory goes with all below it, which the collector takes (collect.ts). */
export function* removeHeld(
  context: MachineContext,
  at: EntryAddress,
  held: HeldEntry,
  { recursive, conditions }: Pick<RemoveOptions, "recursive" | "conditions">,
): Machine<void> {
  const node = { kind: held.kind, id: held.id } as const;
  const condemns = held.kind === "directory" && recursive && conditions === undefined;
  const participants = [{ at: node, fate: condemns ? ("condemn" as const) : ("take" as const) }];
  yield* coordinate(context, { primary: at, expectedId: held.id, participants }, function* (operation) {
    if (!condemns) yield* markRemoved(context, at, held, operation, { recursive, conditions });
  });
}

/** Marks the node that the operation removes. A directory that must be empty is marked before it is looked into. */
export function* markRemoved(
  context: MachineContext,
  primary: EntryAddress,
  held: HeldEntry,
  operation: Operation,
  { recursive, conditions, overLease }: Pick<RemoveOptions, "recursive" | "conditions"> & { readonly overLease?: boolean },
): Machine<void> {
  const looks = held.kind === "directory" && !recursive;
  const first = context.rules.on("treeMarkBeforeLook");
  if (looks && !first) yield* mustBeEmpty(context, held.id);
  yield* mark(context, { kind: held.kind, id: held.id }, operation, primary, { conditions, overLease, otherwise: "busy" });
  if (looks && first) yield* mustBeEmpty(context, held.id);
}

/** Number of entries that are read at once. They are there only if others left them in the middle of an operation. */
const lookRows = 16;

function* mustBeEmpty(context: MachineContext, directory: string): Machine<void> {
  let after = "";
  for (;;) {
    const page: StepAnswer = yield* askOne({ kind: "page", directory, after, rowsMax: lookRows });
    for (const { name, row } of page.rows ?? []) {
      const isEntry = row.held || (context.rules.on("treeBegunIsEntry") && row.begun) || row.decided?.next;
      if (!isEntry) continue;
      if (isEntry && !row.mark && !row.begun) throw new Refused("notEmpty");
      const free = yield* freedOr(context, { kind: "entry", directory, name });
      if (free === "busy" || free?.held) throw new Refused("notEmpty");
    }
    if (!page.more) return;
    after = page.rows?.at(-1)?.name ?? after;
  }
}

function* freedOr(context: MachineContext, at: EntryAddress) {
  try {
    return yield* freed(context, at);
  } catch (error) {
    if (error instanceof Refused && error.result.refusal === "busy") return "busy" as const;
    throw error;
  }
}
