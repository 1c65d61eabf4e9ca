/**
 * Makes the folder of the package `stamp-storage`, which npm packs: the programs of the roles, the supervisor and the command line as
 * JavaScript, without a path that leads back to the repository. Two makings of the same sources give the same bytes.
 *
 *   stamp.mjs                  `stamp`, by which npm starts the command line
 *   stamp-storage.d.ts         declarations of the library
 *   programs/                  one file per program and for the library, and what they share
 *   console/                   script and style of the console's page
 *   beside/<package>/          files that packages look for beside their code
 *   docs/                      pages that messages name
 *
 * The image has the same folder, with the native code of its system inside and the programs of drills on containers (`Form`).
 */
import { chmodSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { release } from "@stamp/base";
import type { Metafile } from "esbuild";
import { containerPrograms, libraryProgram, libraryTypes, packagePrograms, sourceOf } from "../bundle/bundle.ts";
import { bundlePage, pageFolder } from "../bundle/console-page.ts";
import { esbuildOf, programOptions, sources } from "../bundle/options.ts";
import { type BundledPackage, bundledOf, licencesOf, packageFolderOf, packageNameOf } from "./licences.ts";

/** Packages with native code, each as the package that imports it finds it. They stay packages, so that npm takes those of its system. */
const native = { "@node-rs/crc32": "packages/ports-node", "classic-level": "packages/ports-node/node_modules/level" };

/** Declarations of the library. */
const typesFile = "stamp-storage.d.ts";

/** Folder for files that packages look for beside their code. */
const beside = "beside";

/** Guides and messages name the launcher of the repository, which the package has none of. */
const named = (text: string): string => text.replaceAll(/(?<![\w.])\.\/stamp(?=[ "'`])/g, "stamp");

const isOurs = (file: string): boolean => !file.includes("node_modules/");

/** Form of the programs. `npm`: native code is in packages that npm installs. `image`: all is inside, for one system. */
export type Form = "npm" | "image";

/** Makes the package in the folder, which is empty. Returns the packages of others whose code is in it. */
export async function makePackage(root: string, folder: string, form: Form = "npm"): Promise<readonly BundledPackage[]> {
  const esbuild = esbuildOf(root);
  if (esbuild === undefined) throw new Error("esbuild is not installed: run ./stamp pnpm install");
  const besides = new Set<string>();
  const folderOf = (file: string): string => {
    const home = packageFolderOf(file) ?? "";
    besides.add(home);
    return join(beside, packageNameOf(home), relative(home, dirname(file)));
  };
  const textOf = (file: string, content: string): string => (isOurs(file) && file.endsWith(".ts") ? named(content) : content);
  const programs = form === "npm" ? packagePrograms : [...packagePrograms, ...containerPrograms];
  const { metafile } = await esbuild.build({
    ...programOptions(root, ".."),
    entryPoints: Object.fromEntries(programs.map((program) => [program, sourceOf(program)])),
    outdir: join(folder, "programs"),
    chunkNames: "shared-[hash]",
    splitting: true,
    metafile: true,
    // pino-pretty is loaded for a role whose output is a terminal, which the supervisor gives to none.
    external: [...(form === "npm" ? Object.keys(native) : []), "pino-pretty", "esbuild"],
    loader: { ".node": "copy" },
    plugins: [sources(root, { onRead: () => {}, textOf, folderOf })],
  });
  const page = await bundlePage(root);
  mkdirSync(join(folder, pageFolder));
  for (const { name, contents } of page.parts) writeFileSync(join(folder, pageFolder, name), named(Buffer.from(contents).toString("utf8")));
  for (const home of besides) {
    for (const name of ["proto", `prebuilds/${process.platform}-${process.arch}`]) {
      const from = join(root, home, name);
      if (existsSync(from)) cpSync(from, join(folder, beside, packageNameOf(home), name), { recursive: true });
    }
  }
  for (const path of globSync("docs/{guides,formats}/**/*.{md,yml,json}", { cwd: root }).sort()) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), named(readFileSync(join(root, path), "utf8")));
  }
  cpSync(join(import.meta.dirname, "bin.mjs"), join(folder, "stamp.mjs"));
  chmodSync(join(folder, "stamp.mjs"), 0o755);
  writeFileSync(join(folder, typesFile), `${readFileSync(join(root, libraryTypes), "utf8")}export declare const startStamp: StartStamp;\n`);
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(folder, "docs/guides/package.md"), join(folder, "README.md"));
  const bundled = bundledOf(root, [...filesIn(metafile), ...filesIn(page.metafile)]);
  writeFileSync(join(folder, "THIRD-PARTY-LICENCES.txt"), licencesOf(root, bundled));
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifestOf(root, form), undefined, 2)}\n`);
  return bundled;
}

/** Sources of which the programs hold something. */
const filesIn = ({ outputs }: Metafile): string[] =>
  Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );

function manifestOf(root: string, form: Form): Readonly<Record<string, unknown>> {
  const { description, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<string, unknown>;
  return {
    name: "stamp-storage",
    version: release,
    description,
    license,
    type: "module",
    engines: { node: ">=24" },
    exports: { ".": { types: `./${typesFile}`, default: `./programs/${libraryProgram}.mjs` }, "./package.json": "./package.json" },
    bin: { stamp: "stamp.mjs", "stamp-storage": "stamp.mjs" },
    dependencies:
      form === "npm" ? Object.fromEntries(Object.entries(native).map(([name, user]) => [name, versionOf(root, name, user)])) : undefined,
  };
}

/** Returns the version that is installed here, and tested. */
function versionOf(root: string, name: string, user: string): string {
  const manifest = createRequire(realpathSync(join(root, user, "package.json"))).resolve(`${name}/package.json`);
  return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version;
}
