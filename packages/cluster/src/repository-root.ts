import { resolve } from "node:path";

/** Where the code of this build is: the repository, or `/stamp` in the image. */
export const repositoryRoot: string = process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../..");
