/**
 * Lists, in the order of keys, a directory before what is in it. A continuation names entries, never a position: what stayed where it was
 * is told once, whatever came and went meanwhile. Entries that one read brings are told as they were at its moment, so a rename between two
 * of them is told by one name.
 */
import { compareBytes, utf8 } from "@stamp/base";
import { decodeKey, type EntryAddress, encodeKey, type HeldEntry, type StepAnswer, type TreeRow } from "@stamp/objects";
import { ask, askOne, type Machine, type MachineContext, Refused } from "./machine.ts";
import { keyName } from "./names.ts";
import { resolve } from "./resolve.ts";
import { shown } from "./settle.ts";

export interface Listed {
  readonly path: readonly string[];
  readonly held: HeldEntry;
}

export interface ListPage {
  readonly entries: readonly Listed[];
  /** Where the next page begins; undefined: this is the last one. */
  readonly continuation?: Uint8Array | undefined;
  /** Ids of the directories that the list went on in, or went down to by `beginFrom`, from the listed one on. */
  readonly opened: readonly string[];
}

export interface ListOptions {
  readonly recursive: boolean;
  readonly entriesMax: number;
  readonly continuation?: Uint8Array | undefined;
  /** Names below the listed directory, at which the list begins, whether they are there or not. Several only if it is recursive. */
  readonly beginFrom?: readonly string[] | undefined;
  /** Beginning of the names that are told, of a list that is not recursive. Undefined: all. */
  readonly prefix?: string | undefined;
}

type Rows = NonNullable<StepAnswer["rows"]>;

/** A directory that is being listed. */
interface Frame {
  readonly directory: string;
  /** Its name as it was when the list came to it; of the first, empty. */
  readonly written: string;
  /** Key of the last entry that was told. */
  after: string;
  /** Entries behind `after` that this request has read, the next one last. */
  readonly ahead: Rows[number][];
  /** Returns the row of an entry that the read of those has covered. */
  beside: (at: EntryAddress) => { readonly row: TreeRow | undefined } | undefined;
  /** True if there may be entries behind those. */
  more: boolean;
}

const frameOf = (directory: string, written: string, after: string): Frame => ({
  directory,
  written,
  after,
  ahead: [],
  beside: () => undefined,
  more: true,
});

/** Entries that one page reads at most, whether it tells of them or not. */
export const listRowsMax = 5_000;
/** Reads that one page makes at most, one after another: each directory is at least one. */
export const listReadsMax = 1_000;
/** Entries of one directory that a recursive list reads ahead. They wait while the list is below one of them. */
const aheadMax = 256;

export function* list(context: MachineContext, path: readonly string[], options: ListOptions): Machine<ListPage> {
  const prefix = keyName(context.names, options.prefix ?? "");
  const first = yield* firstFrame(context, path, nameBefore(prefix));
  const stack = options.continuation ? yield* continued(context, first, framesOf(options.continuation)) : [first];
  const entries: Listed[] = options.continuation ? [] : yield* begun(context, stack, options);
  const opened = stack.map(({ directory }) => directory);
  yield* withoutRemoved(context, stack);
  let [rows, reads] = [0, 0];
  while (stack.length > 0) {
    const frame = stack.at(-1) as Frame;
    if (frame.ahead.length === 0 && !frame.more) {
      stack.pop();
      continue;
    }
    const room = Math.min(options.entriesMax - entries.length, listRowsMax - rows);
    if (room <= 0 || reads === listReadsMax) return { entries, opened, continuation: tokenOf(stack) };
    const next = frame.ahead.pop();
    if (!next) {
      reads++;
      yield* readAhead(frame, options.recursive ? Math.min(room, aheadMax) : room);
      continue;
    }
    const { name, row } = next;
    rows++;
    frame.after = name;
    if (!name.startsWith(prefix)) {
      if (compareBytes(utf8(name), utf8(prefix)) > 0) return { entries, opened };
      continue;
    }
    const held = yield* shown(context, { kind: "entry", directory: frame.directory, name }, { row, beside: frame.beside });
    if (!held) continue;
    entries.push({ path: [...stack.slice(1).map(({ written }) => written), held.name], held });
    if (held.kind === "directory" && options.recursive) stack.push(frameOf(held.id, held.name, ""));
  }
  return { entries, opened };
}

function* readAhead(frame: Frame, rowsMax: number): Machine<void> {
  const page: StepAnswer = yield* askOne({ kind: "page", directory: frame.directory, after: frame.after, rowsMax });
  const rows = page.rows ?? [];
  frame.ahead.push(...rows.toReversed());
  frame.more = page.more === true;
  frame.beside = besideOf(frame.directory, rows, frame);
}

