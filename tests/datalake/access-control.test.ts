/** Owner, permissions and lists of paths, given at creation and changed, by the SDK of Data Lake Storage. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type DataLakeFileSystemClient,
  DataLakeSASPermissions,
  DataLakeServiceClient,
  generateDataLakeSASQueryParameters,
  type PathPermissions,
} from "@azure/storage-file-datalake";
import { type Lake, refusal, sharedKey, startLake } from "./lake.ts";

let lake: Lake;
before(async () => {
  lake = await startLake();
});
after(() => lake.stop());

const user = "11111111-1111-1111-1111-111111111111";
const group = "22222222-2222-2222-2222-222222222222";

/** Owner, group, permissions and lists as the headers of Get Access Control have them. */
async function shown(client: DataLakeFileSystemClient, path: string): Promise<string[]> {
  const { _response } = await client.getDirectoryClient(path).getAccessControl();
  const { headers } = _response;
  return ["x-ms-owner", "x-ms-group", "x-ms-permissions", "x-ms-acl"].map((name) => headers.get(name) ?? "");
}

const rwx = { read: true, write: true, execute: true };
const rx = { ...rwx, write: false };
const none = { read: false, write: false, execute: false };
const entry = (accessControlType: "user" | "group" | "other", entityId: string, permissions: typeof rwx) => ({
  accessControlType,
  entityId,
  defaultScope: false,
  permissions,
});
const mode = (more: Partial<PathPermissions> = {}): PathPermissions => ({
  owner: rwx,
  group: rx,
  other: none,
  stickyBit: false,
  extendedAcls: false,
  ...more,
});

test("datalake: a path is created with permissions without those of its umask, and with an owner and a group", async () => {
  const client = await lake.filesystem();
  await client.getFileClient("f").create({ permissions: "0777", umask: "0027" });
  assert.deepEqual(await shown(client, "f"), ["$superuser", "$superuser", "rwxr-x---", "user::rwx,group::r-x,other::---"]);
  await client.getDirectoryClient("d").create({ permissions: "1777", umask: "0000", owner: user, group });
  assert.deepEqual(await shown(client, "d"), [user, group, "rwxrwxrwt", "user::rwx,group::rwx,other::rwx"]);
  await client.getFileClient("d/of-group").create();
  assert.deepEqual((await shown(client, "d/of-group")).slice(0, 3), ["$superuser", group, "rw-r-----"], "the group is the directory's");
  const listed: string[] = [];
  for await (const { name, owner, permissions } of client.listPaths({ recursive: true }))
    listed.push(`${name} ${owner} ${JSON.stringify(permissions)}`);
  assert.match(listed.find((line) => line.startsWith("d ")) ?? "", new RegExp(`^d ${user} .*"stickyBit":true`));
});

test("datalake: what is created below a default list begins with it, at any depth, and umasks don't count there", async () => {
  const client = await lake.filesystem();
  const parent = client.getDirectoryClient("parent");
  const plain = [entry("user", "", rwx), entry("group", "", rx), entry("other", "", none)];
  await parent.create({ acl: [...plain, ...[...plain, entry("user", user, rx)].map((one) => ({ ...one, defaultScope: true }))] });
  await client.getFileClient("parent/a/b/f").create({ umask: "0777" });
  const inherited = `user::rwx,user:${user}:r-x,group::r-x,mask::r-x,other::---`;
  const defaults = inherited.split(",").map((entry) => `default:${entry}`);
  assert.equal((await shown(client, "parent/a/b"))[3], `${inherited},${defaults.join(",")}`);
  const file = await shown(client, "parent/a/b/f");
  assert.deepEqual(file.slice(2), ["rw-r-----+", `user::rw-,user:${user}:r-x,group::r-x,mask::r--,other::---`]);
});

test("datalake: lists, permissions and owner are set, of the root too, and stay over writes, flushes and renames", async () => {
  const client = await lake.filesystem();
  const file = client.getFileClient("f");
  await file.create();
  const before = (await file.getProperties()).etag ?? "";
  const acl = [entry("user", "", rwx), entry("user", user, rx), entry("group", "", rx), entry("other", "", none)];
  const set = await file.setAccessControl(acl, { owner: user });
  assert.notEqual(set.etag, before);
  const lists = `user::rwx,user:${user}:r-x,group::r-x,mask::r-x,other::---`;
  assert.deepEqual(await shown(client, "f"), [user, "$superuser", "rwxr-x---+", lists]);
  await file.append("text", 0, 4);
  await file.flush(4);
  await file.setMetadata({ a: "b" });
  await file.move("g");
  assert.deepEqual(await shown(client, "g"), [user, "$superuser", "rwxr-x---+", lists]);
  await client.getFileClient("g").setPermissions(mode({ group: none }));
  assert.equal((await shown(client, "g"))[3], lists.replace("mask::r-x", "mask::---"), "the middle of a mode is the mask's");
  assert.equal(await refusal(client.getFileClient("g").setPermissions(mode(), { conditions: { ifMatch: before } })), "412 ConditionNotMet");
  await client.getFileClient("g").create();
  assert.deepEqual(
    (await shown(client, "g")).slice(0, 3),
    ["$superuser", "$superuser", "rw-r-----"],
    "a creation over a path makes it anew",
  );

  assert.deepEqual((await shown(client, "/")).slice(2), ["rwxr-x---", "user::rwx,group::r-x,other::---"]);
  await client.getDirectoryClient("/").setPermissions(mode({ other: rx }));
  await client.getDirectoryClient("/").setPermissions(mode({ other: rx, stickyBit: true }), { owner: user });
  assert.deepEqual(await shown(client, "/"), [user, "$superuser", "rwxr-xr-t", "user::rwx,group::r-x,other::r-x"]);
  assert.equal(await refusal(client.getFileClient("no").setPermissions(mode())), "404 PathNotFound");
  const ofFile = acl.map((entry) => ({ ...entry, defaultScope: true }));
  assert.equal(await refusal(client.getFileClient("g").setAccessControl([...acl, ...ofFile])), "400 InvalidHeaderValue");
});

