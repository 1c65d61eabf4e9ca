/** A bundle that looks whole and does not work: the processes start from their sources. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../config.ts";
import { StartError } from "../start-error.ts";
import { detach } from "../supervise/detach.ts";
import { ManagedProcess } from "../supervise/managed-process.ts";
import { bundlesIn, contentIn, digestOf, manifestIn, programOf, sha256Of, sourceOf } from "./bundle.ts";

/** A repository with a bundle of two programs, whose contents are given. */
function repository(sources: Readonly<Record<string, string>>, bundled: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "stamp-broken-bundle-"));
  for (const [program, content] of Object.entries(sources)) {
    mkdirSync(join(root, sourceOf(program), ".."), { recursive: true });
    writeFileSync(join(root, sourceOf(program)), content);
  }
  const files = Object.keys(sources).map(sourceOf);
  const digest = digestOf(files, contentIn(root)) as string;
  const folder = join(bundlesIn(root), digest);
  mkdirSync(folder, { recursive: true });
  for (const [program, content] of Object.entries(bundled)) writeFileSync(join(folder, `${program}.mjs`), content);
  const outputs = readdirSync(folder).map((name) => {
    const path = join(folder, name);
    return { name, bytes: readFileSync(path).length, sha256: sha256Of(path) };
  });
  writeFileSync(manifestIn(root), JSON.stringify({ digest, files, outputs }));
  return root;
}

test("broken bundle: after a program of it has ended at its start, its role starts from the source, and the log tells so once", async (t) => {
  const works = "setInterval(() => {}, 1000);";
  const root = repository(
    { "extent-node": works, "front-end": works },
    { "extent-node": "import './missing.mjs';", "front-end": "process.exit(64);" },
  );
  t.after(() => rmSync(root, { recursive: true, force: true }));
  assert.notEqual(programOf(root, "extent-node").bundle, undefined);
  const common = { root, logs: root, logBytesMax: 1_000_000, restartAfterMs: 10, stopTimeoutMs: 5_000 };
  const startTwice = async (role: "extent-node" | "front-end", name: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let starts = 0;
    const plan = { role, name, grpc: "127.0.0.1:1", http: "127.0.0.1:2", environment: {} };
    const managed = new ManagedProcess(plan as never, {
      ...common,
      onChange: (_, { kind }) => {
        if (kind === "started" && ++starts === 2) resolve();
      },
    });
    managed.start();
    await promise;
    await managed.stop("kill");
    managed.close();
  };
  await startTwice("extent-node", "extent-node-1");
  assert.equal(programOf(root, "extent-node").path, join(root, sourceOf("extent-node")));
  const log = readFileSync(join(root, "extent-node-1.log"), "utf8");
  assert.equal(log.match(/extent-node starts from its source from now on/g)?.length, 1);

  await startTwice("front-end", "front-end-1");
  assert.notEqual(programOf(root, "front-end").bundle, undefined, "a wrong configuration says nothing about the program");
});

test("broken bundle: a supervisor that does not start from it starts from its source, and a reason that it told is told once", async (t) => {
  const told = `console.error("from the source"); process.exit(69);`;
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-broken-bundle-data-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const started = async (supervisor: string): Promise<string> => {
    const root = repository({ supervisor: told }, { supervisor });
    t.after(() => rmSync(root, { recursive: true, force: true }));
    const config = loadConfig({ directory: root, root, environment: {}, flags: { dataDir } });
    const failed = await detach(config, root).catch((error: unknown) => error);
    assert.ok(failed instanceof StartError);
    return failed.message;
  };
  assert.equal(await started("import './missing.mjs';"), "from the source");
  assert.equal(await started('console.error("from the bundle"); process.exit(69);'), "from the bundle");
  assert.match(readFileSync(join(dataDir, "logs/supervisor.log"), "utf8"), /the supervisor starts from its source, because/);
});
