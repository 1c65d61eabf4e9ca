/** What a request of the Files service must not reach: the file that it copies, what its signature leaves out, and directories beside its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import {
  AccountSASPermissions,
  FileSASPermissions,
  FileSystemAttributes,
  type ShareClient,
  ShareFileClient,
} from "@azure/storage-file-share";
import { toHex } from "@stamp/base";
import { encodeKey } from "@stamp/objects";
import { accountName } from "../conformance/scripted-stamp.ts";
import { filesBench, options, refusal } from "./files-bench.ts";

const bench = filesBench();
let made = 0;
const expiresOn = new Date(Date.now() + 3_600_000);
const anonymous = (url: string): ShareFileClient => new ShareFileClient(url, undefined, options);

async function shareWith(...names: readonly string[]): Promise<ShareClient> {
  const client = bench.service.getShareClient(`held-${++made}`);
  await client.create();
  for (const name of names) await client.rootDirectoryClient.getFileClient(name).uploadData(Buffer.from(`content of ${name}`));
  return client;
}

const fileOf = (share: ShareClient, name: string): ShareFileClient => share.rootDirectoryClient.getFileClient(name);
const contentOf = async (share: ShareClient, name: string): Promise<string> => (await fileOf(share, name).downloadToBuffer()).toString();

test("files: a copy of a file onto itself, in any case, is refused and keeps its content", async () => {
  const share = await shareWith("f");
  for (const name of ["f", "F"])
    assert.equal(await refusal(fileOf(share, name).startCopyFromURL(fileOf(share, "f").url)), "400 InvalidInput");
  assert.equal(await contentOf(share, "f"), "content of f");
});

test("files: a SAS that may create replaces no file, by creation or by copy; one that may write does", async () => {
  const share = await shareWith("there", "other");
  const by = async (name: string, letters: string): Promise<ShareFileClient> =>
    anonymous(await fileOf(share, name).generateSasUrl({ permissions: FileSASPermissions.parse(letters), expiresOn }));
  await (await by("new", "c")).create(3);
  const source = await fileOf(share, "other").generateSasUrl({ permissions: FileSASPermissions.parse("r"), expiresOn });
  const creating = await by("there", "c");
  assert.equal(await refusal(creating.create(0)), "403 AuthorizationPermissionMismatch");
  assert.equal(await refusal(creating.startCopyFromURL(source)), "403 AuthorizationPermissionMismatch");
  assert.equal(await contentOf(share, "there"), "content of there");
  await (await by("there", "cw")).create(1);
});

test("files: a copy or a rename replaces no read-only file, and no leased one without its lease", async () => {
  const share = await shareWith("u");
  const kept = fileOf(share, "kept");
  await kept.create(1, { fileAttributes: FileSystemAttributes.parse("ReadOnly") });
  assert.equal(await refusal(kept.startCopyFromURL(fileOf(share, "u").url)), "409 ReadOnlyAttribute");
  await kept.startCopyFromURL(fileOf(share, "u").url, { copyFileSmbInfo: { ignoreReadOnly: true } });
  assert.equal(await contentOf(share, "kept"), "content of u");
  const leased = fileOf(share, "leased");
  await leased.uploadData(Buffer.from("mine"));
  const { leaseId = "" } = await leased.getShareLeaseClient().acquireLease();
  assert.match(await refusal(fileOf(share, "u").rename("leased", { replaceIfExists: true })), /^412 /);
  assert.equal(await contentOf(share, "leased"), "mine");
  await fileOf(share, "u").rename("leased", { replaceIfExists: true, destinationLeaseAccessConditions: { leaseId } });
  assert.equal(await contentOf(share, "leased"), "content of u");
});

test("files: a SAS of a file lets nobody into the file whose name has a dot more", async () => {
  const share = await shareWith("a");
  const [one] = (await fileOf(share, "a").generateSasUrl({ permissions: FileSASPermissions.parse("rwd"), expiresOn })).split("\n");
  const dotted = (one as string).replace("/a?", "/a.?");
  const keeps = { "x-ms-allow-trailing-dot": "true", "x-ms-version": "2025-11-05" };
  const { host, pathname, search, port } = new URL(dotted);
  const answer = await fetch(`http://127.0.0.1:${port}${pathname}${search}`, { headers: { ...keeps, host } }).catch(() => undefined);
  // Node's fetch sets the host itself: the path has the account then.
  const byPath = await fetch(`http://127.0.0.1:${port}/${accountName}${pathname}${search}`, { headers: keeps });
  assert.equal(byPath.status, 403);
  assert.notEqual(answer?.status, 200);
});

test("files: no list of containers shows shares, whatever its prefix is", async () => {
  await shareWith();
  const blobs = BlobServiceClient.fromConnectionString(bench.stamp.connectionString);
  for (const prefix of ["~", "~held"]) {
    const found: string[] = [];
    for await (const { name } of blobs.listContainers({ prefix, includeMetadata: true })) found.push(name);
    assert.deepEqual(found, [], prefix);
  }
});

test("files: a marker of another directory, and a share without a name, are refused", async () => {
  const share = await shareWith("secret");
  await share.createDirectory("d");
  const url = bench.service.generateAccountSasUrl(expiresOn, AccountSASPermissions.parse("rwdlc"), "sco");
  const { port, search } = new URL(url);
  const at = (path: string, query: string): string => `http://127.0.0.1:${port}/${accountName}${path}${search}&${query}`;
  const ofRoot = toHex(encodeKey([["root", "", ""]]));
  const listed = await fetch(at(`/${share.name}/d`, `restype=directory&comp=list&marker=${ofRoot}`));
  assert.equal(listed.status, 400);
  assert.doesNotMatch(await listed.text(), /secret/);
  for (const name of ["%2F", "%5C"]) assert.equal((await fetch(at(`/${name}`, "restype=share"), { method: "PUT" })).status, 400, name);
});