test("datalake: changes of one list that meet each other all count", async () => {
  const client = await lake.filesystem();
  const directory = client.getDirectoryClient("d");
  await directory.create();
  await Promise.all([
    directory.setPermissions(mode({ stickyBit: true })),
    directory.setPermissions(mode({ stickyBit: true }), { owner: user }),
    directory.setPermissions(mode({ stickyBit: true }), { group }),
  ]);
  assert.deepEqual((await shown(client, "d")).slice(0, 3), [user, group, "rwxr-x--T"]);
});

test("datalake: a SAS sets lists with p and owners with o, and no other letter is enough", async () => {
  const client = await lake.filesystem();
  await client.getFileClient("f").create();
  const withLetters = (letters: string) => {
    const terms = { fileSystemName: client.name, pathName: "f", expiresOn: new Date(Date.now() + 3_600_000) };
    const sas = generateDataLakeSASQueryParameters({ ...terms, permissions: DataLakeSASPermissions.parse(letters) }, sharedKey);
    const options = { retryOptions: { maxTries: 1 } };
    return new DataLakeServiceClient(`${lake.url}?${sas}`, undefined, options).getFileSystemClient(client.name).getFileClient("f");
  };
  assert.equal(await refusal(withLetters("rw").setPermissions(mode())), "403 AuthorizationPermissionMismatch");
  assert.equal(await refusal(withLetters("o").setPermissions(mode())), "403 AuthorizationPermissionMismatch");
  assert.equal(await refusal(withLetters("p").setPermissions(mode(), { owner: user })), "403 AuthorizationPermissionMismatch");
  await withLetters("p").setPermissions(mode());
  await withLetters("op").setPermissions(mode(), { owner: user });
  await withLetters("w").create({ permissions: "0700" });
  assert.equal(await refusal(withLetters("w").create({ owner: user })), "403 AuthorizationPermissionMismatch");
  assert.deepEqual((await shown(client, "f")).slice(0, 3), ["$superuser", "$superuser", "rwx------"]);
});

test("datalake: lists are set, changed and removed of everything below a directory, in pages, and what can't be is told", async () => {
  const client = await lake.filesystem();
  for (const path of ["d/a/f", "d/a/g", "d/b/c/h"]) await client.getFileClient(path).create();
  const directory = client.getDirectoryClient("d");
  const given = { ...entry("user", user, rx), defaultScope: false };
  const all = [given, { ...given, defaultScope: true }];
  const sizes: number[] = [];
  const onProgress = ({ batchCounters: { changedDirectoriesCount, changedFilesCount } }: { batchCounters: Record<string, number> }) =>
    void sizes.push((changedDirectoriesCount ?? 0) + (changedFilesCount ?? 0));
  const { counters } = await directory.updateAccessControlRecursive(all, { batchSize: 2, onProgress: onProgress as never });
  assert.deepEqual([counters.changedDirectoriesCount, counters.changedFilesCount, counters.failedChangesCount], [4, 3, 0]);
  assert.deepEqual(sizes, [2, 2, 2, 1]);
  assert.match((await shown(client, "d/b/c"))[3] ?? "", new RegExp(`user:${user}:r-x.*default:user:${user}:r-x`));
  assert.match((await shown(client, "d/b/c/h"))[3] ?? "", new RegExp(`^user::rw-,user:${user}:r-x,group::r--,mask::r-x,other::---$`));

  await client.getFileClient("d/a/f").getDataLakeLeaseClient().acquireLease(15);
  const names = [given, { ...given, defaultScope: true }].map(({ permissions: _, ...name }) => name);
  const removed = await directory.removeAccessControlRecursive(names, { continueOnFailure: true });
  assert.deepEqual(
    [removed.counters.changedDirectoriesCount, removed.counters.changedFilesCount, removed.counters.failedChangesCount],
    [4, 2, 1],
  );
  assert.doesNotMatch((await shown(client, "d/a/g"))[3] ?? "", new RegExp(user));
  assert.match((await shown(client, "d/a/f"))[3] ?? "", new RegExp(user), "a leased file stays as it is");
  const plain = [entry("user", "", rwx), entry("group", "", rx), entry("other", "", rx)];
  assert.equal((await directory.setAccessControlRecursive(plain)).counters.failedChangesCount, 1);
  await client.getDirectoryClient("d/b").setAccessControlRecursive(plain);
  assert.equal((await shown(client, "d/b/c/h"))[3], "user::rwx,group::r-x,other::r-x");
  assert.equal((await client.getFileClient("d/a/g").setAccessControlRecursive(plain)).counters.changedFilesCount, 1);
});
