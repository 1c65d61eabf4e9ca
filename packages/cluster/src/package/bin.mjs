#!/usr/bin/env node
/** `stamp` of the installed package. Runs on any Node that knows modules, to say which one it needs. */
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const nodeMajorMin = 24;
const root = dirname(fileURLToPath(import.meta.url));
if (Number(process.versions.node.split(".")[0]) < nodeMajorMin) {
  console.error(`stamp: needs Node.js ${nodeMajorMin} or newer; this is ${process.version}.`);
  process.exit(1);
}
process.env.STAMP_ROOT = root;
const isBench = process.argv[2] === "bench";
if (isBench) process.argv.splice(2, 1);
await import(pathToFileURL(join(root, "programs", isBench ? "bench.mjs" : "command-line.mjs")).href);
