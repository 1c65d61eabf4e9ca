/** `stamp export` and `stamp import` where an account refuses something, or is not the one that it was. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Stamp, startStamp } from "@stamp/embedded";
import { root } from "../tools/commands.ts";
import { clientsOf } from "./account-content.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-archive-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const account = "devstoreaccount1";

const stamp = (...args: string[]): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(root, "packages/cli/src/main.ts"), ...args], { cwd: folder }, (_error, out, error) =>
      resolve({ code: child.exitCode ?? -1, output: out + error }),
    );
  });

const at = ({ connectionString }: Stamp): string[] => ["--connection-string", connectionString];
const boxOf = ({ connectionString }: Stamp) => clientsOf(connectionString).blobs.getContainerClient("box");
const put = async (stamp: Stamp, name: string, text: string) => boxOf(stamp).getBlockBlobClient(name).upload(text, text.length);
const textOf = async (stamp: Stamp, name: string): Promise<string> => String(await boxOf(stamp).getBlobClient(name).downloadToBuffer());

test("archive: with --merge what the account refuses or has alone stays, and everything else comes", async () => {
  await using source = await startStamp();
  await source.setBlobSettings({ versioning: true });
  await boxOf(source).create();
  for (const name of ["deleted", "leased", "plain"]) for (const text of ["old", name]) await put(source, name, text);
  await boxOf(source).deleteBlob("deleted");
  await boxOf(source)
    .getBlobClient("plain")
    .setHTTPHeaders({ blobContentMD5: Buffer.alloc(16, 7) });
  const archive = join(folder, "merged");
  assert.equal((await stamp("export", account, archive, ...at(source))).code, 0);
  await using target = await startStamp();
  await boxOf(target).create();
  for (const name of ["deleted", "leased"]) await put(target, name, "mine");
  await boxOf(target).getBlobClient("leased").getBlobLeaseClient().acquireLease(-1);
  const { code, output } = await stamp("import", "archive", archive, account, ...at(target), "--merge");
  assert.equal(code, 1, output);
  assert.match(output, /blob deleted in box: it is deleted in the source, and with --merge what the account has of this name stays/);
  assert.match(output, /blob leased in box: the service answers 412 LeaseIdMissing/);
  assert.deepEqual(await Promise.all(["deleted", "leased", "plain"].map((name) => textOf(target, name))), ["mine", "mine", "plain"]);
  const { contentMD5 = new Uint8Array(0) } = await boxOf(target).getBlobClient("plain").getProperties();
  assert.deepEqual(Buffer.from(contentMD5), Buffer.alloc(16, 7));
});

test("archive: an account that was made anew does not get the second half of an import", async () => {
  await using source = await startStamp();
  await boxOf(source).create();
  await put(source, "a", "a");
  const archive = join(folder, "half");
  assert.equal((await stamp("export", account, archive, ...at(source))).code, 0);
  await using target = await startStamp();
  const { url } = clientsOf(target.connectionString).blobs;
  const targetUrl = url.replace(/\/+$/, "");
  const manifest = JSON.parse(readFileSync(join(archive, "archive.json"), "utf8")) as Readonly<Record<string, string>>;
  const state = {
    ...{ format: "stamp-import", version: 1, target: targetUrl, options: "", folder: String(statSync(archive, { bigint: true }).ino) },
    ...{
      source: `archive of ${account} at ${manifest.source}, ${manifest.begunOn}`,
      position: { part: 1, line: 5 },
      counts: { containers: 1 },
    },
  };
  const hash = createHash("sha256").update(targetUrl).digest("hex").slice(0, 12);
  writeFileSync(join(archive, `import-${account}-${hash}.json`), JSON.stringify(state));
  const { code, output } = await stamp("import", "archive", archive, account, ...at(target));
  assert.equal(code, 2, output);
  assert.match(output, /has nothing of what an earlier run has put into it, as if it were a new one: remove .*import-/);
});

test("archive: an account with a hierarchical namespace is refused by its connection string, too, and no folder is begun", async () => {
  await using source = await startStamp({ hierarchicalNamespace: true });
  const archive = join(folder, "directories");
  const { code, output } = await stamp("export", account, archive, ...at(source));
  assert.equal(code, 1, output);
  assert.match(output, /account devstoreaccount1 has a hierarchical namespace/);
  assert.equal(existsSync(archive), false);
});
