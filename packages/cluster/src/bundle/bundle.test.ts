import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { roles } from "../roles.ts";
import { bundlesIn, damagedBundle, digestOf, freshBundle, manifestIn, programOf, sourceOf } from "./bundle.ts";
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
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc", "stamp.mjs"]) writeFileSync(join(root, file), "");
  mkdirSync(join(root, "node_modules"));
  install(root);
  writeFileSync(wordFile, 'export const word: string = "one";\n');
  const installed = join(import.meta.dirname, "../../node_modules");
  symlinkSync(installed, join(root, "packages/cluster/node_modules"));
  return { root, wordFile };
}

/** Leaves the mark of stamp.mjs. */
function install(root: string): void {
  const digest = createHash("sha256");
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc"]) digest.update(readFileSync(join(root, file)));
  writeFileSync(join(root, "node_modules/.stamp-set-up"), `${digest.digest("hex")} here\n`);
}

async function said(path: string, environment: Readonly<Record<string, string>> = {}): Promise<string> {
  return (await promisify(execFile)(process.execPath, [path], { env: { ...process.env, ...environment } })).stdout.trim();
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

test("bundle: a damaged file is not started, and the bundle is made again", async (t) => {
  const damages: Record<string, (file: string) => void> = {
    "cut off": (file) => truncateSync(file, 10),
    "other content of the same size": (file) => writeFileSync(file, readFileSync(file, "utf8").replace("one", "0ne")),
    gone: (file) => rmSync(file),
  };
  for (const [what, damage] of Object.entries(damages)) {
    const { root } = repository();
    t.after(() => rmSync(root, { recursive: true, force: true }));
    await makeBundle(root);
    const folder = freshBundle(root) as string;
    assert.equal(damagedBundle(root), undefined);
    damage(join(folder, "extent-node.mjs"));
    assert.equal(damagedBundle(root), folder, "which the log tells");
    assert.equal(programOf(root, "extent-node").path, join(root, sourceOf("extent-node")), what);
    assert.equal(await makeBundle(root), true);
    assert.equal(freshBundle(root, "digests"), folder, what);
    assert.equal(await said(join(folder, "extent-node.mjs")), "extent-node one", what);
    assert.deepEqual(readdirSync(bundlesIn(root)).sort(), [folder.slice(bundlesIn(root).length + 1), "manifest.json"]);
  }
});

test("bundle: the compile cache of a process brings no removed bundle back", async (t) => {
  const { root, wordFile } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const inherited = process.env.NODE_COMPILE_CACHE;
  t.after(() => {
    if (inherited === undefined) delete process.env.NODE_COMPILE_CACHE;
    else process.env.NODE_COMPILE_CACHE = inherited;
  });
  delete process.env.NODE_COMPILE_CACHE;
  await makeBundle(root);
  const first = programOf(root, "extent-node");
  const before = readFileSync(wordFile, "utf8");
  writeFileSync(wordFile, before.replace("one", "two"));
  const folder = first.bundle as string;
  utimesSync(folder, 0, 0);
  assert.equal(await makeBundle(root), true);
  assert.equal(existsSync(folder), false);
  await said(join(root, sourceOf("extent-node")), { NODE_COMPILE_CACHE: first.compiled });
  assert.equal(existsSync(folder), false);
  // A folder that older releases left there is no bundle.
  mkdirSync(join(folder, "compiled"), { recursive: true });
  writeFileSync(wordFile, before);
  assert.equal(await makeBundle(root), true);
  assert.equal(await said(join(freshBundle(root, "digests") as string, "extent-node.mjs")), "extent-node one");

  process.env.NODE_COMPILE_CACHE = first.compiled;
  rmSync(manifestIn(root));
  const other = repository().root;
  t.after(() => rmSync(other, { recursive: true, force: true }));
  assert.equal(programOf(other, "extent-node").compiled, first.compiled, "the user's own choice");
  assert.equal(programOf(root, "extent-node").compiled, join(root, ".tools/compile-cache"));
});

test("bundle: every user can read it, whatever the umask of the process that made it", async (t) => {
  const { root } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  // In a process of its own: esbuild keeps the umask that it was started with.
  const program = `
    process.umask(0o077);
    await import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, "main.ts")).href)});`;
  await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, "main.ts", root]);
  const folder = freshBundle(root) as string;
  const modeOf = (path: string): number => statSync(path).mode & 0o777;
  for (const path of [join(root, ".tools"), bundlesIn(root), folder]) assert.equal(modeOf(path), 0o755, path);
  for (const path of [manifestIn(root), ...readdirSync(folder).map((name) => join(folder, name))]) assert.equal(modeOf(path), 0o644, path);
});

test("bundle: a user who can't read it starts from the sources", { skip: process.getuid?.() === 0 ? false : "needs root" }, async (t) => {
  const { root } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  await makeBundle(root);
  chmodSync(root, 0o755);
  // Not the program that is started.
  chmodSync(join(freshBundle(root) as string, "front-end.mjs"), 0o600);
  const program = `
    const { programOf } = await import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, "bundle.ts")).href)});
    process.setuid(65534);
    console.log(programOf(${JSON.stringify(root)}, "extent-node").path);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal(stdout.trim(), join(root, sourceOf("extent-node")));
});

test("bundle: none is made before the packages of the lock file are installed", async (t) => {
  const { root } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, "pnpm-lock.yaml"), "next");
  assert.equal(await makeBundle(root), false);
  assert.equal(freshBundle(root), undefined);
  install(root);
  assert.equal(await makeBundle(root), true);
  rmSync(join(root, "node_modules/.stamp-set-up"));
  assert.equal(freshBundle(root), undefined, "an installation is under way");
});

test("bundle: its digest tells the way in which it is made, the platform and the version of Node", () => {
  const one = digestOf(["a"], () => "content");
  assert.notEqual(
    digestOf(["a"], () => "content", "another way"),
    one,
  );
  assert.equal(
    digestOf(["a"], () => "content", `2 ${process.platform}-${process.arch} ${process.version}`),
    one,
  );
});

test("bundle: what a process that was ended had under way is removed", async (t) => {
  const { root } = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(bundlesIn(root), { recursive: true });
  const left = [".4194304-0badcafe", ".damaged-4194304-0badcafe"];
  for (const name of left) mkdirSync(join(bundlesIn(root), name, "in it"), { recursive: true });
  await makeBundle(root);
  assert.deepEqual(
    readdirSync(bundlesIn(root)).filter((name) => left.includes(name)),
    [],
  );
});

test("bundle: the programs of this repository say the same as their sources, and tell places in these", { timeout: 600_000 }, async (t) => {
  const root = join(import.meta.dirname, "../../../..");
  assert.equal(await makeBundle(root), true);
  const folder = freshBundle(root) as string;
  const run = promisify(execFile);
  for (const program of programs) {
    const lines = readFileSync(join(folder, `${program}.mjs`), "utf8").split("\n");
    // Node prints the line in which an uncaught error was thrown. Texts of the wire format are not divided.
    const long = lines.filter((line) => line.length > 1_000).length;
    assert.ok(long < lines.length / 20, `${program}: ${long} of ${lines.length} lines are long`);
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
