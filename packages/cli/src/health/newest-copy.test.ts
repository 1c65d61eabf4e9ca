/** The newest copy of the metadata: found among those on the disk and those that nodes tell, and named with the commands that put it back. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { concatBytes } from "@stamp/base";
import { SnapshotWriter } from "@stamp/metadata-store";
import { NodeDigest } from "@stamp/ports-node";
import type { MetadataCopy, ProcessFacts } from "./facts.ts";
import { copiesIn, copyText, newestCopy, restoreCommand } from "./newest-copy.ts";

const digest = new NodeDigest();

function snapshot(version: number): Uint8Array {
  const writer = new SnapshotWriter({ stampId: "s", version, takenAtMs: 1_000_000, lineage: "l" }, (bytes, seed) =>
    digest.crc32c(bytes, seed),
  );
  return concatBytes([writer.begin(), writer.end()]);
}

const copy = (node: string, version: number, path = `/data/${node}/files/metadata-copies/${version}.snapshot`): MetadataCopy => ({
  ...{ node, path, version },
  takenAtMs: 1_000_000,
});

const told = (name: string, metadataCopy: object): ProcessFacts =>
  ({ name, role: "extent-node", answer: { facts: { metadataCopy } } }) as unknown as ProcessFacts;

test("copies in a folder: of each node the one with the highest number that can be read", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-copies-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  assert.deepEqual(await copiesIn(join(dataDir, "none")), []);
  const folder = (node: string): string => join(dataDir, node, "files", "metadata-copies");
  for (const node of ["extent-node-1", "extent-node-2", "extent-node-3", "stream-manager-1"]) mkdirSync(folder(node), { recursive: true });
  const name = (number: number): string => `${String(number).padStart(16, "0")}.snapshot`;
  for (const node of ["extent-node-1", "stream-manager-1"]) writeFileSync(join(folder(node), name(7)), snapshot(7));
  writeFileSync(join(folder("extent-node-1"), name(9)), "torn");
  writeFileSync(join(folder("extent-node-1"), "incoming"), "");
  writeFileSync(join(folder("extent-node-2"), name(9)), "");
  const found = await copiesIn(dataDir);
  assert.deepEqual(found, [copy("extent-node-1", 7, join(folder("extent-node-1"), name(7)))]);
});

test("newest copy: by transaction, wherever it is told; none is none", () => {
  const one = told("extent-node-1", { version: 8, takenAtMs: 5, path: "/data/files/metadata-copies/8.snapshot" });
  const none = told("extent-node-2", { version: 0, takenAtMs: 0, path: "" });
  assert.equal(newestCopy({ processes: [none], copies: [] }), undefined);
  assert.equal(newestCopy({ processes: [one, none], copies: [copy("extent-node-3", 7)] })?.node, "extent-node-1");
  assert.equal(newestCopy({ processes: [one, none], copies: [copy("extent-node-3", 9), copy("extent-node-4", 2)] })?.node, "extent-node-3");
});

test("newest copy, for people: node, path, transaction and age", () => {
  const age = (ms: number): string => /taken (.*) ago/.exec(copyText(copy("extent-node-3", 7), 1_000_000 + ms))?.[1] ?? "";
  assert.match(
    copyText(copy("extent-node-3", 7), 1_005_000),
    /at extent-node-3: \/data\/.*7\.snapshot, up to transaction 7, taken 5\.0 s ago/,
  );
  const ages = [-9_000, 119_000, 120_000, 7_200_000, 172_800_000].map(age);
  assert.deepEqual(ages, ["0.0 s", "119 s", "2 min", "2 hours", "2 days"]);
});

test("restore command: one line for a shell, whatever the path has in it; in containers by their engine", () => {
  const odd = "/da ta/it's $HOME/7.snapshot";
  const command = restoreCommand(copy("extent-node-1", 7, odd), "/da ta/it's $HOME", "alone", []);
  assert.match(command, /^\.\/stamp down --data .*; \.\/stamp metadata restore --replace .* && \.\/stamp up -d --data /);
  const words = execFileSync("sh", ["-c", `${command.split(" && ")[0]?.split("; ")[1]?.replace("./stamp", 'printf "%s\\n"')}`], {
    encoding: "utf8",
  });
  assert.deepEqual(words.trim().split("\n"), ["metadata", "restore", "--replace", odd, "--data", "/da ta/it's $HOME"]);
  const overEtcd = restoreCommand(copy("extent-node-1", 7), "/data", "etcd", []);
  assert.match(
    overEtcd,
    / restore --replace \S+ --data \/data && \.\/stamp metadata migrate --to etcd --replace --data \/data && \.\/stamp up/,
  );
  const both = restoreCommand(copy("extent-node-1", 7), undefined, "etcd", []);
  assert.match(
    both,
    /etcd-3 && docker compose run --rm --no-deps lock-service-1 stamp metadata migrate --to etcd --replace && docker compose up/,
  );
  const composed = restoreCommand(copy("extent-node-1", 7, "/data/files/metadata-copies/7.snapshot"), undefined, "alone", []);
  assert.match(
    composed,
    /^docker compose cp extent-node-1:\/data\/files\/metadata-copies\/7\.snapshot copy\.snapshot && .* && docker compose up -d --wait$/,
  );
  const three = ["lock-service-1", "lock-service-2", "lock-service-3"];
  assert.equal(
    restoreCommand(copy("extent-node-1", 7, "/data/7.snapshot"), "/da ta", "replicated", three),
    "./stamp down --data '/da ta'; ./stamp metadata restore --replace /data/7.snapshot --data '/da ta' && ./stamp up -d --data '/da ta'",
  );
  const ofThree = restoreCommand(copy("extent-node-1", 7, "/data/7.snapshot"), undefined, "replicated", three);
  assert.doesNotMatch(ofThree, /etcd/);
  const given = [...ofThree.matchAll(/ (lock-service-\d) stamp metadata restore --replace \/copy/g)].map(([, name]) => name);
  assert.deepEqual(given, ["lock-service-2", "lock-service-3", "lock-service-1"], "the one that begins with the copy comes last");
  assert.match(composed, / -v "\$PWD\/copy\.snapshot:\/copy:ro" /, "a relative path would be the name of a volume");
});
