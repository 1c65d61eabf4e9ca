/**
 * Programs of the processes as one file each, so that a start does not resolve and read 600 modules. A bundle is used only
 * while each file that it was made of has the content that it had then; else the processes start from their sources.
 *
 *   .tools/bundle/manifest.json       the newest bundle: its folder, the files that it was made of, and the files that it consists of
 *   .tools/bundle/<digest>/<role>.mjs one file per program, with its source map beside it
 *   .tools/bundle/compiled-<digest>/  V8's compile cache of these files
 *   .tools/bundle/making              the process that makes a bundle
 *
 * Invariants:
 * - A bundle appears under its name only when it is whole and on disk.
 * - A program is started from it only if every file has its recorded size and can be read, and the program its recorded digest.
 * - No failure reaches the caller: the program then starts from its source.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { isPackage, programsIn } from "../repository-root.ts";
import { roles } from "../roles.ts";

/** File that a bundle consists of. */
export interface Output {
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
}

export interface Manifest {
  /** Digest of the contents of `files` and of the way in which the bundle was made; also the name of its folder. */
  readonly digest: string;
  /** Paths below the root, sorted. */
  readonly files: readonly string[];
  readonly outputs: readonly Output[];
}

export interface StartedProgram {
  readonly path: string;
  /** Folder of V8's compile cache. */
  readonly compiled: string;
  /** Folder of the bundle that `path` is in; undefined if it is the source. */
  readonly bundle: string | undefined;
}

/** True if the system's C library is musl, and not glibc. */
const isMusl = process.platform === "linux" && /ld-musl-/.test(readFileSync("/proc/self/maps", "utf8"));
/** Native code is copied into a bundle, and the code is written for one version of Node. The number: the format of the manifest. */
const way = `2 ${process.platform}-${process.arch}${isMusl ? "-musl" : ""} ${process.version}`;
/** Programs are started in groups, and the sources of a start are looked at once. */
const lookedAtForMs = 1_000;

/** True if the environment turns bundles off, for profiles of single files and for measurements. */
export const isOff = (): boolean => process.env.STAMP_BUNDLE === "off";

/** True for the repository. The image is none: it has neither esbuild nor a reason to look whether its sources have changed. */
export const isRepository = (root: string): boolean => existsSync(join(root, "pnpm-workspace.yaml")) && existsSync(join(root, "stamp.mjs"));

export const bundlesIn = (root: string): string => join(root, ".tools", "bundle");
export const manifestIn = (root: string): string => join(bundlesIn(root), "manifest.json");

/** Programs that are no role, and their sources. */
const others: Readonly<Record<string, string>> = {
  supervisor: "packages/cluster/src/supervise/daemon.ts",
  "command-line": "packages/cli/src/main.ts",
  "slow-clients-load": "packages/drills/src/slow-clients/slow-clients-load.ts",
  bench: "packages/bench/src/own.ts",
  "bench-load": "packages/bench/src/load.ts",
  "embedded-host": "packages/bench/src/embedded-host.ts",
};

/** Programs that a drill runs inside containers, and their sources. */
const inContainers: Readonly<Record<string, string>> = {
  "drill-hand": "packages/drills/src/damage/hand-program.ts",
  "drill-relay": "packages/drills/src/compose/relay.ts",
};

/** Name of the library in the installed package, beside the programs. */
export const libraryProgram = "library";

/** Programs of the installed package. */
export const packagePrograms: readonly string[] = [...roles, "location-service", ...Object.keys(others), libraryProgram];

/** Programs that only the image has. */
export const containerPrograms: readonly string[] = Object.keys(inContainers);

/** Declarations of the library: a source that refers to no other. */
export const libraryTypes = "packages/embedded/src/types.ts";

export const sourceOf = (program: string): string =>
  program === libraryProgram
    ? "packages/embedded/src/library.ts"
    : (others[program] ?? inContainers[program] ?? `services/${program}/src/main.ts`);

/** Returns the file of a program that is started without a bundle: its source, or that of the installed package. */
export const programFileOf = (root: string, program: string): string =>
  join(root, isPackage(root) ? join(programsIn, `${program}.mjs`) : sourceOf(program));

/** Returns the digest of the files as `contentOf` has them; undefined if one is missing. `madeBy`: how a bundle is made of them. */
export function digestOf(files: readonly string[], contentOf: (file: string) => string | undefined, madeBy = way): string | undefined {
  const digest = createHash("sha256").update(madeBy);
  for (const file of files) {
    const content = contentOf(file);
    if (content === undefined) return undefined;
    digest.update(`\0${file}\0${content.length}\0`).update(content);
  }
  return digest.digest("hex").slice(0, 32);
}

