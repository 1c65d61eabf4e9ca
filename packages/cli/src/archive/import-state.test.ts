/** The file that tells how far an import is. */
import assert from "node:assert/strict";
import { cpSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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

test("import: it goes on where it was begun, not in a copy of the folder or into another account", async (context) => {
  const folder = folderOf(context);
  await (await open(folder)).save({ part: 7 }, noCounts(), true);
  assert.deepEqual((await open(folder)).from, { part: 7 });
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
  await (await open(folder)).save({}, noCounts(), true);
  assert.equal(readFileSync(mine, "utf8"), "precious");
  assert.ok(lstatSync(join(folder, "import.json")).isFile());
  rmSync(join(folder, "import.json"));
  symlinkSync(mine, join(folder, "import.json"));
  await assert.rejects(open(folder), /import\.json is no plain file/);
});
