/** Renames by shared access signatures: one for the target, in the query, and one for the source, in its header. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  DataLakeServiceClient,
  FileSystemSASPermissions,
  generateAccountSASQueryParameters,
  generateDataLakeSASQueryParameters,
} from "@azure/storage-file-datalake";
import { type DelegationKey, delegationKey } from "../conformance/delegation.ts";
import { type TestIssuer, testIssuer } from "../conformance/issuer.ts";
import { delegationSas } from "../conformance/sas-by-hand.ts";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";
import { type Lake, sharedKey, startLake } from "./lake.ts";

const version = "2025-05-05";
const me = "11111111-1111-1111-1111-111111111111";
const forbidden = "403 AuthorizationPermissionMismatch";

let issuer: TestIssuer;
let lake: Lake;
let key: DelegationKey;
let clients: Clients;
before(async () => {
  issuer = await testIssuer();
  lake = await startLake({ oidc: issuer.settings });
  const endpoint = `http://127.0.0.1:${new URL(lake.url).port}`;
  clients = new Clients({ endpoint, accountName, accountKey, issuer, stop: async () => {} });
  key = await delegationKey(clients, "owners", "/");
});
after(async () => {
  await lake?.stop();
  issuer?.remove();
});

type Headers = Record<string, string>;

const told = async (asked: Promise<Response>): Promise<string> => {
  const answer = await asked;
  await answer.arrayBuffer();
  return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
};

/** Makes a filesystem with these files, and returns what asks in it. */
async function setUp(...files: readonly string[]) {
  const { name } = await lake.filesystem();
  const ask = (method: string, path: string, headers: Headers = {}): Promise<string> =>
    told(
      clients.raw(method, `/${name}/${path}`, {
        headers: { "x-ms-version": version, ...headers },
        ...(method === "HEAD" ? {} : { body: "" }),
      }),
    );
  for (const file of files) assert.equal(await ask("PUT", `${file}?resource=file`), "201");
  const url = `http://127.0.0.1:${new URL(lake.url).port}/${accountName}/${name}`;
  /** `from`: path, with its signature. */
  const rename = (from: string, to: string, signature: string, headers: Headers = {}): Promise<string> => {
    const all = { "x-ms-version": version, "x-ms-rename-source": `/${name}/${from}`, ...headers };
    return told(fetch(`${url}/${to}${to.includes("?") ? "&" : "?"}${signature}`, { method: "PUT", headers: all }));
  };
  const isThere = async (path: string): Promise<boolean> => (await ask("HEAD", path)) === "200";
  return { name, ask, rename, isThere };
}

const expiresOn = new Date(Date.now() + 3_600_000);
const ofFilesystem = (fileSystemName: string, letters: string): string =>
  generateDataLakeSASQueryParameters(
    { fileSystemName, expiresOn, permissions: FileSystemSASPermissions.parse(letters) },
    sharedKey,
  ).toString();
const ofPath = (name: string, sp: string, more: Headers = {}): string =>
  delegationSas({ service: "blob", account: accountName, key: accountKey }, key, name, sp, { sr: "b", ...more });

test("signed renames: the SDK with a signature of the filesystem or of the account renames files and directories", async () => {
  const { name, isThere } = await setUp("f", "d/x");
  const ofAccount = generateAccountSASQueryParameters(
    {
      expiresOn,
      permissions: AccountSASPermissions.parse("rwdl"),
      services: AccountSASServices.parse("b").toString(),
      resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
    },
    sharedKey,
  ).toString();
  for (const [signature, to] of [
    [ofFilesystem(name, "rwd"), "one"],
    [ofFilesystem(name, "m"), "two"],
    [ofAccount, "three"],
  ] as const) {
    const client = new DataLakeServiceClient(`${lake.url}?${signature}`, undefined, { retryOptions: { maxTries: 1 } }).getFileSystemClient(
      name,
    );
    const last = to === "one" ? "" : to === "two" ? "-one" : "-two";
    await client.getFileClient(`f${last}`).move(name, `f-${to}`);
    await client.getDirectoryClient(`d${last}`).move(name, `d-${to}`);
    assert.deepEqual([await isThere(`f-${to}`), await isThere(`d-${to}/x`), await isThere(`f${last}`)], [true, true, false]);
  }
});

