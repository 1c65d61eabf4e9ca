/** How far an import is, in a file: a later run goes on there. */
import { readFile, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CommandError, exitCodes } from "../exit.ts";
import { plainSize, writeWhole } from "./folder/files.ts";
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
  #savedMs = 0;

  private constructor(path: string, head: Head, found: State | undefined) {
    this.#path = path;
    this.#head = head;
    this.isBegun = found !== undefined;
    this.from = found?.position ?? {};
    this.counts = { ...noCounts(), ...found?.counts };
  }

  static async open({ path, ...named }: Omit<Head, "folder"> & { readonly path: string }): Promise<ImportState> {
    const folder = String((await stat(dirname(path), { bigint: true })).ino);
    const found = await stateIn(path);
    if (found === undefined) return new ImportState(path, { ...named, folder }, undefined);
    const { source, target, options } = found;
    if (source !== named.source || target !== named.target || options !== named.options)
      throw new CommandError(
        `${path} is of another import (${source} into ${target}${options === "" ? "" : `, ${options}`}): run that to its end, or remove the file`,
        exitCodes.usage,
      );
    if (found.folder !== folder)
      throw new CommandError(
        `${path} was begun in another folder, and came here with a copy: remove the file to import everything`,
        exitCodes.usage,
      );
    return new ImportState(path, { ...named, folder }, found);
  }

  /** The counts are those at the position. */
  async save(position: SourcePosition, counts: ItemCounts, now: boolean): Promise<void> {
    if (!now && performance.now() - this.#savedMs < everyMs) return;
    const state: State = { format: "stamp-import", version: 1, ...this.#head, position, counts };
    await writeWhole(this.#path, `${JSON.stringify(state, null, 2)}\n`);
    this.#savedMs = performance.now();
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
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
