/** `stamp export` and `stamp import` as commands, between stamps that run in this process. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { TableClient } from "@azure/data-tables";
import { type QueueClient, QueueSASPermissions } from "@azure/storage-queue";
import { type Stamp, startStamp } from "@stamp/embedded";
import { root } from "../tools/commands.ts";
import { clientsOf, contentOf, fill, fillVersions } from "./account-content.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-archive-"));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Ran {
  readonly code: number;
  readonly output: string;
}

const stamp = (...args: string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(root, "packages/cli/src/main.ts"), ...args], { cwd: folder }, (_error, out, error) =>
      resolve({ code: child.exitCode ?? -1, output: out + error }),
    );
  });

const at = ({ connectionString }: Stamp): string[] => ["--connection-string", connectionString];
const account = "devstoreaccount1";

async function filled(versions: boolean): Promise<Stamp> {
  const source = await startStamp();
  try {
    const { connectionString } = source;
    const options = { allowInsecureConnection: true };
    await fill(clientsOf(connectionString), (name) => TableClient.fromConnectionString(connectionString, name, options));
    if (!versions) return source;
    await source.setBlobSettings({ versioning: true });
    await fillVersions(clientsOf(connectionString));
    return source;
  } catch (error) {
    await source.stop();
    throw error;
  }
}

const content = ({ connectionString }: Stamp): Promise<object> => contentOf(clientsOf(connectionString), connectionString);

async function ran(...args: string[]): Promise<string> {
  const { code, output } = await stamp(...args);
  assert.equal(code, 0, output);
  return output;
}

test("archive: an account that is exported and imported has everything as it was, byte by byte", async () => {
  await using source = await filled(false);
  const expected = await content(source);
  const archive = join(folder, "whole");
  await ran("export", account, archive, ...at(source), "--messages");
  assert.deepEqual(await content(source), expected, "the export leaves the account as it was");
  await ran("import", "archive", archive, "--dry-run");
  await using target = await startStamp();
  await ran("import", "archive", archive, account, ...at(target));
  assert.deepEqual(await content(target), expected);
});

test("archive: versions come back in an account that keeps them, and are told elsewhere", async () => {
  await using source = await filled(true);
  const archive = join(folder, "versions");
  await ran("export", account, archive, ...at(source), "--messages");
  await using target = await startStamp();
  await target.setBlobSettings({ versioning: true });
  await ran("import", "archive", archive, account, ...at(target));
  const versionsOf = async (stamp: Stamp) => {
    const found: string[] = [];
    const container = clientsOf(stamp.connectionString).blobs.getContainerClient("versions");
    for await (const { name, versionId = "", isCurrentVersion } of container.listBlobsFlat({ includeVersions: true }))
      found.push(`${name} ${isCurrentVersion === true} ${await container.getBlobClient(name).withVersion(versionId).downloadToBuffer()}`);
    return found;
  };
  assert.deepEqual(await versionsOf(target), await versionsOf(source));
  assert.equal((await versionsOf(target)).length, 5);
  await using plain = await startStamp();
  const { code, output } = await stamp("import", "archive", archive, account, ...at(plain));
  assert.equal(code, 1);
  assert.match(output, /older versions of blob kept in versions: the account keeps no versions/);
});

test("archive: an emulator that runs is imported over its API, and its messages stay where they are", async () => {
  await using source = await filled(false);
  const expected = await content(source);
  await using target = await startStamp();
  await ran("import", "azurite", source.connectionString, account, ...at(target), "--messages");
  assert.deepEqual(await content(target), expected);
  assert.deepEqual(await content(source), expected);
  const again = await stamp("import", "azurite", source.connectionString, account, ...at(target));
  assert.equal(again.code, 2);
  assert.match(again.output, /account devstoreaccount1 is not empty/);
  const itself = await stamp("import", "azurite", source.connectionString, account, ...at(source));
  assert.match(itself.output, /is this stamp itself/);
});

/** Asks without the SDK, whose parser changes such texts. */
async function rawMessages(queue: QueueClient, body?: string): Promise<string> {
  const url = await queue.generateSasUrl({ permissions: QueueSASPermissions.parse("rap"), expiresOn: new Date(Date.now() + 3_600_000) });
  const [path = "", sas = ""] = url.split("?");
  const answer = await fetch(
    `${path}/messages?${body === undefined ? "peekonly=true&" : ""}${sas}`,
    body === undefined ? {} : { method: "POST", body },
  );
  const text = await answer.text();
  assert.ok(answer.ok, text);
  return /<MessageText>([^<]*)/.exec(text)?.[1] ?? "";
}

test("archive: a message with carriage returns stays as it is in its account, and comes as it was", async () => {
  await using source = await startStamp();
  const queueOf = ({ connectionString }: Stamp) => clientsOf(connectionString).queues.getQueueClient("jobs");
  await queueOf(source).create();
  await rawMessages(queueOf(source), "<QueueMessage><MessageText>a&#xD;&#xA;b &amp;#xD;</MessageText></QueueMessage>");
  const expected = "a&#xD;\nb &amp;#xD;";
  assert.equal(await rawMessages(queueOf(source)), expected);
  const archive = join(folder, "returns");
  await ran("export", account, archive, ...at(source), "--messages");
  assert.equal(await rawMessages(queueOf(source)), expected);
  await using target = await startStamp();
  await ran("import", "archive", archive, account, ...at(target));
  assert.equal(await rawMessages(queueOf(target)), expected);
});
