/** Requests of Data Lake Storage as they stand on the wire: what the SDK never sends, and what must not be ignored. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  BlobSASPermissions,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";

let stamp: Awaited<ReturnType<typeof startStamp>>;
let clients: Clients;

before(async () => {
  stamp = await startStamp({ hierarchicalNamespace: true });
  clients = new Clients({ endpoint: new URL(stamp.endpoints.dfs).origin, accountName, accountKey, stop: async () => {} });
});
after(() => stamp?.stop());

const changing = new Set(["PUT", "PATCH", "POST"]);

/** `line`: method and path. */
async function ask(line: string, headers: Record<string, string> = {}, body = ""): Promise<string> {
  const [method = "", path = ""] = line.split(" ");
  const sent = changing.has(method) ? { body } : {};
  const answer = await clients.raw(method, path, { headers: { "x-ms-version": "2025-05-05", ...headers }, ...sent });
  await answer.arrayBuffer();
  return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
}

test("dfs requests: conditions hold for the root directory, too", async () => {
  assert.equal(await ask("PUT /rooted?resource=filesystem"), "201");
  const [old, tag] = ["Mon, 01 Jan 2024 00:00:00 GMT", '"0x8000000000000FF"'];
  for (const action of ["", "?action=getStatus", "?action=getAccessControl"]) {
    const head = `HEAD /rooted/${action}`;
    assert.equal(await ask(head), "200");
    assert.equal(await ask(head, { "if-match": tag }), "412 ConditionNotMet", action);
    assert.equal(await ask(head, { "if-unmodified-since": old }), "412 ConditionNotMet", action);
    assert.equal(await ask(head, { "if-modified-since": new Date().toUTCString() }), "304 ConditionNotMet", action);
    assert.equal(await ask(head, { "if-none-match": tag }), "200", action);
  }
});

test("dfs requests: access control of the root directory is set under the lease of its filesystem", async () => {
  const id = "11111111-1111-1111-1111-111111111111";
  assert.equal(await ask("PUT /leased?resource=filesystem"), "201");
  const acquire = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "60", "x-ms-proposed-lease-id": id };
  assert.equal(await ask("PUT /leased?restype=container&comp=lease", acquire), "201");
  for (const permissions of ["0755", "0700"]) {
    const headers = { "x-ms-permissions": permissions, "x-ms-lease-id": id };
    assert.equal(await ask("PATCH /leased/?action=setAccessControl", headers), "200", permissions);
  }
  const other = { "x-ms-permissions": "0755", "x-ms-lease-id": "22222222-2222-2222-2222-222222222222" };
  assert.match(await ask("PATCH /leased/?action=setAccessControl", other), /^4(09|12) /);
});

test("dfs requests: a filesystem gets the encryption scope that its creation names, or is refused", async () => {
  const headers = { "x-ms-default-encryption-scope": "nobodys", "x-ms-deny-encryption-scope-override": "true" };
  assert.match(await ask("PUT /scoped?resource=filesystem", headers), /^4\d\d /);
  assert.equal(await ask("HEAD /scoped?resource=filesystem"), "404 FilesystemNotFound");
});

test("dfs requests: what both services have is refused under names of this one, but to clients that ask for XML", async () => {
  assert.equal(await ask("PUT /named?resource=filesystem"), "201");
  const xml = { accept: "application/xml" };
  for (const method of ["GET", "HEAD"]) {
    assert.equal(await ask(`${method} /named/gone`), "404 PathNotFound");
    assert.equal(await ask(`${method} /named/gone`, xml), "404 BlobNotFound");
    assert.equal(await ask(`${method} /nowhere/gone`), "404 FilesystemNotFound");
    assert.equal(await ask(`${method} /nowhere/gone`, xml), "404 ContainerNotFound");
  }
});

