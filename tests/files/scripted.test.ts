/** A request of each kind of the Files service. What is seen is what docs/api/file.md says. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileRequestTitle, otherRequests, parseTarget } from "@stamp/azure-rest";
import { startStamp } from "@stamp/embedded";
import { bearerHeaders } from "../conformance/delegation.ts";
import { type TestIssuer, testIssuer } from "../conformance/issuer.ts";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";
import { ApiRecord, checkApiPage } from "../tools/api-table.ts";

interface Step {
  readonly request: string;
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** Code of the answer. */
  readonly code?: string;
}

const step = (status: number, request: string, headers: Record<string, string> = {}, body?: string): Step => ({
  request,
  status,
  headers,
  ...(body !== undefined && { body }),
});

const permission = JSON.stringify({ permission: "O:BAG:BAD:(A;;FA;;;SY)" });
const policies = "<SignedIdentifiers><SignedIdentifier><Id>p</Id></SignedIdentifier></SignedIdentifiers>";
const service = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
const lease = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" };
const proposed = { "x-ms-proposed-lease-id": "11111111-1111-1111-1111-111111111111" };
const broken = { "x-ms-lease-action": "break", "x-ms-lease-break-period": "0" };
const write = { "x-ms-write": "update", "x-ms-range": "bytes=0-3" };
const kept = { "x-ms-file-attributes": "None", "x-ms-file-creation-time": "preserve", "x-ms-file-last-write-time": "preserve" };

/** Requests in their order. `{account}` stands for the URL of the account, `{bearer}` for a token. */
const steps: readonly Step[] = [
  step(202, "PUT /?restype=service&comp=properties", {}, service),
  step(200, "GET /?restype=service&comp=properties"),
  step(201, "PUT /raw?restype=share", { "x-ms-share-quota": "5" }),
  step(200, "GET /?comp=list"),
  step(200, "GET /raw?restype=share"),
  step(200, "HEAD /raw?restype=share"),
  step(200, "PUT /raw?restype=share&comp=properties", { "x-ms-share-quota": "6" }),
  step(200, "PUT /raw?restype=share&comp=metadata", { "x-ms-meta-a": "1" }),
  step(200, "GET /raw?restype=share&comp=metadata"),
  step(200, "HEAD /raw?restype=share&comp=metadata"),
  step(200, "PUT /raw?restype=share&comp=acl", {}, policies),
  step(200, "GET /raw?restype=share&comp=acl"),
  step(200, "HEAD /raw?restype=share&comp=acl"),
  step(200, "GET /raw?restype=share&comp=stats"),
  step(201, "PUT /raw?restype=share&comp=lease", { ...lease, ...proposed }),
  step(202, "PUT /raw?restype=share&comp=lease", broken),
  step(501, "PUT /raw?restype=share&comp=snapshot"),
  step(201, "PUT /raw?restype=share&comp=filepermission", { "content-type": "application/json" }, permission),
  step(200, "GET /raw?restype=share&comp=filepermission", { "x-ms-file-permission-key": "0*0" }),

  step(201, "PUT /raw/d?restype=directory"),
  step(200, "GET /raw/d?restype=directory"),
  step(200, "HEAD /raw/d?restype=directory"),
  step(200, "PUT /raw/d?restype=directory&comp=properties", { ...kept, "x-ms-file-attributes": "Directory" }),
  step(200, "PUT /raw/d?restype=directory&comp=metadata", { "x-ms-meta-a": "1" }),
  step(200, "GET /raw/d?restype=directory&comp=metadata"),
  step(200, "HEAD /raw/d?restype=directory&comp=metadata"),

  step(201, "PUT /raw/d/f", { "x-ms-type": "file", "x-ms-content-length": "8" }),
  step(201, "PUT /raw/d/f?comp=range", write, "text"),
  step(200, "GET /raw/d/f?comp=rangelist"),
  step(200, "GET /raw/d/f"),
  step(200, "HEAD /raw/d/f"),
  step(200, "PUT /raw/d/f?comp=properties", kept),
  step(200, "PUT /raw/d/f?comp=metadata", { "x-ms-meta-a": "1" }),
  step(200, "GET /raw/d/f?comp=metadata"),
  step(200, "HEAD /raw/d/f?comp=metadata"),
  step(200, "GET /raw?restype=directory&comp=list"),
  step(200, "GET /raw/d?restype=directory&comp=list"),
  step(202, "PUT /raw/c", { "x-ms-copy-source": "{account}/raw/d/f" }),
  {
    ...step(409, "PUT /raw/c?comp=copy&copyid=11111111-1111-1111-1111-111111111111", { "x-ms-copy-action": "abort" }),
    code: "NoPendingCopyOperation",
  },
  step(201, "PUT /raw/c?comp=range", {
    "x-ms-write": "update",
    "x-ms-range": "bytes=4-5",
    "x-ms-copy-source": "{account}/raw/d/f",
    "x-ms-source-range": "bytes=0-1",
    "x-ms-copy-source-authorization": "{bearer}",
    "content-length": "0",
  }),
  step(201, "PUT /raw/c?comp=lease", { ...lease, ...proposed }),
  step(202, "PUT /raw/c?comp=lease", broken),
  step(200, "GET /raw?comp=listhandles", { "x-ms-recursive": "true" }),
  step(200, "GET /raw/c?comp=listhandles"),
  step(200, "PUT /raw?comp=forceclosehandles", { "x-ms-handle-id": "*", "x-ms-recursive": "true" }),
  step(200, "PUT /raw/c?comp=forceclosehandles", { "x-ms-handle-id": "*" }),
  step(501, "PUT /raw/hard?restype=hardlink", { "x-ms-file-target-file": "/raw/c", "x-ms-type": "file" }),
  step(501, "PUT /raw/soft?restype=symboliclink", { "x-ms-link-text": "c" }),
  step(501, "GET /raw/soft?restype=symboliclink"),
  step(200, "PUT /raw/g?comp=rename", { "x-ms-file-rename-source": "{account}/raw/c" }),
  step(200, "PUT /raw/e?restype=directory&comp=rename", { "x-ms-file-rename-source": "{account}/raw/d" }),
  step(202, "DELETE /raw/e/f"),
  step(202, "DELETE /raw/e?restype=directory"),
  step(202, "DELETE /raw?restype=share"),
  {
    ...step(404, "PUT /raw?restype=share&comp=undelete", {
      "x-ms-deleted-share-name": "raw",
      "x-ms-deleted-share-version": "0000000000000001",
    }),
    code: "ShareNotFound",
  },
];

