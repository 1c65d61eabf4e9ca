/** `stamp release`: makes the files of a release. Nothing is published (RELEASING.md). */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { release } from "@stamp/base";
import { repositoryRoot } from "../repository-root.ts";
import { makeRelease } from "./make-release.ts";
import { setVersion } from "./version.ts";

const usage = `usage: ./stamp release --dry-run [--out FOLDER] [--without-image]
       ./stamp release --version X.Y.Z
  --dry-run        makes the files of release ${release} in FOLDER (default: .tools/release/${release}), and prints their checksums:
                   packages for npm, chart, image (with a Docker engine), bill of materials, licences, notes. The same sources
                   give the same bytes, on the same base image. Nothing is published: RELEASING.md says who does that, and how.
  --without-image  leaves out the image
  --version        writes another version into every file that has it, and makes nothing`;

const { values } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    "without-image": { type: "boolean", default: false },
    out: { type: "string", default: join(repositoryRoot, ".tools/release", release) },
    version: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
try {
  if (values.help) console.log(usage);
  else if (values.version !== undefined) setVersion(repositoryRoot, values.version);
  else if (values["dry-run"])
    await makeRelease(repositoryRoot, { out: resolve(values.out), image: !values["without-image"], tell: console.log });
  else {
    console.error("stamp: say --dry-run or --version X.Y.Z; nothing is published by this command (RELEASING.md)");
    process.exitCode = 2;
  }
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  console.error(`stamp: ${code === "ENOENT" ? `npm or docker is missing: ${message}` : message}`);
  process.exitCode = 1;
}
