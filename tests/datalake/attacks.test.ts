/** Ways around the access control of paths that somebody found: each is closed. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startStamp } from "@stamp/embedded";
import { decodeKey, encodeKey } from "@stamp/objects";
import { type DelegationKey, delegationKey } from "../conformance/delegation.ts";
import { type TestIssuer, testIssuer } from "../conformance/issuer.ts";
import { delegationSas } from "../conformance/sas-by-hand.ts";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";

const version = "2026-04-06";
const me = "11111111-1111-1111-1111-111111111111";
const myGroup = "22222222-2222-2222-2222-222222222222";
const forbidden = "403 AuthorizationPermissionMismatch";
/** Id of every root. */
const rootId = "root";
const open = "user::rwx,group::---,other::rwx";

let issuer: TestIssuer;
let stamp: Awaited<ReturnType<typeof startStamp>>;
let key: DelegationKey;
let lake: Clients;
let flat: Clients;

before(async () => {
  issuer = await testIssuer();
  const accounts = [{ name: "flataccount", keys: [accountKey], containers: [{ name: "taken" }] }];
  stamp = await startStamp({ hierarchicalNamespace: true, oidc: issuer.settings, init: { accounts } });
  const target = { accountKey, issuer, stop: async () => {} };
  lake = new Clients({ ...target, endpoint: new URL(stamp.endpoints.dfs).origin, accountName });
  flat = new Clients({ ...target, endpoint: new URL(stamp.endpoints.blob).origin, accountName: "flataccount" });
  await byKey("PUT", "/lake?restype=container");
  key = await delegationKey(lake, "owners", "/");
});
after(async () => {
  await stamp?.stop();
  issuer?.remove();
});

type Headers = Record<string, string>;
interface Answer {
  readonly told: string;
  readonly headers: globalThis.Headers;
  readonly text: string;
}

async function answerOf(asked: Promise<Response>): Promise<Answer> {
  const { status, headers, ...answer } = await asked.then(async (one) => ({
    status: one.status,
    headers: one.headers,
    text: await one.text(),
  }));
  return { told: `${status} ${headers.get("x-ms-error-code") ?? ""}`.trim(), headers, ...answer };
}

const ask = (method: string, target: string, headers: Headers, body = ""): Promise<Answer> =>
  answerOf(
    fetch(`${new URL(stamp.endpoints.dfs).origin}/${accountName}${target}`, {
      method,
      headers: { "x-ms-version": version, ...headers },
      ...(method === "GET" || method === "HEAD" ? {} : { body }),
    }),
  );

/** As the account itself: what a test prepares. */
async function byKey(method: string, path: string, headers: Headers = {}, body?: string): Promise<Answer> {
  const answer = await answerOf(lake.raw(method, path, { headers: { "x-ms-version": version, ...headers }, ...(body && { body }) }));
  assert.match(answer.told, /^20\d/, `${method} ${path}: ${answer.text}`);
  return answer;
}

const token = async (claims: { oid?: string; roles?: string[]; groups?: string[] } = {}): Promise<Headers> => ({
  authorization: `Bearer ${await issuer.token({ oid: me, ...claims })}`,
});
const setAccess = (path: string, lists: string): Promise<Answer> =>
  byKey("PATCH", `/lake/${path}?action=setAccessControl`, { "x-ms-acl": lists });
const sas = (name: string, sp: string, more: Headers): string =>
  delegationSas({ service: "blob", account: accountName, key: accountKey }, key, name, sp, more);

test("attacks, a copy of a file by whoever lists don't let read it, into an account of their own: refused", async () => {
  await setAccess("/", "user::rwx,group::r-x,other::--x");
  await byKey("PUT", "/lake/source/f?resource=file");
  await setAccess("source", "user::rwx,group::---,other::--x");
  const url = `${new URL(stamp.endpoints.blob).origin}/${accountName}/lake/source/f`;
  const copy = async (source: string, headers: Headers = {}): Promise<string> => {
    const all = { "x-ms-version": version, "x-ms-blob-type": "BlockBlob", "x-ms-copy-source": source, ...headers };
    return (await answerOf(flat.raw("PUT", "/taken/copy", { headers: all, body: "" }))).told;
  };
  const bearer = { "x-ms-copy-source-authorization": (await token()).authorization ?? "" };
  const named = `${url}?${sas("lake/source/f", "r", { sr: "b", suoid: me })}`;
  for (const lists of ["user::rwx,group::---,other::---", `user::rwx,user:${me}:-wx,group::---,mask::rwx,other::---`]) {
    await setAccess("source/f", lists);
    assert.equal(await copy(url, bearer), "403 CannotVerifyCopySource");
    assert.equal(await copy(named), "403 CannotVerifyCopySource");
  }
  await setAccess("source/f", `user::rwx,user:${me}:r--,group::---,mask::rwx,other::---`);
  assert.equal(await copy(url, bearer), "201");
  assert.equal(await copy(named), "201");
  await setAccess("source", "user::rwx,group::---,other::---");
  assert.equal(await copy(url, bearer), "403 CannotVerifyCopySource", "the directory above counts");
});