export function contentIn(root: string): (file: string) => string | undefined {
  return (file) => {
    try {
      return readFileSync(join(root, file), "utf8");
    } catch {
      return undefined;
    }
  };
}

export const sha256Of = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

/** True if each file exists, can be read and has its size; with `digests`, also its content. */
export function isWhole(folder: string, outputs: readonly Output[], look: "sizes" | "digests"): boolean {
  try {
    return outputs.every(({ name, bytes, sha256 }) => {
      const path = join(folder, name);
      accessSync(path, constants.R_OK);
      return statSync(path).size === bytes && (look === "sizes" || sha256Of(path) === sha256);
    });
  } catch {
    return false;
  }
}

interface Fresh {
  readonly folder: string;
  readonly outputs: readonly Output[];
}

function fresh(root: string, look: "sizes" | "digests"): Fresh | undefined {
  const made = madeOfPresentSources(root);
  return made !== undefined && isWhole(made.folder, made.outputs, look) ? made : undefined;
}

/** Returns the bundle of the present sources, by its manifest alone. */
function madeOfPresentSources(root: string): Fresh | undefined {
  try {
    const { digest, files, outputs } = JSON.parse(readFileSync(manifestIn(root), "utf8")) as Manifest;
    const isMade = outputs.length > 0 && digestOf(files, contentIn(root)) === digest;
    return isMade ? { folder: join(bundlesIn(root), digest), outputs } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the folder of the bundle of the present sources, if files of it are missing, damaged or can't be read by this user. */
export function damagedBundle(root: string): string | undefined {
  const made = madeOfPresentSources(root);
  return made === undefined || isWhole(made.folder, made.outputs, "digests") ? undefined : made.folder;
}

/** Returns the folder of the bundle that was made of the sources as they are now; undefined if there is none, or not all of it. */
export const freshBundle = (root: string, look: "sizes" | "digests" = "sizes"): string | undefined => fresh(root, look)?.folder;

let lookedAt: { readonly root: string; readonly atMs: number; readonly found: Fresh | undefined } | undefined;
/** Programs of bundles, by their path: true if this process has found the recorded content in them, false if they must not be started. */
const trusted = new Map<string, boolean>();

/**
 * The file to start for a program: that of a fresh bundle, or its source. Folder where Node keeps compiled code for the next start: without
 * it a process spends most of its start on compiling, and all processes of a cluster start at once. The command line uses that of the sources.
 */
export function programOf(root: string, program: string): StartedProgram {
  const now = performance.now();
  if (lookedAt === undefined || lookedAt.root !== root || now - lookedAt.atMs > lookedAtForMs)
    lookedAt = { root, atMs: now, found: isOff() || isPackage(root) ? undefined : fresh(root, "sizes") };
  const { found } = lookedAt;
  if (found !== undefined && isTrusted(found, program)) {
    const compiled = ownCompileCache(root) ?? join(bundlesIn(root), compiledName(found.folder.slice(bundlesIn(root).length + 1)));
    return { path: join(found.folder, `${program}.mjs`), compiled, bundle: found.folder };
  }
  return sourceProgramOf(root, program);
}

export function sourceProgramOf(root: string, program: string): StartedProgram {
  const compiled = ownCompileCache(root) ?? join(root, ".tools", "compile-cache");
  return { path: programFileOf(root, program), compiled, bundle: undefined };
}

/** Makes this process start the program from source while this bundle is there. */
export function distrust({ path }: StartedProgram): void {
  trusted.set(path, false);
}

export const compiledName = (digest: string): string => `compiled-${digest}`;

function isTrusted({ folder, outputs }: Fresh, program: string): boolean {
  const path = join(folder, `${program}.mjs`);
  let is = trusted.get(path);
  if (is === undefined) {
    // Native code belongs to each program.
    const needed = outputs.filter(({ name }) => name === `${program}.mjs` || name.endsWith(".node"));
    is = needed.some(({ name }) => name === `${program}.mjs`) && isWhole(folder, needed, "digests");
    // A damaged file is made again, under the same name.
    if (is) trusted.set(path, true);
  }
  return is;
}

/** Returns the folder that the user has chosen. One below `.tools` was given by a parent for a bundle that may be gone by now. */
function ownCompileCache(root: string): string | undefined {
  const inherited = process.env.NODE_COMPILE_CACHE;
  return inherited === undefined || inherited === "" || inherited.startsWith(join(root, ".tools") + sep) ? undefined : inherited;
}
