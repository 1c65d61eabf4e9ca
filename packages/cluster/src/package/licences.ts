/** Licences of what the programs of the package hold of other packages. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A package whose code the programs hold. */
export interface BundledPackage {
  /** Folder of the package below the root. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  /** Licence that the package's manifest names. */
  readonly licence: string;
}

/** Returns the folder of the package that a file of node_modules belongs to, below the root; undefined for files of this repository. */
export const packageFolderOf = (file: string): string | undefined => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0];

export const packageNameOf = (folder: string): string => folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);

/** Returns the packages of files, by name and version. Throws if a package names no licence. `files`: paths below the root. */
export const bundledOf = (root: string, files: readonly string[]): BundledPackage[] =>
  [...new Set(files.flatMap((file) => packageFolderOf(file) ?? []))]
    .map((folder) => bundledIn(root, folder))
    .sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));

/** Returns the text for the package. */
export function licencesOf(root: string, bundled: readonly BundledPackage[]): string {
  const list = bundled.map(({ name, version, licence }) => `${name} ${version}: ${licence}`).join("\n");
  const texts = bundled.map(
    (each) => `${"=".repeat(80)}\n${each.name} ${each.version} (${each.licence})\n\n${textIn(join(root, each.folder))}`,
  );
  return `The programs of this package hold code of these packages:\n\n${list}\n\n${texts.join("\n")}`;
}

function bundledIn(root: string, folder: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Record<string, unknown>;
  if (typeof license !== "string")
    throw new Error(`${folder}/package.json names no licence: take the package out, or name its licence here`);
  return { folder, name: String(name), version: String(version), licence: license };
}

/** Returns the text of its licence and notices; of a package without one, its manifest has said which licence. */
function textIn(folder: string): string {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name)) : [];
  const texts = names.sort().map((name) => `${readFileSync(join(folder, name), "utf8").trim()}\n`);
  return texts.length === 0 ? "Its package has no text of the licence.\n" : texts.join("\n");
}
