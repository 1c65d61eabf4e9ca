/** Each act on the files of a process, in this process and as a program, as it runs in a container. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { type ActOutcome, actOn, type DamageAct } from "./hand.ts";

const root = mkdtempSync(join(tmpdir(), "stamp-hand-"));
after(() => rmSync(root, { recursive: true, force: true }));

function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = mkdtempSync(join(root, "x-"));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

/** The start of a journal segment with this generation. */
function segment(generation: bigint): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.writeBigUInt64LE(generation, 16);
  return bytes;
}

test("hand, bits of a file: flipped twice they are as before, and no other byte changes", async () => {
  const folder = folderWith({ "a/b": "0123456789" });
  const flip: DamageAct = { do: "flip", path: "a/b", offset: 3, length: 2 };
  await actOn(folder, "x", flip);
  assert.equal(readFileSync(join(folder, "a/b"), "latin1"), "012fa56789");
  await actOn(folder, "x", flip);
  assert.equal(readFileSync(join(folder, "a/b"), "latin1"), "0123456789");
});

test("hand, files: cut, moved, written, removed; an emptied folder is still there", async () => {
  const folder = folderWith({ "a/b": "0123456789", "c/d/e": "x" });
  await actOn(folder, "x", { do: "cut", path: "a/b", bytes: 4 });
  await actOn(folder, "x", { do: "move", path: "a/b", to: "moved" });
  await actOn(folder, "x", { do: "write", path: "a/stray", text: "left behind" });
  await actOn(folder, "x", { do: "remove", path: "c" });
  assert.equal(readFileSync(join(folder, "moved"), "utf8"), "012345");
  assert.deepEqual(readdirSync(join(folder, "a")), ["stray"]);
  assert.equal(existsSync(join(folder, "c")), false);
  await actOn(folder, "x", { do: "empty" });
  assert.deepEqual(readdirSync(folder), []);
});

test("hand, newest: the segment of the highest generation goes; the copy with the highest number and the largest file of the store are named", async () => {
  const folder = folderWith({
    "files/journal/1.segment": segment(7n),
    "files/journal/2.segment": segment(9n),
    "files/journal/3.segment": segment(8n),
    "files/metadata-copies/99.snapshot": "a",
    "files/metadata-copies/100.snapshot": "bcd",
    "files/metadata-copies/100.snapshot.part": "",
    "stores/consensus-9/4.ldb": "12345",
    "stores/consensus-10/4.ldb": "1234",
    "stores/consensus-10/5.log": "12",
    "stores/consensus-10/MANIFEST-1": "123456",
    "stores/identity/4.ldb": "123456",
  });
  await actOn(folder, "x", { do: "remove-newest-segment" });
  assert.deepEqual(readdirSync(join(folder, "files/journal")), ["1.segment", "3.segment"]);
  const { file } = await actOn(folder, "x", { do: "newest-copy" });
  assert.deepEqual(file, { path: "files/metadata-copies/100.snapshot", bytes: 3 });
  assert.deepEqual((await actOn(folder, "x", { do: "largest-of-store" })).file, { path: "stores/consensus-10/4.ldb", bytes: 4 });
  assert.deepEqual(await actOn(folderWith({}), "x", { do: "newest-copy" }), { said: [] });
});

test("hand, as a program: takes an act on standard input and tells the same; a failure is its exit code", async () => {
  const folder = folderWith({ file: Buffer.from([0, 255, 10]) });
  const run = (act: DamageAct): Promise<{ code: number; out: string }> =>
    new Promise((resolve) => {
      const args = [join(import.meta.dirname, "hand-program.ts"), folder, "extent-node-1"];
      const child = execFile(process.execPath, args, (error, out) => resolve({ code: error === null ? 0 : Number(error.code), out }));
      child.stdin?.end(JSON.stringify(act));
    });
  const read = await run({ do: "read", path: "file" });
  assert.deepEqual(JSON.parse(read.out) as ActOutcome, { said: [], content: "AP8K" });
  assert.equal((await run({ do: "read", path: "none" })).code, 1);
  const rebuilt = JSON.parse((await run({ do: "rebuild" })).out) as ActOutcome;
  assert.match(rebuilt.said.join(), /^not rebuilt: the disk is empty/);
});
