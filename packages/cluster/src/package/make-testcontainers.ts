/** Makes the folder of the package `stamp-testcontainers`: the sources of `packages/testcontainers` as JavaScript, with declarations. */
import { execFile } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { release } from "@stamp/base";

const room = "packages/testcontainers";
/** Options of the compiler: those of tsconfig.base.json, but with files to run. */
const options = "--declaration --rewriteRelativeImportExtensions --module nodenext --target es2024 --strict --skipLibCheck --types node";

/** Makes the package in the folder, which is empty. */
export async function makeTestcontainers(root: string, folder: string): Promise<void> {
  const { description, license, peerDependencies } = JSON.parse(readFileSync(join(root, room, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const args = ["--ignoreConfig", ...options.split(" "), "--outDir", join(folder, "dist"), join(room, "src/index.ts")];
  await promisify(execFile)(process.execPath, [compiler, ...args], { cwd: root });
  for (const name of [`${room}/README.md`, "LICENSE"]) cpSync(join(root, name), join(folder, name.replace(`${room}/`, "")));
  const manifest = {
    name: "stamp-testcontainers",
    version: release,
    description,
    license,
    type: "module",
    engines: { node: ">=24" },
    exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } },
    peerDependencies,
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
}
