/** Files that a person writes and names to a process: not its own store, which is a `Disk`. */

/** JSON text with the positions of its values. */
export interface WrittenJson {
  readonly value: unknown;
  /** Returns the place of a value by its path (`accounts.0.name`), or of the nearest one around it; lines and columns begin with 1. */
  at(path: readonly PropertyKey[]): WrittenPlace;
}

export interface WrittenPlace {
  readonly line: number;
  readonly column: number;
}

export interface WrittenFile {
  /** Path below the folder, with slashes. */
  readonly path: string;
  readonly bytes: number;
}

export interface WrittenFiles {
  /** Returns the path that a file of `folder` means by `path`. */
  resolve(folder: string, path: string): string;
  /** Returns the folder of a file. */
  folderOf(path: string): string;
  /** Returns what a path is; undefined: nothing is there. Throws an error in words if it can't be looked at. */
  kindOf(path: string): Promise<"file" | "folder" | undefined>;
  /** Returns the files of a folder and below it, in the order of their paths. Throws an error in words, also if there are more than `max`. */
  list(folder: string, max: number): Promise<readonly WrittenFile[]>;
  /** Pieces of a file in order. Throws an error in words. */
  read(path: string): AsyncIterable<Uint8Array>;
  /** Parses a text. A key that stands twice is an error, too. Throws SyntaxError, whose message ends with the line and column. */
  parse(text: string): WrittenJson;
}
