/**
 * Makes the bundle of the sources as they are now, with esbuild, in three seconds of processor time. Invariants:
 * - What is recorded is the content that esbuild was given, and it is compared with the files afterwards: a source that was changed
 *   meanwhile leaves no bundle that passes for fresh.
 * - Two that make it at once do not disturb each other: each has a folder of its own, and the first one to finish gives it its name.
 * - Every user of the checkout can read it, whoever made it.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { roles } from "../roles.ts";
import {
  bundlesIn,
  compiledName,
  contentIn,
  digestOf,
  freshBundle,
  isWhole,
  type Manifest,
  manifestIn,
  type Output,
  sha256Of,
  sourceOf,
} from "./bundle.ts";
import { noBundle } from "./later-bundle.ts";
import { esbuildOf, programOptions, sources } from "./options.ts";

/** Bundles of other sources that are younger than this stay: a cluster may start from one in this moment. */
const oldAfterMs = 10 * 60_000;

const programs = [...roles, "location-service", "supervisor"];

/** Digest of what `stamp.mjs` has installed, in the form that it writes. It is missing during an installation. */
const installedMark = "node_modules/.stamp-set-up";
const installedOf = ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc"];

/** Files that decide how a bundle is made, by their paths in the repository. */
const makers = ["bundle.ts", "make-bundle.ts", "options.ts"].map((name) => `packages/cluster/src/bundle/${name}`);

/** Names of folders and files that a process has under way. */
const underWay = /^\.(?:[a-z]+-)?(\d+)-[0-9a-f]+$/;

/**
 * Makes a bundle if there is none of the present sources. Returns false if the processes have to start from their sources. Never throws.
 */
export async function makeBundle(root: string): Promise<boolean> {
  let folder: string | undefined;
  try {
    if (freshBundle(root, "digests") !== undefined) return true;
    const esbuild = esbuildOf(root);
    if (esbuild === undefined || !isInstalled(root)) return false;
    makeFolders(root);
    removeLeftOvers(root);
    folder = join(bundlesIn(root), underWayName());
    mkdirSync(folder);
    const contents = new Map<string, string>();
    // A manifest says what its package exports, the lock file which packages there are, and the mark which of them are installed.
    const deciding = [...manifestsIn(root), ...installedOf, installedMark, ...makers].filter((file) => existsSync(join(root, file)));
    for (const file of deciding) contents.set(file, readFileSync(join(root, file), "utf8"));
    await esbuild.build({
      ...programOptions(root, "../../.."),
      entryPoints: Object.fromEntries(programs.map((program) => [program, sourceOf(program)])),
      outdir: folder,
      sourcemap: "external",
      sourcesContent: false,
      loader: { ".node": "copy" },
      // Loaded only for a terminal, which a process of the supervisor has none of; and by programs that no role runs.
      external: ["pino-pretty", "esbuild"],
      plugins: [sources(root, { onRead: (file, content) => contents.set(file, content) })],
    });
    return publish(root, folder, contents);
  } catch (error) {
    process.stderr.write(`${noBundle((error as Error).message)}\n`);
    return false;
  } finally {
    if (folder !== undefined) remove(folder);
  }
}

/**
 * True if the installed packages are those of the lock file. Between a new lock file and its installation, a bundle would hold the packages
 * of before and pass for one of the new lock file.
 */
function isInstalled(root: string): boolean {
  const digest = createHash("sha256");
  try {
    for (const file of installedOf) digest.update(readFileSync(join(root, file)));
    return readFileSync(join(root, installedMark), "utf8").startsWith(`${digest.digest("hex")} `);
  } catch {
    return false;
  }
}

/** Makes the folder of the bundles, which every user of the checkout may read whatever the umask of this process. */
export function makeFolders(root: string): void {
  for (const folder of [join(root, ".tools"), bundlesIn(root)]) {
    if (existsSync(folder)) continue;
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
  }
}

const underWayName = (what = ""): string => `.${what}${process.pid}-${randomBytes(4).toString("hex")}`;

/** Removes unfinished files of processes that were ended. */
function removeLeftOvers(root: string): void {
  for (const name of readdirSync(bundlesIn(root))) {
    const pid = Number(underWay.exec(name)?.[1]);
    if (Number.isNaN(pid)) continue;
    try {
      process.kill(pid, 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ESRCH") remove(join(bundlesIn(root), name));
    }
  }
}

/** Removes a file. One that belongs to another user stays, until that user removes it. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // It takes room, and harms nothing.
  }
}

function manifestsIn(root: string): string[] {
  const folders = ["packages", "services"].flatMap((kind) => readdirSync(join(root, kind)).map((name) => `${kind}/${name}`));
  return folders.map((folder) => `${folder}/package.json`);
}

/** Gives the bundle in `folder` its name; false: a source has changed meanwhile. */
function publish(root: string, folder: string, contents: ReadonlyMap<string, string>): boolean {
  const files = [...contents.keys()].sort();
  const digest = digestOf(files, (file) => contents.get(file)) as string;
  if (digestOf(files, contentIn(root)) !== digest || !isInstalled(root)) return false;
  const home = bundlesIn(root);
  const named = join(home, digest);
  const outputs = finish(folder);
  if (!isWhole(named, outputs, "digests")) {
    // The folder of that name is damaged, or another user's.
    const aside = join(home, underWayName("damaged-"));
    if (existsSync(named)) renameSync(named, aside);
    try {
      renameSync(folder, named);
    } catch (error) {
      if (!isWhole(named, outputs, "digests")) throw error;
    }
    remove(aside);
  }
  const manifest: Manifest = { digest, files, outputs };
  const part = join(home, underWayName("manifest-"));
  writeFileSync(part, JSON.stringify(manifest));
  chmodSync(part, 0o644);
  sync(part);
  renameSync(part, manifestIn(root));
  sync(home);
  const kept = [digest, compiledName(digest), "making", "manifest.json"];
  for (const name of readdirSync(home)) {
    if (kept.includes(name)) continue;
    const path = join(home, name);
    const isOld = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > oldAfterMs;
    if (isOld) remove(path);
  }
  return true;
}

/** Makes the files of a bundle readable for every user and syncs them. Returns them. */
function finish(folder: string): Output[] {
  const outputs = readdirSync(folder)
    .sort()
    .map((name): Output => {
      const path = join(folder, name);
      chmodSync(path, 0o644);
      sync(path);
      return { name, bytes: statSync(path).size, sha256: sha256Of(path) };
    });
  chmodSync(folder, 0o755);
  sync(folder);
  return outputs;
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
