/** The file that tells how far an import is. */
import assert from "node:assert/strict";
import { cpSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ImportState } from "./import-state.ts";
import { noCounts } from "./items.ts";

function folderOf(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "stamp-import-state-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const named = { source: "archive of acme", target: "http://127.0.0.1:10000/acme", options: "" };
const open = (folder: string, others: Partial<typeof named> = {}) =>
  ImportState.open({ path: join(folder, "import.json"), ...named, ...others });

test("import: of two runs with one file the second is refused, and what a killed one has left is taken over", async (context) => {
  const folder = folderOf(context);
  const first = await open(folder);
  await first.save({ part: 7 }, noCounts(), true);
  await assert.rejects(open(folder), new RegExp(`another import runs with .*import\\.json \\(process ${process.pid}\\)`));
  const lock = join(folder, "import.json.lock");
  const mine = JSON.parse(readFileSync(lock, "utf8")) as object;
  await first.close();
  assert.deepEqual(readdirSync(folder), ["import.json"]);
  writeFileSync(lock, JSON.stringify({ ...mine, pid: 2 ** 30 }));
  const second = await open(folder);
  assert.deepEqual(second.from, { part: 7 });
  await second.close();
  writeFileSync(lock, JSON.stringify({ ...mine, host: "elsewhere" }));
  await assert.rejects(open(folder), /another import may run with .*, on elsewhere: if none does, remove .*import\.json\.lock/);
});

test("import: where nothing can be written, the message names the flag for another place", async (context) => {
  const folder = join(folderOf(context), "file");
  writeFileSync(folder, "");
  await assert.rejects(open(folder), /how far the import is can't be written to .*: name a file elsewhere with --state FILE/);
});

test("import: what a killed run has begun to make is the import's, and what was there before is not", async (context) => {
  const folder = folderOf(context);
  const [yes, no] = [async () => true, async () => false];
  const first = await open(folder);
  assert.deepEqual([await first.makes("container old", yes), await first.makes("container new", no)], [false, true]);
  await first.close();
  const second = await open(folder);
  assert.deepEqual([await second.makes("container old", yes), await second.makes("container new", yes)], [false, true]);
});

test("import: it goes on where it was begun, not in a copy of the folder or into another account", async (context) => {
  const folder = folderOf(context);
  const first = await open(folder);
  await first.save({ part: 7 }, noCounts(), true);
  await first.close();
  const second = await open(folder);
  assert.deepEqual(second.from, { part: 7 });
  await second.close();
  const copy = folderOf(context);
  cpSync(join(folder, "import.json"), join(copy, "import.json"));
  await assert.rejects(open(copy), /was begun in another folder, and came here with a copy: remove the file/);
  await assert.rejects(open(folder, { target: "http://127.0.0.1:10000/other" }), /is of another import/);
});

test("import: links that came with an archive are not followed", async (context) => {
  const folder = folderOf(context);
  const mine = join(folderOf(context), "mine");
  writeFileSync(mine, "precious");
  symlinkSync(mine, join(folder, "import.json.new"));
  const state = await open(folder);
  await state.save({}, noCounts(), true);
  await state.close();
  assert.equal(readFileSync(mine, "utf8"), "precious");
  assert.ok(lstatSync(join(folder, "import.json")).isFile());
  rmSync(join(folder, "import.json"));
  symlinkSync(mine, join(folder, "import.json"));
  await assert.rejects(open(folder), /import\.json is no plain file/);
});
