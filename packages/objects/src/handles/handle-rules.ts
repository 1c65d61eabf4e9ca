/**
 * Rules of handles: what one file's handles let others do. Pure: a state and a question, or a change of the state (docs/design/files.md).
 *
 * Invariants:
 * - of two handles with rights each shares what the other one may do; one without rights, for properties, is in nobody's way;
 * - a file that is marked for deletion is opened by nobody; the mark is final when the last handle is closed (rule `handlesDoomedIsFinal`).
 */
import type { Rules } from "@stamp/base";

export const readRight = 1;
export const writeRight = 2;
export const deleteRight = 4;
/** Rights that a request by REST shares with everybody. */
export const allRights = 7;

/** Byte-range lock. */
export interface FileLock {
  readonly startBytes: number;
  /** End of the range in bytes, exclusive. */
  readonly endBytes: number;
  /** True: nobody else reads or writes the range. False: nobody writes it. */
  readonly exclusive: boolean;
}

export interface FileHandle {
  /** Decimal digits. It is never used again. */
  readonly id: string;
  /** Name of the session that holds the handle, and the epoch of its lease. */
  readonly session: string;
  readonly sessionEpoch: number;
  /** Rights of the handle, a sum of `readRight`, `writeRight` and `deleteRight`. */
  readonly access: number;
  /** Rights that other handles and requests may use meanwhile: the share mode. */
  readonly share: number;
  readonly deleteOnClose: boolean;
  /** Client of the gateway, as List Handles shows it. */
  readonly client: string;
  /** Time at which the file was opened, in milliseconds since 1970. */
  readonly openedMs: number;
  readonly locks: readonly FileLock[];
}

/** Handles of one file. */
export interface OpenFile {
  /** True if the file is marked for deletion: it goes with its last handle. */
  readonly pending: boolean;
  readonly handles: readonly FileHandle[];
  /** Entry under which the file was opened last, or to which it was renamed since: id of its directory, and name as keys have it. */
  readonly directoryId: string;
  readonly entryName: string;
}

export const notOpen: OpenFile = { pending: false, handles: [], directoryId: "", entryName: "" };

/** True if nothing is left but to remove the file: nobody can take the mark back. */
export const isDoomed = ({ pending, handles }: OpenFile): boolean => pending && handles.length === 0;

/** Rights and bytes that an operation on a file needs. */
export interface Need {
  /** Rights that the operation uses. */
  readonly access: number;
  /** Rights that handles may have beside it. */
  readonly share: number;
  /** Handle by which it is asked; undefined: by REST. */
  readonly handleId?: string | undefined;
  /** Bytes that it reads or writes. Undefined: none that a lock could protect. */
  readonly range?: { readonly startBytes: number; readonly endBytes: number; readonly writes: boolean } | undefined;
}

export type HandleRefusal =
  | "DeletePending"
  | "SharingViolation"
  | "FileLockConflict"
  /** The handle was closed, or its session has ended. */
  | "ResourceNotFound"
  /** The handle was not opened for this, or there are too many. */
  | "InvalidOperation";

const meets = (lock: FileLock, range: { readonly startBytes: number; readonly endBytes: number }): boolean =>
  lock.startBytes < range.endBytes && range.startBytes < lock.endBytes;

/** Returns why the operation has to wait for those who hold the file; undefined: it may go on. */
export function refusalOf(file: OpenFile, { access, share, handleId, range }: Need): HandleRefusal | undefined {
  const own = file.handles.find(({ id }) => id === handleId);
  if (handleId !== undefined) {
    if (!own) return "ResourceNotFound";
    if ((access & ~own.access) !== 0) return "InvalidOperation";
    // A file is deleted or renamed under all of its handles.
    const others = file.handles.filter((one) => one !== own && one.access !== 0);
    if ((access & deleteRight) !== 0 && others.some((one) => (one.share & deleteRight) === 0)) return "SharingViolation";
  } else {
    if (file.pending) return "DeletePending";
    const isInTheWay = (one: FileHandle): boolean => (access & ~one.share) !== 0 || (one.access & ~share) !== 0;
    if (file.handles.some((one) => one.access !== 0 && isInTheWay(one))) return "SharingViolation";
  }
  return range && locked(file, range, own) ? "FileLockConflict" : undefined;
}

