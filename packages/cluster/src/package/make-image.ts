/**
 * Makes the folder `/stamp` of the image, which the Dockerfile copies: the package with everything inside.
 *
 *   node packages/cluster/src/package/make-image.ts FOLDER
 */
import { repositoryRoot } from "../repository-root.ts";
import { makePackage } from "./make-package.ts";

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: make-image.ts FOLDER");
await makePackage(repositoryRoot, folder, "image");
