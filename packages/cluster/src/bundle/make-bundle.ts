/**
 * Makes the bundle of the sources as they are now, with esbuild, in three seconds of processor time. Invariants:
 * - What is recorded is the content that esbuild was given, and it is compared with the files afterwards: a source that was changed
 *   meanwhile leaves no bundle that passes for fresh.
 * - Two that make it at once do not disturb each other: each has a folder of its own, and the first one to finish gives it its name.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, relative } from "node:path";
import type { Loader, Plugin } from "esbuild";
import { roles } from "../roles.ts";
import { bundlesIn, contentIn, digestOf, freshBundle, type Manifest, manifestIn, sourceOf } from "./bundle.ts";

/** Bundles of other sources that are younger than this stay: a cluster may start from one in this moment. */
const oldAfterMs = 10 * 60_000;

const programs = [...roles, "location-service", "supervisor"];

/** Messages of zod in 50 languages. Nobody asks for another than English. */
const allLanguages = /\/zod\/v4\/locales\/index\.js$/;

/**
 * Packages of CommonJS that look for files beside their own (LevelDB, the messages of gRPC's health check and reflection) find them where
 * they are installed; `require` is Node's own, for modules of Node and for native code.
 */
const banner = `import { createRequire as stampRequire } from "node:module";
import { join as stampJoin } from "node:path";
const require = stampRequire(import.meta.url);
const stampRoot = stampJoin(import.meta.dirname, "../../..");`;

/**
 * Makes a bundle if there is none of the present sources. Returns false if the processes have to start from their sources. Never throws.
 */
export async function makeBundle(root: string): Promise<boolean> {
  if (freshBundle(root) !== undefined) return true;
  let esbuild: typeof import("esbuild");
  try {
    esbuild = createRequire(join(root, "packages/cluster/package.json"))("esbuild");
  } catch {
    return false;
  }
  const folder = join(bundlesIn(root), `.${process.pid}-${randomBytes(4).toString("hex")}`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const contents = new Map<string, string>();
    // A manifest says what its package exports, and the lock file which packages there are.
    for (const file of manifestsIn(root)) contents.set(file, readFileSync(join(root, file), "utf8"));
    await esbuild.build({
      absWorkingDir: root,
      entryPoints: Object.fromEntries(programs.map((program) => [program, sourceOf(program)])),
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node24",
      sourcemap: "external",
      sourcesContent: false,
      // Names stay, for stacks and profiles.
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: "none",
      banner: { js: banner },
      loader: { ".node": "copy" },
      // Loaded only for a terminal, which a process of the supervisor has none of; and by programs that no role runs.
      external: ["pino-pretty", "esbuild"],
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, target: "ESNext", useDefineForClassFields: true } },
      plugins: [recordedSources(root, contents)],
      logLevel: "silent",
    });
    return publish(root, folder, contents);
  } catch (error) {
    process.stderr.write(`stamp: the processes start from their sources, because no bundle could be made: ${(error as Error).message}\n`);
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function manifestsIn(root: string): string[] {
  const folders = ["packages", "services"].flatMap((kind) => readdirSync(join(root, kind)).map((name) => `${kind}/${name}`));
  return [...folders.map((folder) => `${folder}/package.json`).filter((file) => existsSync(join(root, file))), "pnpm-lock.yaml"];
}

/** Gives esbuild each source and records what it was given. */
function recordedSources(root: string, contents: Map<string, string>): Plugin {
  return {
    name: "recorded sources",
    setup(build) {
      build.onLoad({ filter: /\.(ts|[cm]?js|json)$/ }, ({ path }) => {
        const content = readFileSync(path, "utf8");
        const file = relative(root, path);
        contents.set(file, content);
        if (allLanguages.test(path)) return { contents: `export { default as en } from ${JSON.stringify("./en.js")};`, loader: "js" };
        const needsFolder =
          file.includes("node_modules/") && /\b__dirname\b/.test(content) && !/\b(const|let|var) __dirname\b/.test(content);
        const own = needsFolder ? `const __dirname = stampJoin(stampRoot, ${JSON.stringify(dirname(file))});` : "";
        return { contents: own + content, loader: loaderOf(path) };
      });
    },
  };
}

function loaderOf(path: string): Loader {
  const extension = extname(path);
  return extension === ".ts" ? "ts" : extension === ".json" ? "json" : "js";
}

/** Gives the bundle in `folder` its name. False if a source has changed meanwhile. */
function publish(root: string, folder: string, contents: ReadonlyMap<string, string>): boolean {
  const files = [...contents.keys()].sort();
  const digest = digestOf(files, (file) => contents.get(file)) as string;
  if (digestOf(files, contentIn(root)) !== digest) return false;
  const home = bundlesIn(root);
  const named = join(home, digest);
  if (!existsSync(named)) {
    try {
      renameSync(folder, named);
    } catch (error) {
      if (!existsSync(named)) throw error;
    }
  }
  const manifest: Manifest = { digest, files };
  const part = join(home, `.manifest-${process.pid}-${randomBytes(4).toString("hex")}`);
  writeFileSync(part, JSON.stringify(manifest));
  renameSync(part, manifestIn(root));
  for (const name of readdirSync(home)) {
    const path = join(home, name);
    if (name === digest || name === "making" || path === manifestIn(root)) continue;
    const isOld = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > oldAfterMs;
    if (isOld) rmSync(path, { recursive: true, force: true });
  }
  return true;
}