/** True if the range is locked; a shared lock keeps out writes of its own handle, too. */
const locked = (file: OpenFile, range: NonNullable<Need["range"]>, own: FileHandle | undefined): boolean =>
  file.handles.some((one) => one.locks.some((lock) => meets(lock, range) && (lock.exclusive ? one !== own : range.writes)));

/** Open handles of one file, and locks of all of them, at most. */
export const handlesMax = 1_000;
export const locksMax = 1_000;

export type ChangedFile = { readonly file: OpenFile } | { readonly refused: HandleRefusal };

/** Opens the file. A second sending of the same handle changes nothing. */
export function opened(rules: Rules, file: OpenFile, handle: FileHandle, at: Pick<OpenFile, "directoryId" | "entryName">): ChangedFile {
  if (file.handles.some(({ id }) => id === handle.id)) return { file };
  const revives = isDoomed(file) && !rules.on("handlesDoomedIsFinal");
  const share = handle.access === 0 ? allRights : handle.share;
  const refused = revives ? undefined : refusalOf(file, { access: handle.access, share });
  if (refused) return { refused };
  if (file.handles.length >= handlesMax) return { refused: "InvalidOperation" };
  return { file: { ...at, pending: file.pending && !revives, handles: [...file.handles, { ...handle, locks: [] }] } };
}

/** Closes handles. What is not there is closed already. */
export function closed(file: OpenFile, goes: (handle: FileHandle) => boolean): OpenFile {
  const gone = file.handles.filter(goes);
  if (gone.length === 0) return file;
  const pending = file.pending || gone.some(({ deleteOnClose }) => deleteOnClose);
  return { ...file, pending, handles: file.handles.filter((handle) => !goes(handle)) };
}

/** Sets the entry that names the file, under which it is removed. Nothing is kept of a file that nobody has open. */
export function named(file: OpenFile, { directoryId, entryName }: Pick<OpenFile, "directoryId" | "entryName">): OpenFile {
  const isKnown = file.directoryId === directoryId && file.entryName === entryName;
  const isOpen = file.pending || file.handles.length > 0;
  return isKnown || !isOpen ? file : { ...file, directoryId, entryName };
}

const replaced = (file: OpenFile, id: string, change: (handle: FileHandle) => FileHandle): OpenFile => ({
  ...file,
  handles: file.handles.map((handle) => (handle.id === id ? change(handle) : handle)),
});

/** Locks a range. Ranges of one handle may not meet either, unless the later one is shared. */
export function withLock(file: OpenFile, id: string, lock: FileLock): ChangedFile {
  const own = file.handles.find((handle) => handle.id === id);
  if (!own) return { refused: "ResourceNotFound" };
  const isFor = (own.access & (readRight | writeRight)) !== 0;
  if (!isFor || lock.endBytes <= lock.startBytes) return { refused: "InvalidOperation" };
  const isInTheWay = (one: FileLock, isOwn: boolean): boolean => meets(one, lock) && (lock.exclusive || (one.exclusive && !isOwn));
  if (file.handles.some((handle) => handle.locks.some((one) => isInTheWay(one, handle.id === id)))) return { refused: "FileLockConflict" };
  if (file.handles.reduce((sum, { locks }) => sum + locks.length, 0) >= locksMax) return { refused: "InvalidOperation" };
  return { file: replaced(file, id, (handle) => ({ ...handle, locks: [...handle.locks, lock] })) };
}

/** Takes one lock away, which has to have exactly this range. */
export function withoutLock(file: OpenFile, id: string, { startBytes, endBytes }: FileLock): ChangedFile {
  const own = file.handles.find((handle) => handle.id === id);
  const at = own?.locks.findIndex((lock) => lock.startBytes === startBytes && lock.endBytes === endBytes) ?? -1;
  if (!own || at < 0) return { refused: "ResourceNotFound" };
  return { file: replaced(file, id, (handle) => ({ ...handle, locks: handle.locks.filter((_, index) => index !== at) })) };
}

/** Marks the file for deletion, or takes the mark back. */
export function disposed(file: OpenFile, id: string, pending: boolean): ChangedFile {
  const own = file.handles.find((handle) => handle.id === id);
  if (!own) return { refused: "ResourceNotFound" };
  if ((own.access & deleteRight) === 0) return { refused: "InvalidOperation" };
  return { file: { ...replaced(file, id, (handle) => ({ ...handle, deleteOnClose: handle.deleteOnClose && pending })), pending } };
}
