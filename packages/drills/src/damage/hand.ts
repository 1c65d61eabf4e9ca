/**
 * Acts of a person's hand on the folder of one process in the drill `damage`. The folder is one of this machine, or a volume that only a
 * container sees: there `hand-program.ts` does the act.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/** Paths are relative to the folder of the process. Offsets and lengths are in bytes. */
export type DamageAct =
  | { readonly do: "flip"; readonly path: string; readonly offset: number; readonly length: number }
  /** Cuts bytes off the end of a file. */
  | { readonly do: "cut"; readonly path: string; readonly bytes: number }
  | { readonly do: "remove"; readonly path: string }
  | { readonly do: "write"; readonly path: string; readonly text: string }
  | { readonly do: "move"; readonly path: string; readonly to: string }
  /** Removes everything in the folder. */
  | { readonly do: "empty" }
  | { readonly do: "remove-newest-segment" }
  /** Looks at the disk of an extent node that is down. */
  | { readonly do: "check"; readonly deep: boolean }
  /** Makes the extent table of a node that is down anew. */
  | { readonly do: "rebuild" }
  /** Names the largest file of a lock service's store; of several stores, of the one that it uses. */
  | { readonly do: "largest-of-store" }
  /** Names the newest copy of the metadata on an extent node. */
  | { readonly do: "newest-copy" }
  | { readonly do: "read"; readonly path: string };

/** Lines for a person, and the file that the act names. */
export interface ActOutcome {
  readonly said: readonly string[];
  readonly file?: { readonly path: string; readonly bytes: number };
  /** Content of the file that was read, in base64. */
  readonly content?: string;
}

/** Does an act on the process with this name. */
export async function actOn(folder: string, name: string, act: DamageAct): Promise<ActOutcome> {
  const at = (path: string): string => join(folder, path);
  switch (act.do) {
    case "flip":
      flip(at(act.path), act.offset, act.length);
      return silent;
    case "cut":
      truncateSync(at(act.path), statSync(at(act.path)).size - act.bytes);
      return silent;
    case "remove":
      rmSync(at(act.path), { recursive: true });
      return silent;
    case "write":
      writeFileSync(at(act.path), act.text);
      return silent;
    case "move":
      renameSync(at(act.path), at(act.to));
      return silent;
    case "empty":
      // The folder itself may be where a volume is mounted.
      for (const each of readdirSync(folder)) rmSync(at(each), { recursive: true });
      return silent;
    case "remove-newest-segment":
      rmSync(newestSegment(at("files/journal")));
      return silent;
    case "check":
    case "rebuild":
      return atDisk(folder, name, act);
    case "largest-of-store":
      return { said: [], ...fileOf(largest(folder, storeFiles(folder))) };
    case "newest-copy":
      return { said: [], ...fileOf(newestCopy(folder)) };
    case "read":
      return { said: [], content: readFileSync(at(act.path)).toString("base64") };
  }
}

const silent: ActOutcome = { said: [] };
const fileOf = (file: ActOutcome["file"]): Pick<ActOutcome, "file"> => (file === undefined ? {} : { file });

function flip(path: string, offset: number, length: number): void {
  const file = openSync(path, "r+");
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, offset);
  const flipped = bytes.map((byte) => byte ^ 0x55);
  writeSync(file, flipped, 0, length, offset);
  closeSync(file);
}

/** Returns the newest journal segment; its generation is in its header (docs/formats/journal.md). */
function newestSegment(folder: string): string {
  const generation = (name: string): bigint => {
    const file = openSync(join(folder, name), "r");
    const bytes = Buffer.alloc(24);
    readSync(file, bytes, 0, 24, 0);
    closeSync(file);
    return bytes.readBigUInt64LE(16);
  };
  const segments = readdirSync(folder).filter((name) => name.endsWith(".segment"));
  const [newest] = segments.sort((a, b) => Number(generation(b) - generation(a)));
  return join(folder, newest as string);
}

async function atDisk(folder: string, name: string, act: Extract<DamageAct, { do: "check" | "rebuild" }>): Promise<ActOutcome> {
  const [{ checkDisk, rebuildDisk }, { nodeWorld }, { silentLogger }] = await Promise.all([
    import("@stamp/extent-node"),
    import("@stamp/ports-node"),
    import("@stamp/ports"),
  ]);
  const parts = { world: nodeWorld({ dataDir: folder, name, logger: silentLogger }), nodeId: name };
  if (act.do === "check") return { said: (await checkDisk(parts, act.deep)).problems.map((each) => `${each.kind}: ${each.what}`) };
  const rebuilt = await rebuildDisk(parts);
  if (!rebuilt.ok) return { said: [`not rebuilt: ${rebuilt.failure.message}`] };
  return { said: [`rebuilt: ${rebuilt.value.extents} extents, ${rebuilt.value.damaged} damaged`] };
}

/** Stores of a member: the one with the highest number is used (docs/design/consensus.md). */
const storeName = /^consensus-(\d+)$/;
const copiesFolder = "files/metadata-copies";

/** Returns the files of a store. Its log is empty until the first transaction after a start: all keys are in a table. */
function storeFiles(folder: string): string[] {
  const numbers = readdirSync(join(folder, "stores")).flatMap((name) => storeName.exec(name)?.[1] ?? []);
  const store = `stores/consensus-${Math.max(...numbers.map(Number))}`;
  return readdirSync(join(folder, store)).flatMap((name) => (/\.(log|ldb)$/.test(name) ? [join(store, name)] : []));
}

function largest(folder: string, paths: readonly string[]): ActOutcome["file"] {
  const files = paths.map((path) => ({ path, bytes: statSync(join(folder, path)).size }));
  return files.sort((a, b) => b.bytes - a.bytes)[0];
}

/** Returns the newest copy; its name is the number of its last transaction. */
function newestCopy(folder: string): ActOutcome["file"] {
  if (!existsSync(join(folder, copiesFolder))) return undefined;
  const names = readdirSync(join(folder, copiesFolder)).filter((name) => /^\d+\.snapshot$/.test(name));
  const [newest] = names.sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10));
  if (newest === undefined) return undefined;
  const path = join(copiesFolder, newest);
  return { path, bytes: statSync(join(folder, path)).size };
}
