/** Script and style of the console's page: bundled of the sources when the console starts, or as the installed package has them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { isPackage } from "../repository-root.ts";
import { esbuildOf } from "./options.ts";

/** Folder of the page in the installed package. */
export const pageFolder = "console";

export interface PagePart {
  /** Name of the file: `main.js` or `main.css`. */
  readonly name: string;
  readonly contents: Uint8Array;
}

/** Throws Error with the reason if the page can't be bundled. */
export async function consolePage(root: string): Promise<readonly PagePart[]> {
  if (!isPackage(root)) return (await bundlePage(root)).parts;
  const folder = join(root, pageFolder);
  return readdirSync(folder).map((name) => ({ name, contents: readFileSync(join(folder, name)) }));
}

export async function bundlePage(root: string): Promise<{ readonly parts: readonly PagePart[]; readonly metafile: Metafile }> {
  const esbuild = esbuildOf(root);
  // It is a development dependency. Installations without those have none.
  if (esbuild === undefined) throw new Error("esbuild is not installed");
  const { outputFiles, metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: { main: "packages/console-page/src/main.tsx" },
    outdir: "/",
    write: false,
    metafile: true,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    minify: true,
    legalComments: "none",
    logLevel: "silent",
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
  });
  // It has a process of its own, which would stay.
  await esbuild.stop();
  return { parts: outputFiles.map(({ path, contents }) => ({ name: path.slice(1), contents })), metafile };
}
