/**
 * The table of answers of docs/design/files.md: every operation that has a file, in every state that a gateway's handle can give the file.
 * Each pair has a file of its own.
 */
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { FileSASPermissions, generateFileSASQueryParameters } from "@azure/storage-file-share";
import { type FileOperationName, fileAuthorizationOf, fileOperationNames } from "@stamp/azure-rest";
import { unwrap } from "@stamp/base";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";
import { credential, findHosts } from "./files-bench.ts";
import { all, HandlesBench, none, read, remove, write } from "./handles-bench.ts";

let bench: HandlesBench;
let clients: Clients;
let made = 0;
before(async () => {
  findHosts();
  bench = await HandlesBench.start();
  const endpoint = `http://127.0.0.1:${new URL(bench.share.url).port}`;
  clients = new Clients({ endpoint, accountName, accountKey, stop: async () => {} });
});
after(async () => {
  await bench.stop();
  mock.restoreAll();
});

interface Asked {
  readonly operation: FileOperationName;
  /** What is asked, where an operation has several forms. */
  readonly form?: string;
  /** Rights that it uses of those who hold the file. */
  readonly uses: number;
  /** Bytes that a lock can protect of it: those that it writes, or reads; undefined: none. */
  readonly meets?: "writes" | "reads";
  /** `$`: the file, as a path; `@`: as a URL. */
  readonly request: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const [target, other] = ["PUT /share/$", "PUT /share/new-$"];
const update = { "x-ms-write": "update", "x-ms-range": "bytes=2-3" };
const length = { "x-ms-type": "file", "x-ms-content-length": "3" };
const fromUrl = { ...update, "x-ms-source-range": "bytes=2-3" };
const acquire = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" };
const abort = { "x-ms-copy-action": "abort" };
const replace = { "x-ms-file-rename-replace-if-exists": "true" };
const id = "11111111-1111-1111-1111-111111111111";

const table: readonly Asked[] = [
  { operation: "GetFileProperties", uses: 0, request: "HEAD /share/$" },
  { operation: "GetFileMetadata", uses: 0, request: "GET /share/$?comp=metadata" },
  { operation: "LeaseFile", uses: 0, request: `${target}?comp=lease`, headers: acquire },
  { operation: "AbortCopyFile", uses: 0, request: `${target}?comp=copy&copyid=${id}`, headers: abort },
  { operation: "GetFile", uses: read, meets: "reads", request: "GET /share/$" },
  { operation: "ListRanges", uses: read, request: "GET /share/$?comp=rangelist" },
  {
    ...{ operation: "PutRangeFromURL", form: "source", uses: read, meets: "reads", request: "PUT /share/into?comp=range" },
    headers: { ...fromUrl, "x-ms-copy-source": "@" },
  },
  { operation: "CopyFile", form: "source", uses: read, meets: "reads", request: other, headers: { "x-ms-copy-source": "@" } },
  { operation: "PutRange", uses: write, meets: "writes", request: `${target}?comp=range`, headers: update, body: "ab" },
  {
    ...{ operation: "PutRange", form: "clear", uses: write, meets: "writes", request: `${target}?comp=range` },
    headers: { ...update, "x-ms-write": "clear" },
  },
  {
    ...{ operation: "PutRangeFromURL", form: "target", uses: write, meets: "writes", request: `${target}?comp=range` },
    headers: { ...fromUrl, "x-ms-copy-source": "@free" },
  },
  { operation: "SetFileProperties", uses: write, request: `${target}?comp=properties` },
  {
    ...{ operation: "SetFileProperties", form: "resize", uses: write, meets: "writes", request: `${target}?comp=properties` },
    headers: { "x-ms-content-length": "3" },
  },
  { operation: "SetFileMetadata", uses: write, request: `${target}?comp=metadata`, headers: { "x-ms-meta-a": "b" } },
  { operation: "DeleteFile", uses: remove, request: "DELETE /share/$" },
  { operation: "RenameFile", form: "source", uses: remove, request: `${other}?comp=rename`, headers: { "x-ms-file-rename-source": "@" } },
  {
    ...{ operation: "RenameFile", form: "replaced", uses: remove, request: `${target}?comp=rename` },
    headers: { ...replace, "x-ms-file-rename-source": "@mover" },
  },
  { operation: "CreateFile", uses: write | remove, meets: "writes", request: target, headers: length },
  {
    ...{ operation: "CopyFile", form: "target", uses: write | remove, meets: "writes", request: target },
    headers: { "x-ms-copy-source": "@free" },
  },
];
const named = ({ operation, form }: Asked): string => (form === undefined ? operation : `${operation}, ${form}`);

/** URL of a file, with a SAS that lets read and delete it. */
function urlOf(path: string): string {
  const permissions = FileSASPermissions.parse("rd");
  const sas = generateFileSASQueryParameters(
    { shareName: "share", filePath: path, permissions, expiresOn: new Date(Date.now() + 600_000) },
    credential,
  );
  return `${bench.share.url}/${path}?${sas}`;
}

async function answerOf({ request, headers = {}, body }: Asked, path: string): Promise<string> {
  const [method = "", asked = ""] = request.split(" ");
  const put = ([name, text]: [string, string]) => [name, text.startsWith("@") ? urlOf(text.slice(1) || path) : text];
  const sent = method === "PUT" ? { body: body ?? "" } : {};
  const given = { "x-ms-version": "2025-05-05", ...Object.fromEntries(Object.entries(headers).map(put)) };
  const answer = await clients.raw(method, asked.replace("$", path), { headers: given, ...sent });
  await answer.arrayBuffer();
  return answer.status < 300 ? "" : `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
}

/** Answers of all operations on files that this has prepared. */
async function answers(prepare: (path: string) => Promise<unknown>): Promise<Record<string, string>> {
  const told: Record<string, string> = {};
  for (const asked of table) {
    const path = `f${++made}`;
    await bench.file(path);
    for (const beside of ["into", "free", "mover"]) await bench.file(beside);
    await prepare(path);
    told[named(asked)] = await answerOf(asked, path);
  }
  return told;
}

const noCopy = "409 NoPendingCopyOperation";
/** What each operation answers; empty: it is done. */
const expected = (answer: (asked: Asked) => string): Record<string, string> =>
  Object.fromEntries(table.map((asked) => [named(asked), answer(asked) || (asked.operation === "AbortCopyFile" ? noCopy : "")]));

test("handles: the table of answers has every operation that has a file", () => {
  const ofFiles = fileOperationNames.filter((name) => fileAuthorizationOf(name).resourceType === "o" && !/Directory|Link/.test(name));
  assert.deepEqual([...new Set(table.map(({ operation }) => operation))].sort(), [...ofFiles].sort());
});

test("handles, nobody has the file open: every operation of the table is done", async () => {
  assert.deepEqual(
    await answers(async () => {}),
    expected(() => ""),
  );
});

for (const [denied, letter] of [
  [all, "everything"],
  [read, "reading"],
  [write, "writing"],
  [remove, "deleting"],
] as const) {
  test(`handles, a handle denies others ${letter}: exactly the operations that use it are SharingViolation`, async () => {
    const told = await answers((path) => bench.open(path, { access: read, shareMode: all & ~denied }));
    assert.deepEqual(
      told,
      expected(({ uses }) => ((uses & denied) === 0 ? "" : "409 SharingViolation")),
    );
  });
}

for (const exclusive of [true, false]) {
  test(`handles, a byte range is locked ${exclusive ? "exclusively" : "by a shared lock"}: what it protects is FileLockConflict`, async () => {
    const told = await answers(async (path) => {
      const handle = await bench.open(path, { access: read | write });
      const lock = { startBytes: 3n, endBytes: 5n, exclusive };
      unwrap(await bench.door.lock({ ...bench.of(handle), lock }, bench.options));
    });
    const isMet = ({ meets }: Asked): boolean => meets === "writes" || (meets === "reads" && exclusive);
    // Others may not keep away who writes.
    const answer = (asked: Asked) =>
      asked.operation === "LeaseFile" ? "409 SharingViolation" : isMet(asked) ? "409 FileLockConflict" : "";
    assert.deepEqual(told, expected(answer));
  });
}

test("handles, the file is marked for deletion: everything is DeletePending", async () => {
  const told = await answers(async (path) => {
    const handle = await bench.open(path, { access: remove, shareMode: none });
    unwrap(await bench.door.setDisposition({ ...bench.of(handle), deletePending: true }, bench.options));
  });
  assert.deepEqual(
    told,
    expected(() => "409 DeletePending"),
  );
});

test("handles, a file is leased by REST: it is opened for reading only", async () => {
  const file = await bench.file("leased");
  await file.getShareLeaseClient().acquireLease();
  for (const access of [write, remove, read | write]) assert.equal(await bench.code(bench.open("leased", { access })), "SharingViolation");
  await bench.open("leased", { access: read });
});
