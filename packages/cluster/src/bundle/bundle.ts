/**
 * Programs of the processes as one file each, so that a start does not resolve and read 600 modules (decision 0507). A bundle is used only
 * while each file that it was made of has the content that it had then; else the processes start from their sources.
 *
 *   .tools/bundle/manifest.json       the newest bundle: its folder, the files that it was made of, and the digest of their contents
 *   .tools/bundle/<digest>/<role>.mjs one file per program, with its source map beside it
 *   .tools/bundle/<digest>/compiled/  V8's compile cache of these files
 *
 * A bundle appears under its name only when it is whole.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Manifest {
  /** Digest of the contents of `files` and of the way in which the bundle was made; also the name of its folder. */
  readonly digest: string;
  /** Paths below the root, sorted. */
  readonly files: readonly string[];
}

export interface StartedProgram {
  readonly path: string;
  /** Folder of V8's compile cache. */
  readonly compiled: string;
}

/** Changes when `make-bundle.ts` makes another bundle of the same sources. */
const way = "1";
/** Programs are started in groups, and the sources of a start are looked at once. */
const lookedAtForMs = 1_000;

/** Environment variable that turns bundles off, for profiles of single files and for measurements. */
export const isOff = (): boolean => process.env.STAMP_BUNDLE === "off";

/** The image is none: it has neither esbuild nor a reason to look whether its sources have changed. */
export const isRepository = (root: string): boolean => existsSync(join(root, "pnpm-workspace.yaml")) && existsSync(join(root, "stamp.mjs"));

export const bundlesIn = (root: string): string => join(root, ".tools", "bundle");
export const manifestIn = (root: string): string => join(bundlesIn(root), "manifest.json");

/** Source of a program of a role, and of the supervisor. */
export const sourceOf = (program: string): string =>
  program === "supervisor" ? "packages/cluster/src/supervise/daemon.ts" : `services/${program}/src/main.ts`;

/** Digest of the files as `contentOf` has them; undefined if one is missing. */
export function digestOf(files: readonly string[], contentOf: (file: string) => string | undefined): string | undefined {
  const digest = createHash("sha256").update(way);
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

/** Folder of the bundle that was made of the sources as they are now; undefined if there is none. */
export function freshBundle(root: string): string | undefined {
  try {
    const { digest, files } = JSON.parse(readFileSync(manifestIn(root), "utf8")) as Manifest;
    return digestOf(files, contentIn(root)) === digest ? join(bundlesIn(root), digest) : undefined;
  } catch {
    return undefined;
  }
}

let lookedAt: { readonly root: string; readonly atMs: number; readonly folder: string | undefined } | undefined;

/**
 * The file to start for a program: that of a fresh bundle, or its source. Folder where Node keeps compiled code for the next start: without
 * it a process spends most of its start on compiling, and all processes of a cluster start at once. The command line uses that of the sources.
 */
export function programOf(root: string, program: string): StartedProgram {
  const now = performance.now();
  if (lookedAt === undefined || lookedAt.root !== root || now - lookedAt.atMs > lookedAtForMs)
    lookedAt = { root, atMs: now, folder: isOff() ? undefined : freshBundle(root) };
  const { folder } = lookedAt;
  if (folder !== undefined) return { path: join(folder, `${program}.mjs`), compiled: join(folder, "compiled") };
  return { path: join(root, sourceOf(program)), compiled: join(root, ".tools", "compile-cache") };
}