test("attacks, continuations and beginnings of lists that lead into directories nobody may list: refused or without them", async () => {
  await setAccess("/", "user::rwx,group::r-x,other::--x");
  await byKey("PUT", "/lake/listed/closed/secret?resource=file");
  await byKey("PUT", "/lake/listed/z?resource=file");
  await setAccess("listed", open);
  await setAccess("listed/closed", "user::rwx,group::---,other::---");
  const list = (query: string, headers: Headers): Promise<Answer> =>
    ask("GET", `/lake?resource=filesystem&directory=listed&recursive=true&${query}`, headers);
  const first = await answerOf(
    lake.raw("GET", "/lake?resource=filesystem&directory=listed&recursive=true&maxResults=1", { headers: { "x-ms-version": version } }),
  );
  const given = first.headers.get("x-ms-continuation") ?? "";
  assert.notEqual(given, "");
  const bearer = await token();
  assert.equal((await list(`continuation=${given}`, bearer)).told, forbidden);
  const frames = decodeKey(Buffer.from(given, "hex"), 2);
  assert.ok(frames.ok);
  const [[listed = ""] = [], [closed = ""] = []] = frames.value as string[][];
  for (const frames of [[[rootId, "", ""]], [[closed, "", ""]], [["nobody", "", ""]]]) {
    const forged = Buffer.from(encodeKey(frames)).toString("hex");
    assert.equal((await list(`continuation=${forged}`, bearer)).told, "400 InvalidQueryParameterValue");
    assert.equal((await list(`continuation=${forged}`, await token({ roles: ["owners"] }))).told, "400 InvalidQueryParameterValue");
  }
  for (const id of [rootId, closed]) {
    const forged = Buffer.from(
      encodeKey([
        [listed, "", "z"],
        [id, "x", ""],
      ]),
    ).toString("hex");
    assert.deepEqual((await list(`continuation=${forged}`, bearer)).text, '{"paths":[]}');
  }
  assert.equal((await list("beginFrom=closed%2Fsecret", bearer)).told, forbidden);
  assert.equal((await list("beginFrom=closed%2Fa", bearer)).told, forbidden);
  const behind = await list("beginFrom=d", bearer);
  assert.deepEqual([behind.told, /secret/.test(behind.text), /listed\/z/.test(behind.text)], ["200", false, true]);
});

test("attacks, a creation over a directory, or in somebody else's name: it gives no access that the caller can't give", async () => {
  await setAccess("/", "user::rwx,group::r-x,other::--x");
  await byKey("PUT", "/lake/over/theirs/f?resource=file");
  await setAccess("over", open);
  await setAccess("over/theirs", "user::rwx,group::---,other::---");
  const bearer = await token({ groups: [myGroup] });
  const made = await ask("PUT", "/lake/over/theirs?resource=directory", bearer);
  assert.match(made.told, /^(201|403)/);
  const status = await byKey("HEAD", "/lake/over/theirs?action=getAccessControl");
  assert.deepEqual([status.headers.get("x-ms-owner"), status.headers.get("x-ms-acl")], ["$superuser", "user::rwx,group::---,other::---"]);
  assert.match((await ask("GET", "/lake/over/theirs/f", bearer)).told, /^403/);
  for (const kind of ["file", "directory"]) {
    const create = async (headers: Headers): Promise<string> =>
      (await ask("PUT", `/lake/over/${kind}?resource=${kind}`, { ...bearer, ...headers })).told;
    for (const headers of [{ "x-ms-owner": "$superuser" }, { "x-ms-owner": "other" }, { "x-ms-group": "other" }] as Headers[])
      assert.equal(await create(headers), forbidden, `${kind} ${JSON.stringify(headers)}`);
    assert.equal(await create({ "x-ms-owner": me, "x-ms-group": myGroup }), "201");
  }
});

