/** How far an import is, in a file: a later run goes on there. */
import { readFile, rm } from "node:fs/promises";
import { CommandError, exitCodes } from "../exit.ts";
import { writeWhole } from "./folder/files.ts";
import { type ItemCounts, noCounts, type SourcePosition } from "./items.ts";

interface State {
  readonly format: "stamp-import";
  readonly version: 1;
  /** Names of what is imported, and of the account that it goes to: the file holds for nothing else. */
  readonly source: string;
  readonly target: string;
  readonly options: string;
  readonly position: SourcePosition;
  readonly counts: ItemCounts;
}

/** Shortest time between two writes of the file, in milliseconds. */
const everyMs = 1_000;

export class ImportState {
  /** True if an earlier run has begun. */
  readonly isBegun: boolean;
  readonly from: SourcePosition;
  readonly counts: ItemCounts;
  readonly #path: string;
  readonly #head: Pick<State, "source" | "target" | "options">;
  #savedMs = 0;

  private constructor(path: string, head: Pick<State, "source" | "target" | "options">, found: State | undefined) {
    this.#path = path;
    this.#head = head;
    this.isBegun = found !== undefined;
    this.from = found?.position ?? {};
    this.counts = { ...noCounts(), ...found?.counts };
  }

  static async open(path: string, head: Pick<State, "source" | "target" | "options">): Promise<ImportState> {
    const found = await stateIn(path);
    if (found !== undefined && (found.source !== head.source || found.target !== head.target || found.options !== head.options))
      throw new CommandError(
        `${path} is of another import (${found.source} into ${found.target}${found.options === "" ? "" : `, ${found.options}`}): run that to its end, or remove the file`,
        exitCodes.usage,
      );
    return new ImportState(path, head, found);
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
