/**
 * How far an import is, in a file: a later run goes on there.
 *
 * Invariant: one run at a time has the file. A lock beside it names the process that has it.
 */
import { readFile, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CommandError, exitCodes } from "../exit.ts";
import { plainSize, writeWhole } from "./folder/files.ts";
import { lockFile } from "./import-lock.ts";
import { type ItemCounts, noCounts, type SourcePosition } from "./items.ts";

interface State {
  readonly format: "stamp-import";
  readonly version: 1;
  /** Names of what is imported, and of the account that it goes to: the file holds for nothing else. */
  readonly source: string;
  readonly target: string;
  readonly options: string;
  /** Number of the folder of the file in its file system: a copy of the folder holds for no account. */
  readonly folder: string;
  readonly position: SourcePosition;
  readonly counts: ItemCounts;
  /** Container, table or queue that was not there before this import, and that is being made; absent: none yet. */
  readonly making?: string;
}

type Head = Pick<State, "source" | "target" | "options" | "folder">;

/** Shortest time between two writes of the file, in milliseconds. */
const everyMs = 1_000;
const bytesMax = 1024 * 1024;

export class ImportState {
  /** True if an earlier run has begun. */
  readonly isBegun: boolean;
  readonly from: SourcePosition;
  readonly counts: ItemCounts;
  readonly #path: string;
  readonly #head: Head;
  readonly #unlock: () => Promise<void>;
  #latest: Pick<State, "position" | "counts">;
  #making: string | undefined;
  #savedMs = 0;

  private constructor(path: string, head: Head, found: State | undefined, unlock: () => Promise<void>) {
    this.#path = path;
    this.#head = head;
    this.#unlock = unlock;
    this.isBegun = found !== undefined;
    this.from = found?.position ?? {};
    this.counts = { ...noCounts(), ...found?.counts };
    this.#latest = { position: this.from, counts: this.counts };
    this.#making = found?.making;
  }

  /** Refuses a file that another run has, or that is of another import. */
  static async open({ path, ...named }: Omit<Head, "folder"> & { readonly path: string }): Promise<ImportState> {
    const unlock = await lockFile(path);
    try {
      const head = { ...named, folder: String((await stat(dirname(path), { bigint: true })).ino) };
      return new ImportState(path, head, await foundFor(path, head), unlock);
    } catch (error) {
      await unlock();
      throw error;
    }
  }

  /** The counts are those at the position. */
  async save(position: SourcePosition, counts: ItemCounts, now: boolean): Promise<void> {
    this.#latest = { position, counts: { ...counts } };
    if (now || performance.now() - this.#savedMs >= everyMs) await this.#write();
  }

  /** Returns true if this import makes the thing, or has begun to: that is on disk when it returns. `isThere` looks for it in the account. */
  async makes(what: string, isThere: () => Promise<boolean>): Promise<boolean> {
    if (this.#making === what) return true;
    if (await isThere()) return false;
    this.#making = what;
    await this.#write();
    return true;
  }

  async #write(): Promise<void> {
    const making = this.#making === undefined ? {} : { making: this.#making };
    const state: State = { format: "stamp-import", version: 1, ...this.#head, ...this.#latest, ...making };
    await writeWhole(this.#path, `${JSON.stringify(state, null, 2)}\n`);
    this.#savedMs = performance.now();
  }

  /** Ends the import: the next one begins anew. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }

  /** Lets another run have the file. */
  async close(): Promise<void> {
    await this.#unlock();
  }
}

async function foundFor(path: string, { source, target, options, folder }: Head): Promise<State | undefined> {
  const found = await stateIn(path);
  if (found === undefined) return undefined;
  if (found.source !== source || found.target !== target || found.options !== options)
    throw new CommandError(
      `${path} is of another import (${found.source} into ${found.target}${found.options === "" ? "" : `, ${found.options}`}): run that to its end, or remove the file`,
      exitCodes.usage,
    );
  if (found.folder !== folder)
    throw new CommandError(
      `${path} was begun in another folder, and came here with a copy: remove the file to import everything`,
      exitCodes.usage,
    );
  return found;
}

async function stateIn(path: string): Promise<State | undefined> {
  let text: string;
  try {
    if ((await plainSize(path)) > bytesMax)
      throw new CommandError(`${path} is too large for the state of an import: remove it`, exitCodes.usage);
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const state = JSON.parse(text) as State;
    if (state.format === "stamp-import" && state.version === 1 && typeof state.position === "object") return state;
  } catch {
    // Said below.
  }
  throw new CommandError(`${path} is none of an import of this release: remove it to begin anew`, exitCodes.usage);
}