const record = new ApiRecord();
const refused = new Set<string>();
let issuer: TestIssuer;
let stamp: Awaited<ReturnType<typeof startStamp>>;
let clients: Clients;
before(async () => {
  issuer = await testIssuer();
  stamp = await startStamp({ oidc: issuer.settings });
  clients = new Clients({ endpoint: new URL(stamp.endpoints.file).origin, accountName, accountKey, issuer, stop: async () => {} });
});
after(async () => {
  await stamp?.stop();
  issuer?.remove();
});

const host = "127.0.0.1";

/** Records an answer. An operation is served by success, or where its step names a code: what it is about is not there. */
function show(method: string, path: string, headers: Record<string, string>, status: number): void {
  const target = parseTarget(`/${accountName}${path}`, host, { hostSuffixes: [] });
  assert.ok(target.ok);
  const title = fileRequestTitle(method, target.value, headers) ?? assert.fail(`${method} ${path} is no operation`);
  if (status === 501) refused.add(title);
  record.saw(title, status);
}

test("files: each operation is served, or refused by name", async () => {
  record.part = "scripted.test.ts";
  const bearer = (await bearerHeaders(clients, "owners")).authorization ?? "";
  const put = (text: string): string => text.replace("{account}", `${clients.target.endpoint}/${accountName}`).replace("{bearer}", bearer);
  for (const { request, headers: given = {}, body = "", status, code } of steps) {
    const [method = "", path = ""] = request.split(" ");
    const headers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, put(value)]));
    const sent = method === "PUT" ? { body } : {};
    const answer = await clients.raw(method, path, { headers: { "x-ms-version": "2025-05-05", ...headers }, ...sent });
    const text = await answer.text();
    assert.equal(answer.status, status, `${request}: ${text}`);
    if (code !== undefined) assert.equal(answer.headers.get("x-ms-error-code"), code);
    show(method, path, headers, code === undefined ? status : 200);
  }
  const hour = (offset: number): string => new Date(Date.now() + offset * 3_600_000).toISOString();
  const asked = await clients.raw("POST", "/?restype=service&comp=userdelegationkey", {
    sign: false,
    headers: { ...(await bearerHeaders(clients, "owners")), "x-ms-file-request-intent": "backup" },
    body: `<KeyInfo><Start>${hour(-1)}</Start><Expiry>${hour(1)}</Expiry></KeyInfo>`,
  });
  assert.equal(asked.status, 200, await asked.text());
  show("POST", "/?restype=service&comp=userdelegationkey", {}, 200);
});

test("files: headers and parameters that say what no file can have are refused", async () => {
  const headers = { "x-ms-version": "2025-05-05" };
  const of = { "x-ms-type": "file", "x-ms-content-length": "4" };
  for (const path of ["/told?restype=share", "/told/f"]) await clients.raw("PUT", path, { headers: { ...headers, ...of }, body: "" });
  for (const [status, code, request, more] of [
    [400, "InvalidHeaderValue", "PUT /told/f?comp=range", { ...write, "x-ms-file-last-write-time": "yesterday" }],
    [400, "InvalidQueryParameterValue", "GET /told/f?comp=listhandles&maxresults=0", {}],
    [400, "InvalidResourceName", "PUT /told/nul", of],
    [400, "InvalidFileOrDirectoryPathName", `PUT /told/${"n".repeat(256)}`, of],
    [400, "InvalidFileOrDirectoryPathName", `PUT /told/${"d/".repeat(251)}f`, of],
  ] as const) {
    const [method = "", path = ""] = request.split(" ");
    const sent = method === "PUT" ? { body: path.endsWith("range") ? "text" : "" } : {};
    const answer = await clients.raw(method, path, { headers: { ...headers, ...more }, ...sent });
    assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [status, code], request);
  }
});

test("docs/api/file.md says what was seen", () => {
  const textOf = (query: readonly (readonly [string, string])[]): string => query.map(([name, value]) => ` ${name}=${value}`).join("");
  checkApiPage(
    {
      path: "docs/api/file.md",
      heading: "Files",
      about: [
        "One row per operation of the Files service, at the file endpoint. `root` is a share, `path` a file or directory. What an",
        "operation does not take, and what it answers while a client holds the file open: `../design/files.md`.",
      ].join("\n"),
      folder: "tests/files/",
      requests: otherRequests()
        .filter(({ service: of }) => of === "file")
        .map(({ title, level, method, query, header }) => ({
          title,
          request: `${level} ${method}${textOf(query)}${header === undefined ? "" : ` with ${header}`}`,
          served: !refused.has(title),
        })),
    },
    record,
  );
});