test("dfs requests: a SAS for one path does not remove what is below it, one for the filesystem does", async () => {
  assert.equal(await ask("PUT /shared?resource=filesystem"), "201");
  for (const path of ["d/f", "e/f", "f"]) assert.equal(await ask(`PUT /shared/${path}?resource=file`), "201");
  const credential = new StorageSharedKeyCredential(accountName, accountKey);
  const expiresOn = new Date(Date.now() + 3_600_000);
  const sas = (blobName?: string): string => {
    const where = { containerName: "shared", ...(blobName && { blobName }) };
    const permissions = blobName ? BlobSASPermissions.parse("d") : ContainerSASPermissions.parse("d");
    return generateBlobSASQueryParameters({ ...where, permissions, expiresOn }, credential).toString();
  };
  const remove = async (path: string, query: string): Promise<string> => {
    const url = `${new URL(stamp.endpoints.dfs).origin}/${accountName}/shared/${path}?recursive=true&${query}`;
    const answer = await fetch(url, { method: "DELETE", headers: { "x-ms-version": "2025-05-05" } });
    await answer.arrayBuffer();
    return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
  };
  assert.equal(await remove("d", sas("d")), "403 AuthorizationPermissionMismatch");
  assert.match(await remove("d/f", sas("d")), /^403 /);
  assert.equal(await ask("HEAD /shared/d/f"), "200");
  assert.equal(await remove("f", sas("f")), "200");
  assert.equal(await remove("e", sas()), "200");
});

test("dfs requests: names at the bounds, and beyond them", async () => {
  assert.equal(await ask("PUT /bounds?resource=filesystem"), "201");
  const long = Array(5).fill("b".repeat(204)).join("/");
  const cases: readonly (readonly [path: string, told: string])[] = [
    ["a%2Fb", "201"],
    ["t/", "201"],
    ["/lead", "201"],
    ["k%5Cl", "201"],
    ["x//y", "400 InvalidResourceName"],
    ["u%00v", "400 InvalidUri"],
    ["%ed%a0%80", "400 InvalidUri"],
    ["n".repeat(255), "201"],
    ["n".repeat(256), "400 InvalidResourceName"],
    [long, "201"],
    [`${long}${"b".repeat(2)}`, "400 OutOfRangeInput"],
    [`${Array(63).fill("d").join("/")}/f`, "201"],
    [`${Array(64).fill("d").join("/")}/f`, "400 InvalidResourceName"],
  ];
  for (const [path, told] of cases) assert.equal(await ask(`PUT /bounds/${path}?resource=file`), told, path.slice(0, 40));
  for (const path of ["a/b", "t", "lead"]) assert.equal(await ask(`HEAD /bounds/${path}`), "200", path);
  assert.equal(await ask("PUT /bounds/b?resource=file", { "x-ms-rename-source": "/bounds/../bounds/a/b" }), "201", "a path is canonical");
});

test("dfs requests: continuations of nobody's list are refused", async () => {
  assert.equal(await ask("PUT /pages?resource=filesystem"), "201");
  for (const token of ["zz", "00", "ff", "01ff", "7f".repeat(100), "0", "0502610013fe00"])
    for (const list of ["/pages?resource=filesystem&recursive=true", "/?resource=account"])
      assert.equal(await ask(`GET ${list}&continuation=${token}`), "400 InvalidQueryParameterValue", `${list} ${token.slice(0, 8)}`);
});

