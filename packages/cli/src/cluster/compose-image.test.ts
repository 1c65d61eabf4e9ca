import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../../../..");

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

function manifestOf(name: string): Manifest {
  for (const folder of ["packages", "services"]) {
    try {
      return JSON.parse(readFileSync(join(root, folder, name, "package.json"), "utf8")) as Manifest;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`there is no package ${name}`);
}

test("compose, image, is not without a package that the command line or a service needs", () => {
  const needed = new Set<string>();
  const need = (name: string): void => {
    if (needed.has(name)) return;
    needed.add(name);
    for (const each of Object.keys(manifestOf(name).dependencies ?? {})) if (each.startsWith("@stamp/")) need(each.slice("@stamp/".length));
  };
  for (const name of ["cli", "bench"]) need(name);
  assert.ok(needed.has("extent-node") && needed.has("front-end"));
  const left = [...readFileSync(join(root, ".dockerignore"), "utf8").matchAll(/^packages\/([\w-]+)$/gm)].map(([, name = ""]) => name);
  assert.ok(left.includes("simulator"));
  for (const name of left) assert.ok(!needed.has(name), `.dockerignore leaves ${name} out of the image`);
});

test("one container, accounts are named at a later start: the public key that the volume remembers is served no more", () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-start-"));
  try {
    writeFileSync(join(folder, "stamp"), '#!/bin/sh\necho "$STAMP_ALLOW_DEVELOPMENT_ACCOUNT"\n', { mode: 0o755 });
    const started = (environment: Record<string, string>): string =>
      execFileSync("sh", [join(root, "compose/start.sh")], {
        env: { PATH: `${folder}:${process.env.PATH}`, STAMP_DATA_DIR: folder, ...environment },
        encoding: "utf8",
      }).trim();
    const named = [{ STAMP_ACCOUNTS: "[]" }, { AZURITE_ACCOUNTS: "a:b" }];
    assert.equal(started({}), "true");
    for (const accounts of named) assert.equal(started(accounts), "false", "at the first start");
    writeFileSync(join(folder, "cluster.json"), "{}");
    assert.equal(started({}), "", "as the volume remembers");
    for (const accounts of named) assert.equal(started(accounts), "false");
    assert.equal(started({ STAMP_ACCOUNTS: "[]", STAMP_ALLOW_DEVELOPMENT_ACCOUNT: "true" }), "true", "unless somebody asks for it");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
