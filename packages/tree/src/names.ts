/** Names in a directory and paths, by the rules of a door. A path is a list of names: doors split, decode and join. */

export interface NameRules {
  /** True: names that differ in case only are one name, which is shown as it was written. */
  readonly foldsCase: boolean;
  readonly nameUnitsMax: number;
  readonly pathUnitsMax: number;
  readonly depthMax: number;
  /** Characters that no name has, beside `/` and controls. */
  readonly refused: string;
  /** Names that no file or directory has, in upper case. */
  readonly reserved: ReadonlySet<string>;
}

const ofDevices: ReadonlySet<string> = new Set(
  "CON PRN AUX NUL CLOCK$".split(" ").concat(Array.from({ length: 9 }, (_, at) => [`LPT${at + 1}`, `COM${at + 1}`]).flat()),
);

/** Azure Data Lake Storage: a path has at most 1,024 characters and 63 directories. */
export const dataLakeNames: NameRules = {
  ...{ foldsCase: false, nameUnitsMax: 255, pathUnitsMax: 1_024, depthMax: 63 },
  ...{ refused: "", reserved: new Set() },
};
/** Azure Files: names of 255 characters, paths of 2,048, 250 levels, and no name of a device of Windows. */
export const filesNames: NameRules = {
  ...{ foldsCase: true, nameUnitsMax: 255, pathUnitsMax: 2_048, depthMax: 250 },
  ...{ refused: '"\\:|<>*?', reserved: ofDevices },
};

export type PathProblem = "empty" | "nameTooLong" | "pathTooLong" | "tooDeep" | "badCharacter" | "dots" | "reserved";

/** Returns the first problem of the path; undefined: none. */
export function pathProblem(rules: NameRules, path: readonly string[]): PathProblem | undefined {
  if (path.length > rules.depthMax + 1) return "tooDeep";
  if (path.reduce((units, name) => units + name.length + 1, -1) > rules.pathUnitsMax) return "pathTooLong";
  for (const name of path) {
    if (name === "") return "empty";
    if (name.length > rules.nameUnitsMax) return "nameTooLong";
    if (name === "." || name === "..") return "dots";
    if (rules.reserved.has(name.toUpperCase())) return "reserved";
    for (const character of name) {
      const code = character.codePointAt(0) as number;
      if (code < 0x20 || code === 0x7f || character === "/" || (code >= 0xd800 && code <= 0xdfff) || rules.refused.includes(character)) {
        return "badCharacter";
      }
    }
  }
  return undefined;
}

/** The name as keys have it. Folded by upper case of one character at a time, as NTFS does: a character keeps its number of units. */
export function keyName(rules: NameRules, name: string): string {
  if (!rules.foldsCase) return name;
  let folded = "";
  for (const character of name) {
    const upper = character.toUpperCase();
    // Only ASCII letters fold to ASCII: dotless i and long s are letters of their own, as in NTFS.
    const isOwn = upper.length !== character.length || (character > "\x7f" && upper <= "\x7f");
    folded += isOwn ? character : upper;
  }
  return folded;
}
