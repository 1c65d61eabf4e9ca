/** A request of each operation of Data Lake Storage. What is seen is what docs/api/dfs.md says. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DataLakeOperationName, dataLakeOperationNames, dataLakeOperations } from "@stamp/azure-rest";
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";
import { ApiRecord, checkApiPage } from "../tools/api-table.ts";

const id = "11111111-1111-1111-1111-111111111111";

interface Step {
  readonly operation: DataLakeOperationName;
  readonly request: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly status: number;
}

const step = (
  operation: DataLakeOperationName,
  status: number,
  request: string,
  headers?: Record<string, string>,
  body?: string,
): Step => ({
  operation,
  status,
  request,
  ...(headers && { headers }),
  ...(body !== undefined && { body }),
});

const steps: readonly Step[] = [
  step("CreateFilesystem", 201, "PUT /raw?resource=filesystem", { "x-ms-properties": "a=eA==" }),
  step("ListFilesystems", 200, "GET /?resource=account"),
  step("SetFilesystemProperties", 200, "PATCH /raw?resource=filesystem", { "x-ms-properties": "a=eQ==" }),
  step("GetFilesystemProperties", 200, "HEAD /raw?resource=filesystem"),
  step("CreateDirectory", 201, "PUT /raw/d?resource=directory"),
  step("CreateFile", 201, "PUT /raw/d/f?resource=file"),
  step("AppendData", 202, "PATCH /raw/d/f?action=append&position=0", {}, "text"),
  step("FlushData", 200, "PATCH /raw/d/f?action=flush&position=4"),
  step("ReadPath", 200, "GET /raw/d/f"),
  step("SetPathProperties", 200, "PATCH /raw/d/f?action=setProperties", { "x-ms-properties": "a=eQ==" }),
  step("GetPathProperties", 200, "HEAD /raw/d/f"),
  step("GetPathStatus", 200, "HEAD /raw/d/f?action=getStatus"),
  step("SetAccessControl", 200, "PATCH /raw/d?action=setAccessControl", { "x-ms-permissions": "0750" }),
  step("SetAccessControlRecursively", 200, "PATCH /raw/d?action=setAccessControlRecursive&mode=modify", { "x-ms-acl": `user:${id}:r-x` }),
  step("GetAccessControl", 200, "HEAD /raw/d?action=getAccessControl"),
  step("CheckAccess", 200, "HEAD /raw/d?action=checkAccess&fsAction=r-x"),
  step("ListPaths", 200, "GET /raw?resource=filesystem&recursive=true"),
  step("RenamePath", 201, "PUT /raw/e", { "x-ms-rename-source": "/raw/d" }),
  step("LeasePath", 501, "POST /raw/e/f", { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": id }),
  step("SetPathExpiry", 501, "PUT /raw/e/f?comp=expiry", { "x-ms-expiry-option": "NeverExpire" }),
  step("UndeletePath", 501, "PUT /raw/e/f?comp=undelete", { "x-ms-undelete-source": "e/f?deletionid=1" }),
  step("ListDeletedPaths", 501, "GET /raw?restype=container&comp=list&showonly=deleted"),
  step("DeletePath", 200, "DELETE /raw/e?recursive=true"),
  step("DeleteFilesystem", 202, "DELETE /raw?resource=filesystem"),
];

const record = new ApiRecord();
let stamp: Awaited<ReturnType<typeof startStamp>>;
let clients: Clients;
before(async () => {
  stamp = await startStamp({ hierarchicalNamespace: true });
  clients = new Clients({ endpoint: new URL(stamp.endpoints.dfs).origin, accountName, accountKey, stop: async () => {} });
});
after(() => stamp?.stop());

/** `SetPathExpiry` as "Set Path Expiry". */
const titleOf = (operation: DataLakeOperationName): string => operation.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ");

test("dfs: each operation is served, or refused by name", async () => {
  record.part = "scripted.test.ts";
  for (const { operation, request, headers, body = "", status } of steps) {
    const [method = "", path = ""] = request.split(" ");
    const sent = ["PUT", "PATCH", "POST"].includes(method) ? { body } : {};
    const answer = await clients.raw(method, path, { headers: { "x-ms-version": "2025-05-05", ...headers }, ...sent });
    assert.equal(answer.status, status, `${request}: ${await answer.text()}`);
    record.saw(titleOf(operation), answer.status);
  }
});

test("docs/api/dfs.md says what was seen", () => {
  checkApiPage(
    {
      path: "docs/api/dfs.md",
      heading: "Data Lake Storage",
      about: [
        "One row per operation of Data Lake Storage, on an account with a hierarchical namespace. `path` is a file or",
        "directory, `root` the directory of a filesystem. What an operation does not take: `../design/data-lake.md`.",
      ].join("\n"),
      folder: "tests/datalake/",
      requests: dataLakeOperationNames.flatMap((operation) => {
        const served = steps.some((each) => each.operation === operation && each.status < 400);
        return dataLakeOperations[operation].requests.map((request) => ({ title: titleOf(operation), request, served }));
      }),
    },
    record,
  );
});
