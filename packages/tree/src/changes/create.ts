/** Files and directories are made: the node and the beginning at the entry first, then the directory's node is read, then it is decided. */
import type { HeldEntry, HeldKind } from "@stamp/objects";
import { askOne, type Machine, type MachineContext, Refused } from "../machine.ts";
import { placeOf } from "../resolve.ts";
import { freed, openDirectory } from "../settle.ts";
import { coordinate } from "./coordinate.ts";

/**
 * Makes what the path names, which must not be there. Nobody sees it before the directory is known to be open: otherwise others could put
 * something into it, and a removal of the directory above take both. `made.id`: id under which the door has written content before. The door
 * may ask again with this id after a refusal other than `unknown`, so the node stays: the door condemns the node when it asks no more.
 */
export function* create(
  context: MachineContext,
  path: readonly string[],
  kind: HeldKind,
  made: { readonly id?: string; readonly given?: Uint8Array | undefined } = {},
): Machine<HeldEntry> {
  const { at, written } = yield* placeOf(context, path);
  const free = yield* freed(context, at);
  if (free?.held) throw new Refused("exists");
  const held: HeldEntry = { kind, id: made.id ?? context.newId(), name: written };
  const node = { kind, id: held.id } as const;
  yield* askOne({ kind: "make", at: node, given: made.given });
  const looksLater = context.rules.on("treeWriteBeforeLook");
  try {
    if (!looksLater) yield* openDirectory(context, at.directory);
    yield* coordinate(context, { primary: at, expectedId: undefined, next: held, participants: [] }, function* () {
      if (looksLater) yield* openDirectory(context, at.directory);
    });
  } catch (error) {
    // Nobody will ever come to the node by a name. Where that is not known it stays.
    const isOver = made.id === undefined && error instanceof Refused && error.result.refusal !== "unknown";
    if (isOver) yield* askOne({ kind: "condemn", at: node, operation: held.id });
    throw error;
  }
  return held;
}
