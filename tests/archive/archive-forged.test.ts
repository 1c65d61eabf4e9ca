/** `stamp import` of archives that nobody has exported: of strangers, damaged ones, and what only other servers give. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { TableClient } from "@azure/data-tables";
import { type Stamp, startStamp } from "@stamp/embedded";
import { root } from "../tools/commands.ts";
import { clientsOf } from "./account-content.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-archive-forged-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const account = "devstoreaccount1";
const sha256 = (bytes: string): string => createHash("sha256").update(bytes).digest("hex");

const stamp = (...args: string[]): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(root, "packages/cli/src/main.ts"), ...args], { cwd: folder }, (_error, out, error) =>
      resolve({ code: child.exitCode ?? -1, output: out + error }),
    );
  });
const at = ({ connectionString }: Stamp): string[] => ["--connection-string", connectionString];

/** Writes an archive of one part. Lines are objects, or texts as they are. */
function forged(name: string, lines: readonly (object | string)[], bytes: string): string {
  const archive = join(folder, name);
  mkdirSync(archive);
  const text = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  writeFileSync(join(archive, "000001.jsonl"), text);
  writeFileSync(join(archive, "000001.bin"), bytes);
  writeFileSync(join(archive, "SHA256SUMS"), `${sha256(bytes)}  000001.bin\n${sha256(text)}  000001.jsonl\n`);
  const options = { history: true, messages: true };
  const manifest = { format: "stamp-archive", version: 1, complete: true, account, source: "http://x/y", options, counts: {}, parts: 1 };
  writeFileSync(join(archive, "archive.json"), JSON.stringify(manifest));
  return archive;
}

const container = (name: string) => ({ kind: "container", name, access: "", metadata: {}, policies: [] });
const blob = (name: string, length: number, other: object = {}) => ({
  ...{ kind: "blob", item: 1, container: "box", name, type: "block", length, snapshot: "", version: "", current: true },
  ...{ headers: {}, metadata: {}, tags: {}, tier: "", sequenceNumber: 0, modifiedOn: "", etag: "" },
  ...other,
});
const data = (bytes: string, other: object = {}) => ({
  ...{ kind: "data", at: 0, length: bytes.length, offset: 0, sha256: sha256(bytes) },
  ...other,
});
const end = { kind: "end" };

test("archive: a blob whose name clients would take for another place is left out, and nothing else is written", async () => {
  const climbing = ["../other/x", "a/../../other/x", "..\\other\\x", "a\\b", "./x"];
  const lines = ["box", "other"].map((name): object => container(name));
  for (const name of [...climbing, "good"]) lines.push(blob(name, 4), data("evil"), end);
  const archive = forged("climbing", lines, "evil");
  await using target = await startStamp();
  const { code, output } = await stamp("import", "archive", archive, ...at(target));
  assert.equal(code, 1, output);
  for (const name of climbing) assert.ok(output.includes(`left out: blob ${name} in box: its name has`), output);
  const found: string[] = [];
  const { blobs } = clientsOf(target.connectionString);
  for await (const { name } of blobs.listContainers())
    for await (const each of blobs.getContainerClient(name).listBlobsFlat()) found.push(`${name}/${each.name}`);
  assert.deepEqual(found, ["box/good"]);
});

test("archive: a damaged blob leaves the one that the account has as it is, whatever its type and its history", async () => {
  const [good, rotten] = ["g".repeat(512), "r".repeat(512)];
  const damaged = { at: 512, offset: 512, sha256: sha256(good) };
  const pieces = [data(good), data(rotten, damaged), end];
  const version = { version: "2026-01-01T00:00:00.0000000Z", current: false };
  const whole = [blob("blob", 512, version), data(good), blob("blob", 512, { item: 2 }), data(rotten, { ...damaged, at: 0 }), end];
  const kinds: Readonly<Record<string, readonly object[]>> = {
    append: [blob("blob", 1_024, { type: "append" }), ...pieces],
    page: [blob("blob", 1_024, { type: "page" }), ...pieces],
    versions: whole,
  };
  await using target = await startStamp();
  const box = clientsOf(target.connectionString).blobs.getContainerClient("box");
  await box.create();
  await box.getBlockBlobClient("blob").upload("mine", 4);
  for (const [name, lines] of Object.entries(kinds)) {
    const archive = forged(name, [container("box"), ...lines], good + rotten);
    const { code, output } = await stamp("import", "archive", archive, ...at(target), "--merge");
    assert.equal(code, 1, output);
    assert.match(output, /000001\.bin: 512 bytes at 512, of blob "blob" in box, have another checksum/);
    assert.equal(String(await box.getBlobClient("blob").downloadToBuffer()), "mine", name);
  }
});

test("archive: what the account or its protocol can't take is told, -0 keeps its sign, and the state is where it is asked for", async () => {
  const entity = (keys: string, more: string): string => `{"kind":"entity","table":"Things","entity":{"PartitionKey":"p",${keys}${more}}}`;
  const lines = [
    container("box"),
    ...[blob("pages", 512, { type: "page", tier: "P10" }), end],
    ...[blob("tagged", 0, { tags: { half: "\ud83d" } }), end],
    { kind: "table", name: "Things", policies: [] },
    entity('"RowKey":"zero"', ',"Number":-0.0,"Number@odata.type":"Edm.Double"'),
    entity('"RowKey":"\\ud83d"', ""),
    { kind: "queue", name: "jobs", metadata: {}, policies: [] },
    { kind: "message", queue: "jobs", text: "\ud83d", insertedOn: "", expiresOn: "", dequeueCount: 0 },
  ];
  const archive = forged("strange", lines, "");
  await using target = await startStamp();
  const nowhere = await stamp("import", "archive", archive, ...at(target), "--state", join(archive, "archive.json", "state"));
  assert.equal(nowhere.code, 2, nowhere.output);
  assert.match(nowhere.output, /can't be written to .*archive\.json \(.*\): name a file elsewhere with --state FILE/);
  const before = readdirSync(archive);
  const { code, output } = await stamp("import", "archive", archive, ...at(target), "--state", join(folder, "state.json"));
  assert.equal(code, 1, output);
  assert.deepEqual(readdirSync(archive), before);
  assert.match(output, /tier P10 of blob pages in box: the service answers 400 BlobAccessTierNotSupportedForAccountType/);
  assert.match(output, /blob tagged in box: a text of it has half of a character/);
  assert.match(output, /entity \["p","\\ud83d"\] of table Things: a key has half of a character/);
  assert.match(output, /a message of queue jobs: a text of it has half of a character/);
  const things = TableClient.fromConnectionString(target.connectionString, "Things", { allowInsecureConnection: true });
  assert.ok(Object.is((await things.getEntity("p", "zero")).Number, -0));
  const again = join(folder, "zeros");
  assert.equal((await stamp("export", account, again, ...at(target))).code, 0);
  await using second = await startStamp();
  assert.equal((await stamp("import", "archive", again, ...at(second))).code, 0);
  const copies = TableClient.fromConnectionString(second.connectionString, "Things", { allowInsecureConnection: true });
  assert.ok(Object.is((await copies.getEntity("p", "zero")).Number, -0));
});