test("dfs requests: a rename in mode posix to a directory leads into it, and one in mode legacy takes its place", async () => {
  assert.equal(await ask("PUT /modes?resource=filesystem"), "201");
  const make = async (...paths: readonly string[]): Promise<void> => {
    for (const path of paths) assert.equal(await ask(`PUT /modes/${path}?resource=${path.endsWith("/") ? "directory" : "file"}`), "201");
  };
  const rename = (from: string, to: string, headers: Record<string, string> = {}) =>
    ask(`PUT /modes/${to}`, { "x-ms-rename-source": `/modes/${from}`, ...headers });
  const isThere = async (path: string): Promise<boolean> => (await ask(`HEAD /modes/${path}`)) === "200";
  const isNew = { "if-none-match": "*" };
  await make("a/f", "b/", "c/a/g", "h", "x/", "y/");
  assert.equal(await rename("a", "b", isNew), "201");
  assert.ok(await isThere("b/a/f"));
  assert.equal(await rename("h", "b", isNew), "201");
  assert.ok(await isThere("b/h"));
  assert.equal(await rename("b/a", "c"), "409 DirectoryNotEmpty");
  assert.equal(await rename("b/a", "c", isNew), "409 PathAlreadyExists");
  assert.equal(await rename("b/a", "b"), "409 InvalidRenameSourcePath", "it lies there already");
  assert.equal(await rename("b", "b/a"), "409 InvalidRenameSourcePath");
  assert.equal(await rename("b/h", "c/a/g"), "201", "a file takes the place of a file");
  assert.equal(await rename("x", "y?mode=legacy"), "201");
  assert.ok((await isThere("y")) && !(await isThere("y/x")));
  assert.equal(await rename("y", "c?mode=legacy"), "409 DirectoryNotEmpty");
});

test("dfs requests: the list of a file has the file alone", async () => {
  assert.equal(await ask("PUT /listed?resource=filesystem"), "201");
  assert.equal(await ask("PUT /listed/d/f?resource=file"), "201");
  for (const recursive of [true, false]) {
    const target = `/listed?resource=filesystem&recursive=${recursive}&directory=d/f`;
    const answer = await clients.raw("GET", target, { headers: { "x-ms-version": "2025-05-05" } });
    const { paths } = (await answer.json()) as { paths: readonly { name: string; isDirectory?: string }[] };
    assert.deepEqual(
      paths.map(({ name, isDirectory }) => [name, isDirectory]),
      [["d/f", undefined]],
    );
  }
  assert.equal(await ask("GET /listed?resource=filesystem&recursive=false&directory=d/f/g"), "404 PathNotFound");
});

test("dfs requests: properties of a path are replaced, those of its content each alone, under conditions", async () => {
  assert.equal(await ask("PUT /described?resource=filesystem"), "201");
  assert.equal(await ask("PUT /described/d/f?resource=file", { "x-ms-properties": "a=eA==,b=eQ==", "x-ms-content-type": "text/a" }), "201");
  const shown = async (path: string): Promise<(string | null)[]> => {
    const { headers } = await clients.raw("HEAD", `/described/${path}`, { headers: { "x-ms-version": "2025-05-05" } });
    return ["x-ms-properties", "content-type", "content-language"].map((name) => headers.get(name));
  };
  const set = (path: string, headers: Record<string, string>) => ask(`PATCH /described/${path}?action=setProperties`, headers);
  assert.equal(await set("d/f", { "x-ms-properties": "b=eg==" }), "200");
  assert.deepEqual(await shown("d/f"), ["b=eg==", "text/a", null]);
  assert.equal(await set("d/f", { "x-ms-content-language": "de" }), "200");
  assert.deepEqual(await shown("d/f"), ["b=eg==", "text/a", "de"]);
  assert.equal(await set("d", { "x-ms-properties": "of=ZA==" }), "200");
  assert.equal((await shown("d"))[0], "of=ZA==");
  const directory = await clients.raw("HEAD", "/described/d", { headers: { "x-ms-version": "2025-05-05" } });
  assert.equal(directory.headers.get("x-ms-meta-hdi_isfolder"), "true", "as clients in C++ know a directory");
  for (const headers of [{ "x-ms-properties": "c=eg==" }, { "x-ms-content-language": "en" }])
    assert.equal(await set("d/f", { ...headers, "if-match": '"0x8000000000000FF"' } as Record<string, string>), "412 ConditionNotMet");
  assert.equal(await set("d/f", {}), "400 MissingRequiredHeader");
  assert.equal(await set("d/f", { "x-ms-properties": "c=eg==", "x-ms-content-language": "en" }), "501 NotImplemented");
  assert.equal(await set("gone", { "x-ms-properties": "c=eg==" }), "404 PathNotFound");
  assert.deepEqual(await shown("d/f"), ["b=eg==", "text/a", "de"]);
});
