/** A supervisor outlives whatever happens to the folder of its bundle. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { identityOf } from "../supervise/process-identity.ts";
import { bundlesIn } from "./bundle.ts";
import { makeBundleWhenReady } from "./later-bundle.ts";
import { makeBundleInTurn, turnIn } from "./turn.ts";

const main = join(import.meta.dirname, "main.ts");

function repository(maker = `await import(${JSON.stringify(main)});`): string {
  const root = mkdtempSync(join(tmpdir(), "stamp-later-bundle-"));
  mkdirSync(join(root, "packages/cluster/src/bundle"), { recursive: true });
  for (const file of ["pnpm-workspace.yaml", "stamp.mjs", "pnpm-lock.yaml", ".npmrc"]) writeFileSync(join(root, file), "");
  writeFileSync(join(root, "packages/cluster/src/bundle/main.ts"), maker);
  return root;
}

/** Returns the first warning. */
async function warned(root: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  await makeBundleWhenReady(root, () => true, new AbortController().signal, resolve);
  // Nothing of the maker keeps this process.
  const keeping = setInterval(() => {}, 1_000);
  return promise.finally(() => clearInterval(keeping));
}

test("later bundle: where it can't be written, the supervisor is told why, and lives", async (t) => {
  const root = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, ".tools"), "a file");
  assert.match(await warned(root), /^the processes start from their sources, because no bundle could be made: .*(ENOTDIR|EEXIST)/);
});

test("later bundle: a process that can't be started is a warning", async (t) => {
  const root = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const { execPath } = process;
  t.after(() => {
    process.execPath = execPath;
  });
  process.execPath = join(root, "missing");
  assert.match(await warned(root), /no bundle could be made: .*ENOENT/);
});

test("later bundle: what a maker says at its end is the warning, also when its folder has gone meanwhile", async (t) => {
  const root = repository(`
    import { rmSync } from "node:fs";
    rmSync(process.argv[2] + "/.tools", { recursive: true, force: true });
    console.error("gone");`);
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(turnIn(root), "not empty"), { recursive: true });
  assert.equal(await warned(root), "gone");
});

test("turn: that of a process which has ended is taken over, a folder of that name too, and that of a running one is not", async (t) => {
  const root = repository();
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const told: string[] = [];
  t.mock.method(process.stderr, "write", (text: string) => told.push(text) > 0);
  mkdirSync(bundlesIn(root), { recursive: true });
  const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  const ended = once(other, "exit");
  t.after(() => other.kill("SIGKILL"));
  writeFileSync(turnIn(root), JSON.stringify(identityOf(other.pid as number)));
  await makeBundleInTurn(root);
  assert.equal(existsSync(turnIn(root)), true);
  assert.match(readFileSync(turnIn(root), "utf8"), new RegExp(`${other.pid}`));
  other.kill("SIGKILL");
  await ended;
  await makeBundleInTurn(root);
  assert.equal(existsSync(turnIn(root)), false);
  mkdirSync(join(turnIn(root), "not empty"), { recursive: true });
  await makeBundleInTurn(root);
  assert.equal(existsSync(turnIn(root)), false);
});