test("attacks, a creation in somebody else's name by a role that owns nothing, or by a SAS of one: refused", async () => {
  const writer = await token({ roles: ["writers"], groups: [myGroup] });
  const create = async (headers: Headers, query = ""): Promise<string> =>
    (await ask("PUT", `/lake/named/f?resource=file${query}`, headers)).told;
  assert.equal(await create({ ...writer, "x-ms-owner": "other" }), forbidden);
  assert.equal(await create({ ...writer, "x-ms-group": "other" }), forbidden);
  assert.equal(await create({ ...writer, "x-ms-owner": me, "x-ms-group": myGroup, "x-ms-permissions": "0600" }), "201");
  const ofWriters = await delegationKey(lake, "writers", "/");
  const signed = { service: "blob", account: accountName, key: accountKey } as const;
  const query = `&${delegationSas(signed, ofWriters, "lake/named/f", "rcwop", { sr: "b" })}`;
  assert.equal(await create({}, query), "201");
  assert.equal(await create({ "x-ms-owner": "other" }, query), forbidden);
  const ofOwners = `&${sas("lake/named/f", "rcwop", { sr: "b" })}`;
  assert.equal(await create({ "x-ms-owner": "other" }, ofOwners), "201");
});

test("attacks, a token with the id of the superuser, or a group of it: it owns nothing by that", async () => {
  await setAccess("/", "user::rwx,group::rwx,other::---");
  for (const claims of [{ oid: "$superuser" }, { groups: ["$superuser"] }]) {
    assert.equal((await ask("HEAD", "/lake/?action=checkAccess&fsAction=--x", await token(claims))).told, forbidden);
    assert.equal((await ask("PUT", "/lake/taken?resource=file", await token(claims))).told, forbidden);
  }
});

test("attacks, names in a directory that is closed to the caller: nothing tells which are there", async () => {
  await setAccess("/", "user::rwx,group::r-x,other::--x");
  await byKey("PUT", "/lake/closed/f?resource=file");
  await byKey("PUT", "/lake/closed/blocks?comp=block&blockid=AAAA", {}, "x");
  await setAccess("closed", "user::rwx,group::---,other::---");
  const bearer = await token();
  for (const path of ["f", "f/x", "f/x/y", "blocks", "blocks/x", "no", "no/x"])
    for (const method of ["HEAD", "GET", "DELETE"])
      assert.match((await ask(method, `/lake/closed/${path}`, bearer)).told, /^403/, `${method} ${path}`);
  await setAccess("closed", "user::rwx,group::---,other::--x");
  assert.equal((await ask("HEAD", "/lake/closed/f/x", bearer)).told, "404 PathNotFound");
});

test("attacks, ids that access control can't hold: no SAS has one, and no bearer creates with one", async () => {
  await byKey("PUT", "/lake/ids/held?resource=file");
  for (const who of ["saoid", "suoid"]) {
    const query = sas("lake/ids/new", "rcw", { sr: "b", [who]: `a,user:${me}` });
    assert.equal((await ask("PUT", `/lake/ids/new?resource=file&${query}`, {})).told, "403 AuthenticationFailed");
    // No header can say who owns it.
    const wide = sas("lake/ids/new", "rcw", { sr: "b", [who]: "\u540d" });
    assert.equal((await ask("PUT", `/lake/ids/new?resource=file&${wide}`, {})).told, "403 AuthenticationFailed");
  }
  const bearer = await token({ oid: "system:serviceaccount:a:b", roles: ["owners"] });
  const blob = { ...bearer, "x-ms-blob-type": "BlockBlob" };
  assert.equal((await ask("PUT", "/lake/ids/f?resource=file", bearer)).told, forbidden);
  assert.equal((await ask("PUT", "/lake/ids/d?resource=directory", bearer)).told, forbidden);
  assert.equal((await ask("PUT", "/lake/ids/b", blob, "x")).told, forbidden);
  assert.equal((await ask("PUT", "/lake/ids/above/b", blob, "x")).told, forbidden);
  const superuser = await token({ oid: "$superuser", groups: ["$superuser"], roles: ["writers"] });
  assert.equal((await ask("PUT", "/lake/ids/f?resource=file", superuser)).told, forbidden);
  for (const path of ["f", "d", "b", "above"]) assert.match((await ask("HEAD", `/lake/ids/${path}`, bearer)).told, /^404/, path);
  assert.equal((await ask("PUT", "/lake/ids/held", blob, "x")).told, "201", "what is there keeps its owner");
});

test("attacks, a recursive change of access control with a SAS for one path: of a file only", async () => {
  await byKey("PUT", "/lake/recursive/d/f?resource=file");
  const change = async (path: string, more: Headers): Promise<string> => {
    const query = sas(`lake/${path}`, "p", more);
    const headers = { "x-ms-acl": "user::rwx,group::---,other::rwx" };
    return (await ask("PATCH", `/lake/${path}?action=setAccessControlRecursive&mode=set&${query}`, headers)).told;
  };
  assert.equal(await change("recursive/d", { sr: "b" }), forbidden);
  assert.equal(await change("recursive/d/f", { sr: "b" }), "200");
  assert.equal(await change("recursive/d", { sr: "d", sdd: "2" }), "200");
});