test("signed renames, the source has no signature, or one that is not for it: refused, and nothing is renamed", async () => {
  const { name, rename, isThere } = await setUp("f", "secret/f", "mine/f");
  const whole = ofFilesystem(name, "rwd");
  const directory = ofPath(`${name}/mine`, "rwd", { sr: "d", sdd: "1" });
  for (const spoof of ["", "&ss=", "&srt="]) {
    assert.equal(await rename("f", "g", `${whole}${spoof}`), forbidden, spoof);
    assert.equal(await rename("secret/f", "mine/g", `${directory}${spoof}`), forbidden, spoof);
  }
  assert.match(await rename("f", "g", `${whole}&ss=b`), /^403 /);
  assert.match(await rename(`secret/f?${directory}`, "mine/g", directory), /^403 /, "a signature of another directory");
  assert.match(await rename(`mine/f?${directory}`, "secret/g", directory), /^403 /);
  assert.match(await rename(`f?${whole}0`, "g", whole), /^403 /);
  assert.match(await rename(`f?${ofFilesystem("other", "rwd")}`, "g", whole), /^403 /);
  assert.equal(await rename("f?x=1", "g", whole), "400 InvalidSourceUri");
  for (const letters of ["rl", "w", "d", "rlac"]) {
    const weak = ofFilesystem(name, letters);
    assert.equal(await rename(`f?${weak}`, "g", whole), forbidden, letters);
    assert.equal(await rename(`f?${whole}`, "g", weak), forbidden, letters);
  }
  assert.deepEqual([await isThere("f"), await isThere("secret/f"), await isThere("mine/f"), await isThere("g")], [true, true, true, false]);
  assert.equal(await rename(`mine/f?${directory}`, "mine/g", directory), "201");
});

test("signed renames by whoever may only move: nothing is replaced", async () => {
  const { name, rename } = await setUp("f", "g");
  const [moves, writes] = [ofFilesystem(name, "m"), ofFilesystem(name, "wd")];
  assert.equal(await rename(`f?${moves}`, "g?mode=legacy", moves), forbidden);
  assert.equal(await rename(`f?${moves}`, "g?mode=legacy", moves, { "if-none-match": "*" }), "409 PathAlreadyExists");
  assert.equal(await rename(`f?${moves}`, "h?mode=legacy", moves), "201");
  assert.equal(await rename(`h?${writes}`, "g?mode=legacy", writes), "201");
});

test("signed renames by signatures for one path each: a file is renamed, a directory with what is below it is not", async () => {
  const { name, rename, isThere } = await setUp("f", "d/x", "into/y");
  const at = (path: string) => ofPath(`${name}/${path}`, "m");
  assert.equal(await rename(`d?${at("d")}`, "e", at("e")), forbidden);
  assert.equal(await rename(`d?${ofFilesystem(name, "m")}`, "e", at("e")), forbidden);
  assert.equal(await rename(`f?${at("f")}`, "into", at("into")), forbidden, "it would come to lie in the directory");
  assert.equal(await rename(`f?${at("f")}`, "g", at("g")), "201");
  assert.deepEqual([await isThere("d/x"), await isThere("into/f"), await isThere("g")], [true, false, true]);
});

test("signed renames for a user: lists judge both paths, and a source that is signed for another user is refused", async () => {
  const { name, ask, rename } = await setUp("open/f", "open/g", "closed/f");
  const lists = async (path: string, other: string): Promise<void> => {
    assert.equal(await ask("PATCH", `${path}?action=setAccessControl`, { "x-ms-acl": `user::rwx,group::r-x,other::${other}` }), "200");
  };
  await lists("", "--x");
  await lists("open", "-wx");
  await lists("closed", "--x");
  const signed = (path: string, suoid?: string) => ofPath(`${name}/${path}`, "m", suoid === undefined ? {} : { suoid });
  assert.equal(await rename(`closed/f?${signed("closed/f", me)}`, "open/h", signed("open/h", me)), forbidden);
  assert.equal(await rename(`closed/f?${signed("closed/f")}`, "open/h", signed("open/h", me)), forbidden);
  assert.equal(await rename(`open/f?${signed("open/f", me)}`, "open/h", signed("open/h")), "501 NotImplemented");
  assert.equal(await rename(`open/f?${signed("open/f", me)}`, "open/h", signed("open/h", me)), "201");
});
