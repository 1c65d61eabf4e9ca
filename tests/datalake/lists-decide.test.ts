/**
 * Access control that decides: each operation on a path, by identity, with exactly the rights that it needs and without each of them. What
 * is expected here is docs/api/access-lists.md.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { startStamp } from "@stamp/embedded";
import { type DelegationKey, delegationKey } from "../conformance/delegation.ts";
import { type TestIssuer, testIssuer } from "../conformance/issuer.ts";
import { delegationSas } from "../conformance/sas-by-hand.ts";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";
import { accessListsPage, accessListsPath } from "./access-lists-docs.ts";
import { type ListedOperation, listedOperations } from "./listed-operations.ts";

const version = "2026-04-06";
const me = "11111111-1111-1111-1111-111111111111";
const myGroup = "22222222-2222-2222-2222-222222222222";
const forbidden = "403 AuthorizationPermissionMismatch";
const filesystem = "lake";

let issuer: TestIssuer;
let stamp: Awaited<ReturnType<typeof startStamp>>;
let clients: Clients;
let key: DelegationKey;
let made = 0;

before(async () => {
  issuer = await testIssuer();
  stamp = await startStamp({ hierarchicalNamespace: true, oidc: issuer.settings });
  const target = { endpoint: new URL(stamp.endpoints.dfs).origin, accountName, accountKey, issuer, stop: async () => {} };
  clients = new Clients(target);
  await byKey("PUT", `/${filesystem}?restype=container`);
  key = await delegationKey(clients, "owners", "/");
});
after(async () => {
  await stamp?.stop();
  issuer?.remove();
});

type Headers = Record<string, string>;

async function ask(
  method: string,
  target: string,
  headers: Headers,
  body = "",
): Promise<{ told: string; headers: globalThis.Headers; text: string }> {
  const url = `${new URL(stamp.endpoints.dfs).origin}/${accountName}${target}`;
  const sent = method === "GET" || method === "HEAD" ? {} : { body };
  const answer = await fetch(url, { method, headers: { "x-ms-version": version, ...headers }, ...sent });
  const code = answer.headers.get("x-ms-error-code") ?? "";
  return { told: `${answer.status} ${code}`.trim(), headers: answer.headers, text: await answer.text() };
}

/** As the account itself: what a test prepares. */
async function byKey(method: string, path: string, headers: Headers = {}): Promise<void> {
  const answer = await clients.raw(method, path, { headers: { "x-ms-version": version, ...headers } });
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${await answer.text()}`);
}

const token = async (claims: { oid?: string; roles?: string[]; groups?: string[] } = {}): Promise<Headers> => ({
  authorization: `Bearer ${await issuer.token({ oid: me, ...claims })}`,
});

/** Ways by which an identity has rights on a path: headers of Set Access Control that give it these, and nothing by another way. */
const ways: Readonly<Record<string, { give(rights: string): Headers; groups?: string[] }>> = {
  owner: { give: (rights) => ({ "x-ms-owner": me, "x-ms-acl": `user::${rights},group::---,other::---` }) },
  "named user": {
    give: (rights) => ({ "x-ms-owner": "other", "x-ms-acl": `user::---,user:${me}:${rights},group::---,mask::rwx,other::---` }),
  },
  "owning group": {
    give: (rights) => ({ "x-ms-owner": "other", "x-ms-group": myGroup, "x-ms-acl": `user::---,group::${rights},other::---` }),
    groups: [myGroup],
  },
  "named group": {
    give: (rights) => ({
      "x-ms-owner": "other",
      "x-ms-group": "other",
      "x-ms-acl": `user::---,group::---,group:${myGroup}:${rights},mask::rwx,other::---`,
    }),
    groups: ["someone", myGroup.toUpperCase()],
  },
  "everybody else": {
    give: (rights) => ({ "x-ms-owner": "other", "x-ms-group": "other", "x-ms-acl": `user::---,group::---,other::${rights}` }),
  },
};

const setAccess = (path: string, headers: Headers) => byKey("PATCH", `/${filesystem}/${path}?action=setAccessControl`, headers);
const without = (rights: string, right: string): string => rights.replace(right, "-");
/** The rights, and the same without each of them. */
const fewer = (rights: string): string[] => [...new Set(rights.replaceAll("-", ""))].map((right) => without(rights, right));

interface Place {
  readonly above: string;
  readonly parent: string;
  readonly path: string;
}

/** Makes what the operation is asked of: `a/p-1/f`, in it rights as given. */
async function prepare(operation: ListedOperation, give: (rights: string) => Headers, rights: Place): Promise<string> {
  const parent = `a-${++made}/p`;
  const path = `${parent}/f`;
  await byKey("PUT", `/${filesystem}/${path}?resource=${operation.on === "directory" ? "directory" : "file"}`);
  if (operation.on !== "nothing") await setAccess(path, give(rights.path));
  else await byKey("DELETE", `/${filesystem}/${path}`);
  await setAccess(parent, give(rights.parent));
  await setAccess(`a-${made}`, give(rights.above));
  return path;
}

test("access lists: whoever has the needed rights may, and nobody who lacks one of them, by whatever way rights are given", async () => {
  await setAccess("/", { "x-ms-acl": "user::rwx,group::r-x,other::--x" });
  for (const [name, { give, groups }] of Object.entries(ways)) {
    const bearer = await token(groups ? { groups } : {});
    for (const operation of listedOperations) {
      // Each operation by one way, and each way by a read and a creation: which way counts does not depend on the operation.
      const isWalked = operation.owner ? name === "owner" : name === "named user" || ["ReadPath", "CreateFile"].includes(operation.name);
      if (!isWalked) continue;
      const needed: Place = { above: "--x", parent: operation.parent ?? "--x", path: operation.path ?? "---" };
      const { method, headers = () => ({}), body } = operation;
      const run = async (rights: Place) =>
        (
          await ask(
            method,
            operation.target(filesystem, await prepare(operation, give, rights)),
            { ...bearer, ...headers(filesystem, `a-${made}/p/f`) },
            body,
          )
        ).told;
      const what = `${operation.name} by ${name}`;
      assert.match(await run(needed), /^20\d/, what);
      const places = name === "named user" ? (["above", "parent", "path"] as const) : ([operation.path ? "path" : "parent"] as const);
      for (const place of places)
        for (const rights of name === "named user" ? fewer(needed[place]) : ["---"])
          assert.match(await run({ ...needed, [place]: rights }), /^403/, `${what}, ${place} ${rights}`);
    }
  }
});

test("access lists: an operation for owners is refused to everybody else, with all rights, and roles are asked before lists", async () => {
  const all = (rights: Headers): Headers => rights;
  for (const operation of listedOperations) {
    const closed = { above: "---", parent: "---", path: "---" };
    const path = await prepare(
      operation,
      (rights) => all({ "x-ms-owner": "other", "x-ms-acl": `user::${rights},group::${rights},other::${rights}` }),
      closed,
    );
    const { method, headers = () => ({}), body } = operation;
    const asked = async (roles: string[]) =>
      (await ask(method, operation.target(filesystem, path), { ...(await token({ roles })), ...headers(filesystem, path) }, body)).told;
    for (const role of ["readers", "writers", "owners"]) {
      const enough = ["readers", "writers", "owners"].indexOf(role) >= ["read", "contribute", "own"].indexOf(operation.role);
      const told = await asked([role]);
      if (!enough) assert.match(told, /^403/, `${operation.name} by ${role}`);
    }
    assert.match(await asked([]), /^403/, `${operation.name} without a role`);
    assert.match(await asked(["owners"]), operation.again ?? /^20\d/, `${operation.name} by owners`);
  }
  const owned = listedOperations.filter(({ owner }) => owner);
  for (const operation of owned) {
    const give = (rights: string) => ({ "x-ms-owner": "other", "x-ms-acl": `user::${rights},group::${rights},other::${rights}` });
    const path = await prepare(operation, give, { above: "rwx", parent: "rwx", path: "rwx" });
    const { method, headers = () => ({}), body } = operation;
    assert.equal(
      (await ask(method, operation.target(filesystem, path), { ...(await token()), ...headers(filesystem, path) }, body)).told,
      forbidden,
    );
  }
});

test("access lists: a user delegation SAS is judged for suoid, is not for saoid, and new paths belong to both", async () => {
  const path = `/${filesystem}/sas-${++made}`;
  const name = `${filesystem}/sas-${made}`;
  await byKey("PUT", `${path}?resource=file`);
  await byKey("PATCH", `${path}?action=setAccessControl`, { "x-ms-acl": "user::rwx,group::---,other::---" });
  const signed = { service: "blob", account: accountName, key: accountKey } as const;
  const sas = (more: Record<string, string>, sp = "rwc") => delegationSas(signed, key, name, sp, { sr: "b", ...more });
  assert.equal((await ask("GET", `${path}?${sas({})}`, {})).told, "200");
  assert.equal((await ask("GET", `${path}?${sas({ saoid: me })}`, {})).told, "200");
  assert.equal((await ask("GET", `${path}?${sas({ suoid: me })}`, {})).told, forbidden);
  await byKey("PATCH", `${path}?action=setAccessControl`, { "x-ms-acl": `user::rwx,user:${me}:r--,group::---,other::---` });
  assert.equal((await ask("GET", `${path}?${sas({ suoid: me })}`, {})).told, "200");
  assert.equal((await ask("GET", `${path}?${sas({ suoid: me }, "w")}`, {})).told, forbidden, "the letters count, too");
  await setAccess("/", { "x-ms-acl": "user::rwx,group::r-x,other::-wx" });
  for (const who of ["saoid", "suoid"]) {
    const target = `/${filesystem}/of-${who}`;
    const own = delegationSas(signed, key, `${filesystem}/of-${who}`, "ce", { sr: "b", [who]: me });
    assert.equal((await ask("PUT", `${target}?resource=file&${own}`, {})).told, "201");
    assert.equal((await ask("HEAD", `${target}?action=getStatus&${own}`, {})).headers.get("x-ms-owner"), me);
  }
  await setAccess("/", { "x-ms-acl": "user::rwx,group::r-x,other::--x" });
});

test("access lists: a SAS for a directory is for what is in it, at any depth, and for nothing beside", async () => {
  for (const path of ["in/a/b/f", "in/ab", "beside"]) await byKey("PUT", `/${filesystem}/${path}?resource=file`);
  const signed = { service: "blob", account: accountName, key: accountKey } as const;
  const sas = (depth: string, sp = "rle") => delegationSas(signed, key, `${filesystem}/in/a`, sp, { sr: "d", sdd: depth });
  const get = async (path: string, query: string) => (await ask("GET", `/${filesystem}/${path}?${query}`, {})).told;
  assert.equal(await get("in/a/b/f", sas("2")), "200");
  for (const path of ["in/ab", "beside", "in"]) assert.match(await get(path, sas("2")), /^403/, path);
  assert.match(await get("in/a/b/f", sas("3")), /^403/, "a depth that the signature is not for");
  assert.match(await get("in/a/b/f", sas("1")), /^403/);
  const list = async (directory: string) =>
    (await ask("GET", `/${filesystem}?resource=filesystem&recursive=true&directory=${encodeURIComponent(directory)}&${sas("2")}`, {})).told;
  assert.equal(await list("in/a"), "200");
  assert.equal(await list("in/a/b"), "200");
  for (const directory of ["in", "in/ab", "", "in/a/../ab"]) assert.match(await list(directory), /^40[034]/, directory);
});

test("access lists: sticky bits, recursive deletions and recursive lists look at what is below", async () => {
  await setAccess("/", { "x-ms-acl": "user::rwx,group::r-x,other::rwx" });
  const bearer = await token();
  const open = "user::rwx,group::rwx,other::rwx";
  await byKey("PUT", `/${filesystem}/tmp/theirs?resource=file`);
  await setAccess("tmp", { "x-ms-permissions": "rwxrwxrwt" });
  assert.equal((await ask("PUT", `/${filesystem}/tmp/mine?resource=file`, bearer)).told, "201");
  assert.equal((await ask("DELETE", `/${filesystem}/tmp/theirs`, bearer)).told, forbidden);
  assert.equal(
    (await ask("PUT", `/${filesystem}/tmp/x`, { ...bearer, "x-ms-rename-source": `/${filesystem}/tmp/theirs` })).told,
    forbidden,
  );
  assert.equal(
    (await ask("PUT", `/${filesystem}/tmp/theirs`, { ...bearer, "x-ms-rename-source": `/${filesystem}/tmp/mine` })).told,
    forbidden,
  );
  assert.equal((await ask("DELETE", `/${filesystem}/tmp/mine`, bearer)).told, "200");

  await byKey("PUT", `/${filesystem}/deep/a/b/f?resource=file`);
  for (const path of ["deep", "deep/a"]) await setAccess(path, { "x-ms-acl": open });
  const list = `/${filesystem}?resource=filesystem&recursive=true&directory=deep`;
  assert.equal((await ask("GET", list, bearer)).told, forbidden, "deep/a/b is closed");
  assert.equal((await ask("DELETE", `/${filesystem}/deep?recursive=true`, bearer)).told, forbidden);
  await setAccess("deep/a/b", { "x-ms-acl": open });
  assert.equal((await ask("GET", list, bearer)).told, "200");
  assert.equal((await ask("DELETE", `/${filesystem}/deep?recursive=true`, bearer)).told, "200");
  await setAccess("/", { "x-ms-acl": "user::rwx,group::r-x,other::--x" });
});

test("access lists: a rename into a directory needs rights on that directory, and none to write above it", async () => {
  for (const path of ["from/f?resource=file", "from/g?resource=file", "into?resource=directory"])
    await byKey("PUT", `/${filesystem}/${path}`);
  const bearer = await token();
  const open = { "x-ms-acl": "user::rwx,group::rwx,other::rwx" };
  await setAccess("from", open);
  const rename = async (name: string, to: string) =>
    (await ask("PUT", `/${filesystem}/${to}`, { ...bearer, "x-ms-rename-source": `/${filesystem}/from/${name}` })).told;
  await setAccess("/", open);
  assert.equal(await rename("f", "into"), forbidden);
  await setAccess("/", { "x-ms-acl": "user::rwx,group::r-x,other::--x" });
  await setAccess("into", open);
  assert.equal(await rename("f", "into"), "201");
  assert.equal(await rename("g", "into-not-there"), forbidden);
  await byKey("HEAD", `/${filesystem}/into/f`);
});

test("access lists: owners change modes and lists, no owners, and groups only to one of their own", async () => {
  const path = `/${filesystem}/mine-${++made}`;
  await byKey("PUT", `${path}?resource=file`, { "x-ms-owner": me, "x-ms-group": "first" });
  const bearer = await token({ groups: [myGroup] });
  const set = async (headers: Headers) => (await ask("PATCH", `${path}?action=setAccessControl`, { ...bearer, ...headers })).told;
  assert.equal(await set({ "x-ms-permissions": "0700" }), "200");
  assert.equal(await set({ "x-ms-owner": "somebody" }), forbidden);
  assert.equal(await set({ "x-ms-owner": me.toUpperCase() }), "200");
  assert.equal(await set({ "x-ms-group": "second" }), forbidden);
  assert.equal(await set({ "x-ms-group": myGroup }), "200");
  const others = await ask("PATCH", `${path}?action=setAccessControl`, { ...(await token({ oid: "other" })), "x-ms-permissions": "0777" });
  assert.equal(others.told, forbidden);
});

test("access lists: a SAS of a filesystem lists it, and the page of the documentation is this table", async () => {
  const signed = { service: "blob", account: accountName, key: accountKey } as const;
  const sas = delegationSas(signed, key, filesystem, "l", { sr: "c" });
  assert.equal((await ask("GET", `/${filesystem}?resource=filesystem&recursive=false&${sas}`, {})).told, "200");
  assert.match((await ask("GET", `/other?resource=filesystem&recursive=false&${sas}`, {})).told, /^403/);
  assert.equal(readFileSync(accessListsPath, "utf8"), accessListsPage());
});