/** Rows of one read are as they were at one moment: that it brings none of a name between says that nothing was there. */
function besideOf(directory: string, rows: Rows, { after, more }: Pick<Frame, "after" | "more">): Frame["beside"] {
  const byName = new Map(rows.flatMap(({ name, row }) => (row.begun || row.decided ? [[name, row] as const] : [])));
  const last = rows.at(-1)?.name;
  const isBefore = (name: string, other: string): boolean => compareBytes(utf8(name), utf8(other)) < 0;
  return ({ directory: of, name }) => {
    const isRead = of === directory && isBefore(after, name) && !(more && (last === undefined || isBefore(last, name)));
    return isRead ? { row: byName.get(name) } : undefined;
  };
}

/** Puts the names that the list begins at behind it, and returns the last one, if it is there. */
function* begun(context: MachineContext, stack: Frame[], { beginFrom = [], recursive, entriesMax }: ListOptions): Machine<Listed[]> {
  for (const [depth, name] of beginFrom.entries()) {
    const frame = stack.at(-1) as Frame;
    frame.after = keyName(context.names, name);
    const held = yield* shown(context, { kind: "entry", directory: frame.directory, name: frame.after });
    const isLast = depth === beginFrom.length - 1;
    if (!held || (!isLast && held.kind === "file")) return [];
    const path = [...stack.slice(1).map(({ written }) => written), held.name];
    if (held.kind === "directory" && recursive) stack.push(frameOf(held.id, held.name, ""));
    if (isLast) return entriesMax > 0 ? [{ path, held }] : [];
  }
  return [];
}

function* firstFrame(context: MachineContext, path: readonly string[], after: string): Machine<Frame> {
  const links = yield* resolve(context, path);
  return frameOf(links.at(-1)?.held.id ?? context.root, "", after);
}

/** A name that stands before every name with this prefix, and behind most that stand before those. */
function nameBefore(prefix: string): string {
  const characters = [...prefix];
  const last = characters.pop()?.codePointAt(0) ?? 0;
  // The code points between are no characters.
  const before = last === 0xe000 ? 0xd7ff : last - 1;
  return last === 0 ? characters.join("") : `${characters.join("")}${String.fromCodePoint(before)}\u{10ffff}`;
}

/**
 * Checks a continuation, which anybody can write: it is of the listed directory, and each directory below is still the entry that the frame
 * above told last. What is not is left out, with all below it.
 */
function* continued(context: MachineContext, { directory }: Frame, frames: Frame[]): Machine<Frame[]> {
  if (frames[0]?.directory !== directory) throw new Refused("badContinuation");
  const places = frames.slice(0, -1).map(({ directory, after: name }) => ({ kind: "entry", directory, name }) as const);
  const answers = yield* ask(...places.map((at) => ({ kind: "look", at }) as const));
  for (const [index, at] of places.entries()) {
    const held = yield* shown(context, at, { row: answers[index]?.row });
    if (held?.kind !== "directory" || held.id !== frames[index + 1]?.directory) return frames.slice(0, index + 1);
  }
  return frames;
}

/** Leaves out what hangs below a directory that was removed since the last page. */
function* withoutRemoved({ root }: MachineContext, stack: Frame[]): Machine<void> {
  const nodes = yield* ask(...stack.map(({ directory }) => ({ kind: "look", at: { kind: "directory", id: directory } }) as const));
  const removed = nodes.findIndex(({ row }, index) => (row ? row.removed : stack[index]?.directory !== root));
  if (removed >= 0) stack.length = removed;
}

/** A directory is mostly written as the frame above told it last: then it stands there only. */
const tokenOf = (stack: readonly Frame[]): Uint8Array =>
  encodeKey(stack.map(({ directory, written, after }, index) => [directory, written === stack[index - 1]?.after ? "" : written, after]));

/** Frames of a continuation that nests deeper than any path. */
const framesMax = 512;

/** Refuses what tokenOf never makes. */
function framesOf(token: Uint8Array): Frame[] {
  const components = decodeKey(token, framesMax);
  if (!components.ok || components.value.length === 0) throw new Refused("badContinuation");
  const frames: Frame[] = [];
  for (const [directory, written, after] of components.value) {
    if (typeof directory !== "string" || typeof written !== "string" || typeof after !== "string") throw new Refused("badContinuation");
    frames.push(frameOf(directory, written === "" ? (frames.at(-1)?.after ?? "") : written, after));
  }
  return frames;
}
