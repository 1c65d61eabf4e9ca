import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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
