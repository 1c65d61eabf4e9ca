import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

/** Where the code of this build is: the repository, `/stamp` in the image, or the folder of the installed package. */
export const repositoryRoot: string = process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../..");

/** Folder of the programs in the installed package. */
export const programsIn = "programs";

/** True if the code is the installed package `stamp-storage`. */
export const isPackage = (root: string): boolean => existsSync(join(root, programsIn, "supervisor.mjs"));

/**
 * Folder with the data of a stamp that names none: that of the code. npm removes the folder of a package with everything in it, so that a stamp
 * of the package has its data in the present folder.
 */
export const homeFolder: string = isPackage(repositoryRoot) ? process.cwd() : repositoryRoot;
