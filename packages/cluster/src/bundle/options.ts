/** How esbuild makes programs of the sources: for the bundle of the repository, and for the package. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, relative } from "node:path";
import type { BuildOptions, Loader, Plugin } from "esbuild";

/** Longest line of a bundle, in characters. Node prints the line in which an uncaught error was thrown. */
const lineLimit = 200;

/** Messages of zod in 50 languages. Nobody asks for another than English. */
const allLanguages = /\/zod\/v4\/locales\/index\.js$/;

export function esbuildOf(root: string): typeof import("esbuild") | undefined {
  try {
    return createRequire(join(root, "packages/cluster/package.json"))("esbuild");
  } catch {
    return undefined;
  }
}

/**
 * Packages of CommonJS that look for files beside their own (LevelDB, the messages of gRPC's health check and reflection) find them below
 * `stampRoot`; `require` is Node's own, for modules of Node and for native code. `rootFromProgram`: path of that root from a program's folder.
 */
const banner = (rootFromProgram: string): string => `import { createRequire as stampRequire } from "node:module";
import { join as stampJoin } from "node:path";
const require = stampRequire(import.meta.url);
const stampRoot = stampJoin(import.meta.dirname, ${JSON.stringify(rootFromProgram)});`;

export const programOptions = (root: string, rootFromProgram: string): BuildOptions => ({
  absWorkingDir: root,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node24",
  // Names stay, for stacks and profiles.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit,
  legalComments: "none",
  banner: { js: banner(rootFromProgram) },
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, target: "ESNext", useDefineForClassFields: true } },
  logLevel: "silent",
});

export interface SourceHooks {
  /** Takes each source, as it was read, by its path below the root. */
  readonly onRead: (file: string, content: string) => void;
  /** Returns the text that esbuild gets in place of the source's. */
  readonly textOf?: (file: string, content: string) => string;
  /** Returns the folder below `stampRoot` that a source gets when it asks for its own. */
  readonly folderOf?: (file: string) => string;
}

/** Gives esbuild each source. */
export function sources(root: string, { onRead, textOf = (_, content) => content, folderOf = dirname }: SourceHooks): Plugin {
  return {
    name: "sources",
    setup(build) {
      build.onLoad({ filter: /\.(ts|[cm]?js|json)$/ }, ({ path }) => {
        const content = readFileSync(path, "utf8");
        const file = relative(root, path);
        onRead(file, content);
        if (allLanguages.test(path)) return { contents: `export { default as en } from ${JSON.stringify("./en.js")};`, loader: "js" };
        const needsFolder =
          file.includes("node_modules/") && /\b__dirname\b/.test(content) && !/\b(const|let|var) __dirname\b/.test(content);
        const own = needsFolder ? `const __dirname = stampJoin(stampRoot, ${JSON.stringify(folderOf(file))});` : "";
        return { contents: own + textOf(file, content), loader: loaderOf(path) };
      });
    },
  };
}

function loaderOf(path: string): Loader {
  const extension = extname(path);
  return extension === ".ts" ? "ts" : extension === ".json" ? "json" : "js";
}
