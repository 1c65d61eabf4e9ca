import assert from "node:assert/strict";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { release } from "@stamp/base";
import { chartArchive } from "./chart.ts";
import { notesOf } from "./notes.ts";
import { sbomOf } from "./sbom.ts";
import { setVersion, versionsIn } from "./version.ts";

const root = join(import.meta.dirname, "../../../..");
const folder = mkdtempSync(join(tmpdir(), "stamp-release-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("release, version: every file that has it has that of this release; another one is set in all of them", () => {
  const here = versionsIn(root);
  assert.ok(here.length >= 8, here.join());
  for (const each of here) assert.ok(each.endsWith(`: ${release}`), each);
  for (const file of new Set(here.map((each) => each.split(":")[0] ?? ""))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file));
  }
  assert.throws(() => setVersion(folder, "next"), /three numbers/);
  setVersion(folder, "10.20.30");
  assert.deepEqual(
    versionsIn(folder),
    here.map((each) => each.replace(release, "10.20.30")),
  );
  assert.match(readFileSync(join(folder, "packages/base/src/formats.ts"), "utf8"), /release = "10\.20\.30"/);
});

test("release, chart: the same files give the same bytes, below the chart's name and without values of tests", () => {
  const chart = join(root, "deploy/helm/stamp");
  const archive = chartArchive(chart, "stamp");
  assert.ok(archive.equals(chartArchive(chart, "stamp")));
  const tar = gunzipSync(archive).toString("latin1");
  assert.ok(tar.startsWith("stamp/Chart.yaml\0"));
  assert.equal(tar.includes("stamp/ci/"), false);
  for (const file of globSync("templates/*", { cwd: chart })) assert.ok(tar.includes(`stamp/${file}\0`), file);
});

test("release, notes: those of the version, else what is unreleased; a changelog without either is refused", () => {
  const text = "# Changes\n\n## Unreleased\n\n- new\n\n## 0.1.0 (1 May 2026)\n\n### All\n\n- old\n";
  assert.equal(notesOf(text, "0.1.0"), "# Stamp 0.1.0\n\n### All\n\n- old\n");
  assert.equal(notesOf(text, "0.2.0"), "# Stamp 0.2.0\n\n- new\n");
  assert.throws(() => notesOf("# Changes\n\n## Unreleased\n", "0.2.0"), /has no line under/);
});

test("release, bill of materials: each package with its licence, in one order, with no time", () => {
  const zod = { folder: "", name: "zod", version: "4.6.7", licence: "MIT" };
  const grpc = { folder: "", name: "@grpc/grpc-js", version: "1.14.7", licence: "Apache-2.0" };
  const made = sbomOf("stamp-storage", "1.2.3", [zod, grpc]);
  assert.equal(sbomOf("stamp-storage", "1.2.3", [grpc, zod]), made);
  const { bomFormat, components, dependencies, metadata } = JSON.parse(made);
  assert.deepEqual([bomFormat, metadata.timestamp], ["CycloneDX", undefined]);
  assert.deepEqual(
    components.map(({ purl }: { purl: string }) => purl),
    ["pkg:npm/%40grpc/grpc-js@1.14.7", "pkg:npm/zod@4.6.7"],
  );
  assert.deepEqual(components[1].licenses, [{ expression: "MIT" }]);
  assert.equal(dependencies.find(({ ref }: { ref: string }) => ref === "pkg:npm/stamp-storage@1.2.3").dependsOn.length, 2);
});
