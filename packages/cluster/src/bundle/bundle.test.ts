import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { roles } from "../roles.ts";
import { freshBundle, manifestIn, programOf, sourceOf } from "./bundle.ts";
import { makeBundle } from "./make-bundle.ts";

const up = "../../..";
const programs = [...roles, "location-service"];

/** A repository whose programs print a word of a package. */
function repository(): { readonly root: string; readonly wordFile: string } {
  const root = mkdtempSync(join(tmpdir(), "stamp-bundle-"));
  const wordFile = join(root, "packages/cluster/src/word.ts");
  for (const program of programs) {
    mkdirSync(join(root, "services", program, "src"), { recursive: true });
    writeFileSync(
      join(root, "services", program, "src/main.ts"),
      `import { word } from "${up}/packages/cluster/src/word.ts";\nconsole.log("${program}", word as string);\n`,
    );
  }
  mkdirSync(join(root, "packages/cluster/src/supervise"), { recursive: true });
  writeFileSync(join(root, "packages/cluster/src/supervise/daemon.ts"), "");
  writeFileSync(join(root, "packages/cluster/package.json"), "{}");
  writeFileSync(join(root, "pnpm-lock.yaml"), "");
  writeFileSync(wordFile, 'export const word: string = "one";\n');
  const installed = join(import.meta.dirname, "../../node_modules");
  symlinkSync(installed, join(root, "packages/cluster/node_modules"));
  return { root, wordFile };
}

async function said(path: string): Promise<string> {
  return (await promisify(execFile)(process.execPath, [path])).stdout.trim();
}

test("bundle: programs start from it while the sources are those that it was made of, and from their sources after a change", async (t) => {
  const { root, wordFile } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  assert.equal(freshBundle(root), undefined);
  assert.equal(await makeBundle(root), true);
  const first = freshBundle(root) as string;
  assert.equal(await said(join(first, "extent-node.mjs")), "extent-node one");
  assert.equal(await said(join(first, "front-end.mjs")), "front-end one");
  assert.equal(programOf(root, "extent-node").path, join(first, "extent-node.mjs"));

  const before = readFileSync(wordFile, "utf8");
  writeFileSync(wordFile, before.replace("one", "two"));
  assert.equal(freshBundle(root), undefined);
  assert.equal(await makeBundle(root), true);
  const second = freshBundle(root) as string;
  assert.notEqual(second, first);
  assert.equal(await said(join(second, "extent-node.mjs")), "extent-node two");

  rmSync(wordFile);
  assert.equal(freshBundle(root), undefined);
  writeFileSync(wordFile, before);
  writeFileSync(join(root, "packages/cluster/package.json"), '{"type":"module"}');
  assert.equal(freshBundle(root), undefined, "what packages export decides what is bundled");
});

test("bundle: a program whose source has changed since the last look starts from its source", async (t) => {
  const { root, wordFile } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  await makeBundle(root);
  writeFileSync(wordFile, 'export const word: string = "three";\n');
  const { path } = programOf(root, "lock-service");
  assert.equal(path, join(root, "services/lock-service/src/main.ts"));
});

test("bundle: sources that can't be bundled leave none, and the programs start from their sources", async (t) => {
  const { root, wordFile } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(wordFile, "export const word = ;\n");
  const told: string[] = [];
  t.mock.method(process.stderr, "write", (text: string) => told.push(text) > 0);
  assert.equal(await makeBundle(root), false);
  assert.match(told.join(""), /the processes start from their sources/);
  assert.equal(freshBundle(root), undefined);
  assert.equal(existsSync(manifestIn(root)), false);
});

test("bundle: two that are made at once are one", async (t) => {
  const { root } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  assert.deepEqual(await Promise.all([makeBundle(root), makeBundle(root)]), [true, true]);
  const folder = freshBundle(root) as string;
  assert.equal(await said(join(folder, "stream-manager.mjs")), "stream-manager one");
  assert.ok(existsSync(join(folder, "extent-node.mjs.map")));
});

test("bundle: the programs of this repository say the same as their sources, and tell places in these", { timeout: 600_000 }, async (t) => {
  const root = join(import.meta.dirname, "../../../..");
  assert.equal(await makeBundle(root), true);
  const folder = freshBundle(root) as string;
  const run = promisify(execFile);
  for (const program of programs) {
    const [bundled, source] = await Promise.all([
      run(process.execPath, [join(folder, `${program}.mjs`), "--help"]),
      run(process.execPath, [join(root, sourceOf(program)), "--help"]),
    ]);
    assert.equal(bundled.stdout, source.stdout, program);
  }
  const data = mkdtempSync(join(tmpdir(), "stamp-bundle-data-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const env = {
    ...process.env,
    STAMP_NAME: "extent-node-1",
    STAMP_DATA_DIR: data,
    STAMP_HTTP: "127.0.0.1:99999",
    STAMP_LOCK_SERVICE: "127.0.0.1:1",
  };
  const failed = await run(process.execPath, [join(folder, "extent-node.mjs"), "--listen", "127.0.0.1:0"], { env }).catch((error) => error);
  assert.match(failed.stdout, /packages\/ports-node\/src\/[\w/-]+\.ts:\d+:\d+/);
});
