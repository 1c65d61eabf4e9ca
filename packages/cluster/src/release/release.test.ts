import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { release } from "@stamp/base";
import { chartArchive } from "./chart.ts";
import { timelessImage } from "./image.ts";
import { notesOf } from "./notes.ts";
import { sbomOf } from "./sbom.ts";
import { archiveEnd, entriesOf, entryOf, withTime } from "./tar.ts";
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

test("release, image: two builds of the same files at other times give the same bytes, and what the files hold counts", () => {
  const saved = (seconds: number, text: string): Buffer => {
    const layer = (name: string) =>
      Buffer.concat([...entryOf(name, Buffer.from(text)).map((each, at) => (at === 0 ? withTime(each, seconds) : each)), archiveEnd]);
    const created = new Date(seconds * 1_000).toISOString();
    const config = {
      created,
      config: { User: "node" },
      history: [{ created, created_by: "COPY" }],
      rootfs: { type: "layers", diff_ids: [`sha256:${seconds}`] },
    };
    const manifest = [{ Config: "blobs/config", RepoTags: ["stamp:1.2.3"], Layers: ["blobs/one", "blobs/two"] }];
    const files = {
      "manifest.json": JSON.stringify(manifest),
      "blobs/config": JSON.stringify(config),
      "blobs/one": layer("etc/a"),
      "blobs/two": layer("etc/b"),
    };
    return Buffer.concat([...Object.entries(files).flatMap(([name, content]) => entryOf(name, Buffer.from(content))), archiveEnd]);
  };
  const made = Buffer.concat(timelessImage(saved(1_000, "text"), 77));
  assert.ok(made.equals(Buffer.concat(timelessImage(saved(2_000, "text"), 77))));
  assert.equal(made.equals(Buffer.concat(timelessImage(saved(1_000, "other"), 77))), false);
  const files = new Map([...entriesOf(made)].map(({ name, content }) => [name, content]));
  const [{ Config, RepoTags, Layers }] = JSON.parse(String(files.get("manifest.json")));
  const config = JSON.parse(String(files.get(Config)));
  assert.deepEqual(
    [RepoTags, config.created, config.history[0].created, config.config.User],
    [["stamp:1.2.3"], "1970-01-01T00:01:17.000Z", "1970-01-01T00:01:17.000Z", "node"],
  );
  for (const [at, name] of (Layers as string[]).entries()) {
    const layer = files.get(name) ?? Buffer.alloc(0);
    assert.equal(config.rootfs.diff_ids[at], `sha256:${createHash("sha256").update(layer).digest("hex")}`);
    assert.equal(layer.toString("latin1", 136, 147), "00000000115");
  }
  const timed = Buffer.concat([...entryOf("pax", Buffer.from("20 mtime=1000.5\n")), archiveEnd]);
  timed.write("x", 156);
  assert.throws(
    () =>
      timelessImage(
        Buffer.concat([
          ...entryOf("manifest.json", Buffer.from('[{"Config":"c","RepoTags":[],"Layers":["l"]}]')),
          ...entryOf("l", timed),
          archiveEnd,
        ]),
        77,
      ),
    /tells a time beside its headers/,
  );
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
