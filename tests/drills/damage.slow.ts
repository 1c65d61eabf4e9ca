/** The drill `damage` on real processes: hurt files, tables and journals are found by fsck and mended, and every blob is what was written. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { test } from "node:test";

test("drill damage: eleven kinds of damage by hand are found and mended", { timeout: 1_200_000 }, async () => {
  const root = resolve(import.meta.dirname, "../..");
  const output = await new Promise<string>((done, fail) => {
    execFile(
      process.execPath,
      [resolve(root, "stamp.mjs"), "drill", "damage", "--json"],
      { maxBuffer: 1 << 24 },
      (error, stdout, stderr) => {
        if (stdout === "") fail(new Error(`${error?.message}\n${stderr}`));
        else done(stdout);
      },
    );
  });
  const report = JSON.parse(output.slice(output.indexOf("{"))) as {
    ok: boolean;
    broken: string[];
    steps: { readonly said: readonly string[] }[];
    blobs: number;
    readBack: number;
  };
  assert.deepEqual(report.broken, []);
  assert.equal(report.readBack, report.blobs);
  assert.equal(report.steps.length, 11);
  // The store with the damage is set aside, and the next one begins.
  assert.match(
    report.steps.at(-2)?.said.join() ?? "",
    /byte \d+ of stores\/consensus-1\/.*lock-service-1 serves from stores\/consensus-2\//,
  );
});
