/**
 * `stamp`: the command line. Node keeps the code that it compiled for one call in a folder of the repository, for the
 * next one: without it a call spends most of its time on taking the types out of the sources. The folder is bounded:
 * Node keeps one file per source file and version of Node, and uses it only while the source is the same. It stands
 * beside the code and not in the folder for temporary files, where others may write. If the folder can't be written,
 * Node compiles as if it were empty.
 */
import { enableCompileCache } from "node:module";
import { join, resolve } from "node:path";

enableCompileCache(join(process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../.."), ".tools", "compile-cache"));
// Behind the call above: what is imported at the top of a file is compiled before its first statement.
const { runProgram } = await import("./program.ts");
await runProgram(process.argv);
