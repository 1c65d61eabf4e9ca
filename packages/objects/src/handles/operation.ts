/** A change of the handles of a file and its answer, as values. */
import type { BlobName } from "../object-keys.ts";
import type { FileHandle, FileLock, HandleRefusal, OpenFile } from "./handle-rules.ts";

export interface HandleStep {
  readonly name: BlobName;
  /** open, close, closeAll, end, named, lock, unlock, dispose or list. */
  readonly action: string;
  /** New handle of an open. Close, lock, unlock and dispose look at its id only. */
  readonly handle?: FileHandle | undefined;
  /** Range of lock and unlock. */
  readonly lock?: FileLock | undefined;
  /** True if a dispose marks the file for deletion; false if it takes the mark back. */
  readonly pending: boolean;
  /** Session of an end, which is recorded for its lease up to this epoch. */
  readonly session: string;
  readonly sessionEpoch: number;
  /** Entry that names the file: of open and named. */
  readonly directoryId: string;
  readonly entryName: string;
}

export interface HandlesAnswer {
  /** Why nothing was changed; undefined: it was, or there was nothing to change. */
  readonly refused?: HandleRefusal | "ReadOnlyAttribute" | undefined;
  /** The handles after the step. */
  readonly file: OpenFile;
  /** Length of the file in bytes; 0: there is none. */
  readonly lengthBytes: number;
}
