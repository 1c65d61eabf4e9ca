/** `stamp release --dry-run` twice, as a person runs it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { release } from "@stamp/base";

const program = join(import.meta.dirname, "main.ts");
const folder = mkdtempSync(join(tmpdir(), "stamp-release-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const run = (...args: readonly string[]) => promisify(execFile)(process.execPath, [program, ...args]);

test("release, dry run: twice the same bytes, each with its checksum; a folder with files is refused", { timeout: 300_000 }, async () => {
  const outs = ["first", "second"].map((name) => join(folder, name)) as [string, string];
  for (const out of outs) await run("--dry-run", "--without-image", "--out", out);
  const names = [
    "licences.txt",
    "notes.md",
    "sbom.cdx.json",
    ...["chart", "storage", "testcontainers"].map((of) => `stamp-${of}-${release}.tgz`),
  ];
  assert.deepEqual(readdirSync(outs[0]), ["SHA256SUMS", ...names]);
  for (const name of ["SHA256SUMS", ...names]) {
    assert.ok(readFileSync(join(outs[0], name)).equals(readFileSync(join(outs[1], name))), name);
  }
  const sums = names.map(
    (name) =>
      `${createHash("sha256")
        .update(readFileSync(join(outs[0], name)))
        .digest("hex")}  ${name}\n`,
  );
  assert.equal(readFileSync(join(outs[0], "SHA256SUMS"), "utf8"), sums.join(""));
  const components = JSON.parse(readFileSync(join(outs[0], "sbom.cdx.json"), "utf8")).components as readonly { readonly name: string }[];
  for (const name of ["grpc-js", "classic-level", "zod", "preact"])
    assert.ok(
      components.some((each) => each.name === name),
      name,
    );
  await assert.rejects(run("--dry-run", "--out", outs[0]), /is not empty: name another folder/);
  await assert.rejects(run(), /say --dry-run/);
});
