/** Exports and imports that are killed with SIGKILL while they work, and run again. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { TableClient } from "@azure/data-tables";
import { type Stamp, startStamp } from "@stamp/embedded";
import { root } from "../tools/commands.ts";
import { bytesOf, clientsOf, contentOf, fill } from "./account-content.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-archive-killed-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const main = join(root, "packages/cli/src/main.ts");
const mebibyte = 1024 * 1024;
const lookMs = 5;
const smallCount = 200;

/** Runs a command and kills it as soon as `isTime`. Returns true if it ended by itself, and asserts that this was well. */
function ranUntil(args: readonly string[], isTime: () => boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.on("data", (text) => (said += String(text)));
    const timer = setInterval(() => isTime() && child.kill("SIGKILL"), lookMs);
    child.on("exit", (code, signal) => {
      clearInterval(timer);
      if (signal === null && code !== 0) reject(new Error(`exit code ${code}: ${said}`));
      else resolve(signal === null);
    });
  });
}

/** Runs a command to its end. Returns what it has counted, in this run and those before. */
async function countsOf(args: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args, "--json"], { cwd: folder });
  return (JSON.parse(stdout) as { counts: Readonly<Record<string, number>> }).counts;
}

const bytesIn = (path: string): number =>
  existsSync(path)
    ? readdirSync(path).reduce((sum, name) => sum + (statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0), 0)
    : 0;

const content = ({ connectionString }: Stamp): Promise<readonly object[]> => contentOf(clientsOf(connectionString), connectionString);

/** They are not asked for. */
const withoutMessages = (found: readonly object[]): object[] =>
  found.map((each) => ("messages" in each ? { ...each, messages: [], approximateMessagesCount: 0 } : each));

/** Kills the command as soon as `look` finds so much in the target. */
async function ranUntilSeen(args: readonly string[], look: () => Promise<number>, wanted: number): Promise<boolean> {
  let seen = 0;
  let ended = false;
  const looking = (async () => {
    while (!ended && seen < wanted) seen = await look();
  })();
  const isWhole = await ranUntil(args, () => seen >= wanted);
  ended = true;
  await looking;
  return isWhole;
}

async function smallBlobs({ connectionString }: Stamp): Promise<number> {
  const container = clientsOf(connectionString).blobs.getContainerClient("killed");
  const { value } = await container.listBlobsFlat({ prefix: "small-" }).byPage().next();
  return value?.segment.blobItems.length ?? 0;
}

async function blocksStaged({ connectionString }: Stamp): Promise<number> {
  const blob = clientsOf(connectionString).blobs.getContainerClient("killed").getBlockBlobClient("large");
  return blob.getBlockList("uncommitted").then(
    ({ uncommittedBlocks = [] }) => uncommittedBlocks.length,
    () => 0,
  );
}

test("archive: an export and an import that are killed again and again lose nothing and put nothing twice", async () => {
  await using source = await startStamp();
  const { blobs } = clientsOf(source.connectionString);
  await fill(clientsOf(source.connectionString), (name) =>
    TableClient.fromConnectionString(source.connectionString, name, { allowInsecureConnection: true }),
  );
  const killed = blobs.getContainerClient("killed");
  await killed.create();
  await killed.getBlockBlobClient("large").uploadData(bytesOf(80 * mebibyte, 3), { blockSize: 8 * mebibyte });
  for (let at = 0; at < smallCount; at++) await killed.getBlockBlobClient(`small-${at}`).upload(bytesOf(at, at), at);
  const expected = await content(source);
  const archive = join(folder, "archive");
  const exported = ["export", "devstoreaccount1", archive, "--connection-string", source.connectionString];
  // A part ends at 64 MiB: the second time it goes on in the middle of the large blob.
  for (const bytes of [mebibyte, 70 * mebibyte]) {
    assert.equal(await ranUntil(exported, () => bytesIn(archive) > bytes), false, "it was killed");
    assert.match(readFileSync(join(archive, "archive.json"), "utf8"), /"complete": false/);
  }
  const counts = await countsOf(exported);
  assert.deepEqual([counts.blobs, counts.snapshots, counts.entities], [14 + smallCount, 2, 121]);
  await using target = await startStamp();
  const imported = ["import", "archive", archive, "--connection-string", target.connectionString];
  assert.equal(await ranUntilSeen(imported, () => blocksStaged(target), 5), false, "it was killed");
  assert.equal(await ranUntilSeen(imported, () => smallBlobs(target), 20), false, "it was killed");
  assert.deepEqual(await countsOf(imported), counts, "each thing is counted once");
  assert.deepEqual(withoutMessages(await content(target)), withoutMessages(expected));
  assert.deepEqual(
    readdirSync(archive).filter((name) => name.startsWith("import-")),
    [],
  );
});
