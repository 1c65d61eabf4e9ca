/** Processes of every role start without Node's own fetch. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const index = pathToFileURL(new URL("../index.ts", import.meta.url).pathname).href;
const modules = 'process.moduleLoadList.filter((name) => name.includes("undici")).length';

/** Number of modules of undici that a process has loaded after it ran the program. */
async function loadedBy(program: string): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", `${program}; console.log(${modules})`]);
  return Number(stdout);
}

test("node http: what every process loads does not load undici; an import of node:http would", async () => {
  assert.equal(await loadedBy(`await import(${JSON.stringify(index)})`), 0);
  assert.ok((await loadedBy('await import("node:http")')) > 0, "the other half says nothing");
});
