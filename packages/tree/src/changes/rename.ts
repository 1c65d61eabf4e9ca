/** Renames, of files and directories of any size. The target's entry is the primary. */
import {
  addressText,
  type Conditions,
  type HeldEntry,
  type HeldKind,
  type TreeOperation as Operation,
  type Participant,
} from "@stamp/objects";
import { type Machine, type MachineContext, mustBeAdmitted, Refused } from "../machine.ts";
import { type Place, placeOf } from "../resolve.ts";
import { freed, openDirectory } from "../settle.ts";
import { coordinate, mark } from "./coordinate.ts";
import { markRemoved } from "./remove.ts";

export interface RenameOptions {
  /** True: a file takes the place of a file, a directory that of an empty directory. */
  readonly replaces: boolean;
  /** False: a directory at the target was not there when the door looked, so nothing happens. Undefined: it is treated as `replaces` says. */
  readonly meetsDirectory?: boolean | undefined;
  /** Kind that the source has to be; undefined: either. */
  readonly kind?: HeldKind | undefined;
  readonly sourceConditions?: Conditions | undefined;
  /** True: the source may have a lease, which is checked also without conditions. A file's always is. */
  readonly mayBeLeased?: boolean | undefined;
  /** Conditions on a file or directory that is replaced. */
  readonly targetConditions?: Conditions | undefined;
  /** True: its lease keeps what would be replaced, unless the conditions have the lease's id. */
  readonly targetLeaseKeeps?: boolean | undefined;
}

interface Rename {
  readonly fromPath: readonly string[];
  readonly toPath: readonly string[];
  readonly from: Place;
  readonly to: Place;
  readonly moved: HeldEntry;
  readonly replaced: HeldEntry | undefined;
  readonly options: RenameOptions;
}

export function* rename(
  context: MachineContext,
  fromPath: readonly string[],
  toPath: readonly string[],
  options: RenameOptions,
): Machine<HeldEntry> {
  const from = yield* placeOf(context, fromPath);
  const to = yield* placeOf(context, toPath);
  const moved = (yield* freed(context, from.at))?.held;
  if (!moved) throw new Refused("notFound");
  if (options.kind !== undefined && options.kind !== moved.kind) throw new Refused(moved.kind === "file" ? "isFile" : "isDirectory");
  if (to.above.includes(moved.id)) throw new Refused("cycle");
  const inPlace = addressText(from.at) === addressText(to.at);
  const there = inPlace ? moved : (yield* freed(context, to.at))?.held;
  const replaced = inPlace ? undefined : there;
  for (const held of [moved, there]) if (held) mustBeAdmitted(context, held.id);
  if (replaced) mustTakeThePlace(moved, replaced, options);
  else mustBeThere(there, options);
  const rename: Rename = { fromPath, toPath, from, to, moved, replaced, options };
  const next: HeldEntry = { ...moved, name: to.written };
  const participants = inPlace ? conditionsOn(rename) : participantsOf(rename);
  yield* coordinate(context, { primary: to.at, expectedId: there?.id, next, participants }, (operation) =>
    inPlace ? markMoved(context, rename, operation) : prepare(context, rename, operation),
  );
  return next;
}

function mustTakeThePlace(moved: HeldEntry, replaced: HeldEntry, { replaces, meetsDirectory }: RenameOptions): void {
  if (meetsDirectory === false && replaced.kind === "directory") throw new Refused("changed");
  if (!replaces) throw new Refused("exists");
  if (moved.kind === replaced.kind) return;
  throw new Refused(replaced.kind === "directory" ? "isDirectory" : "isFile");
}

/** Conditions that only something at the target can fulfil. */
function mustBeThere(there: HeldEntry | undefined, { targetConditions: { ifMatch, leaseId } = {} }: RenameOptions): void {
  if (there) return;
  if (ifMatch !== undefined) throw new Refused("conditionNotMet", "ConditionNotMet");
  if (leaseId !== undefined) throw new Refused("conditionNotMet", "LeaseNotPresentWithBlobOperation");
}

const crosses = ({ moved, from, to }: Rename): boolean => moved.kind === "directory" && from.at.directory !== to.at.directory;

/** Without conditions only a file is marked: it may have a lease. */
const isChecked = ({ moved, options: { sourceConditions, mayBeLeased } }: Rename): boolean =>
  sourceConditions !== undefined &&
  (moved.kind === "file" || mayBeLeased === true || Object.values(sourceConditions).some((one) => one !== undefined));

const conditionsOn = (rename: Rename): Participant[] =>
  isChecked(rename) ? [{ at: { kind: rename.moved.kind, id: rename.moved.id }, fate: "release" }] : [];

const participantsOf = (rename: Rename): readonly Participant[] => [
  { at: rename.from.at, fate: "take" },
  ...(rename.replaced ? [{ at: { kind: rename.replaced.kind, id: rename.replaced.id }, fate: "take" } as const] : []),
  ...conditionsOn(rename),
  // Last: while the lock is held, the rows above are as the walk has seen them.
  ...(crosses(rename) ? [{ at: { kind: "lock" }, fate: "release" } as const] : []),
];

function* prepare(context: MachineContext, rename: Rename, operation: Operation): Machine<void> {
  const { from, to, moved, replaced, options } = rename;
  yield* openDirectory(context, to.at.directory);
  if (crosses(rename)) yield* mustNotMeetItself(context, rename, operation);
  if (replaced)
    yield* markRemoved(context, to.at, replaced, operation, {
      recursive: false,
      conditions: options.targetConditions,
      overLease: options.targetLeaseKeeps !== true,
    });
  yield* mark(context, from.at, operation, to.at, { id: moved.id, otherwise: "busy" });
  yield* markMoved(context, rename, operation);
  // A removal above the source has taken the source with it.
  const again = yield* placeOf(context, rename.fromPath);
  if (again.at.directory !== from.at.directory) throw new Refused("busy");
  yield* openDirectory(context, from.at.directory);
}

function* markMoved(context: MachineContext, rename: Rename, operation: Operation): Machine<void> {
  const { moved, to, options } = rename;
  if (!isChecked(rename)) return;
  const at = { kind: moved.kind, id: moved.id } as const;
  yield* mark(context, at, operation, to.at, { conditions: options.sourceConditions, otherwise: "busy" });
}

/** The way up from the target is read under the lock, which every directory that goes to another parent holds until it has arrived. */
function* mustNotMeetItself(context: MachineContext, rename: Rename, operation: Operation): Machine<void> {
  const { to, moved, toPath } = rename;
  if (context.rules.on("treeMoveLock")) yield* mark(context, { kind: "lock" }, operation, to.at, { otherwise: "busy" });
  const above = context.rules.on("treeWalkUnderLock") ? yield* placeOf(context, toPath) : to;
  if (above.at.directory !== to.at.directory) throw new Refused("busy");
  if (above.above.includes(moved.id)) throw new Refused("cycle");
}
