/** Requests of Data Lake Storage: which operation each is, and which parameters and headers it may have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpHeaders } from "../headers.ts";
import { otherRequests } from "../other-services.ts";
import { parsed } from "../rest-error.ts";
import { newestVersion } from "../version.ts";
import { dataLakeOperationNames, dataLakeOperations, specialHeaders, specialParameters } from "./operation-rows.ts";
import { recognizeDataLake } from "./operations.ts";
import { type DataLakeResource, parseDataLakeResource } from "./resource.ts";
import { guid, outcome, parse, source } from "./testing/ask.ts";

test("operations: each is recognized, and the root is named with a slash behind the filesystem", () => {
  const table: readonly (readonly [request: string, operation: string, headers?: HttpHeaders])[] = [
    ["GET /?resource=account", "ListFilesystems"],
    ["PUT /fsys?resource=filesystem", "CreateFilesystem"],
    ["PUT /fsys/?resource=filesystem", "CreateFilesystem"],
    ["PATCH /fsys?resource=filesystem", "SetFilesystemProperties"],
    ["PUT /fsys?resource=filesystem", "SetFilesystemProperties", { "x-http-method-override": "PATCH" }],
    ["HEAD /fsys?resource=filesystem", "GetFilesystemProperties"],
    ["DELETE /fsys?resource=Filesystem", "DeleteFilesystem"],
    ["GET /fsys?resource=filesystem&recursive=false", "ListPaths"],
    ["GET /fsys?restype=container&comp=list&showonly=deleted", "ListDeletedPaths"],
    ["PUT /fsys/a?resource=file", "CreateFile"],
    ["PUT /fsys/a/b/?resource=directory", "CreateDirectory"],
    ["PUT /fsys/a", "RenamePath", source],
    ["PUT /fsys/a?resource=directory&mode=legacy", "RenamePath", source],
    ["PATCH /fsys/a?action=append&position=0", "AppendData"],
    ["POST /fsys/a?action=append&position=0", "AppendData", { "x-http-method-override": "patch" }],
    ["PATCH /fsys/a?action=flush&position=0", "FlushData"],
    ["PATCH /fsys/a?action=setProperties", "SetPathProperties"],
    ["PATCH /fsys/?action=setProperties", "SetPathProperties"],
    ["PATCH /fsys/a?action=setAccessControl", "SetAccessControl", { "x-ms-owner": guid }],
    ["PATCH /fsys//?action=setAccessControl", "SetAccessControl", { "x-ms-owner": guid }],
    ["PATCH /fsys/a?action=setAccessControlRecursive&mode=remove", "SetAccessControlRecursively", { "x-ms-acl": "mask" }],
    ["PATCH /fsys/?action=setAccessControlRecursive&mode=remove", "SetAccessControlRecursively", { "x-ms-acl": "mask" }],
    ["PUT /fsys/a?comp=expiry", "SetPathExpiry", { "x-ms-expiry-option": "NeverExpire" }],
    ["PUT /fsys/a?comp=undelete", "UndeletePath"],
    ["POST /fsys/a", "LeasePath", { "x-ms-lease-action": "break" }],
    ["GET /fsys/a", "ReadPath"],
    ["HEAD /fsys/a", "GetPathProperties"],
    ["HEAD /fsys/", "GetPathProperties"],
    ["HEAD /fsys/a?action=getStatus&upn=false", "GetPathStatus"],
    ["HEAD /fsys//?action=getStatus", "GetPathStatus"],
    ["HEAD /fsys/a?action=getAccessControl", "GetAccessControl"],
    ["HEAD /fsys/?action=getAccessControl", "GetAccessControl"],
    ["HEAD /fsys?action=getAccessControl", "GetAccessControl"],
    ["HEAD /fsys/a?action=checkAccess&fsAction=r-x", "CheckAccess"],
    ["DELETE /fsys/a", "DeletePath"],
    ["DELETE /fsys/a?recursive=true&paginated=true&continuation=x", "DeletePath"],
  ];
  for (const [request, operation, headers] of table) assert.equal(outcome(request, headers), operation, request);
  assert.deepEqual([...new Set(table.map(([, operation]) => operation))].sort(), [...dataLakeOperationNames].sort(), "every operation");
});

test("operations: every request that is refused by name today is one of them", () => {
  const words = (name: string): string => name.replace(/(?<=[a-z])(?=[A-Z])/g, " ");
  const ownTitle: Readonly<Record<string, string>> = { "Delete Directory": "Delete Path" };
  const rows = otherRequests().filter(({ service, title }) => service === "dfs" && title !== "Update Path");
  assert.ok(rows.length > 25);
  for (const { title, level, method, query, header } of rows) {
    const path = { account: undefined, root: "", path: "a" }[level];
    const asked = new Map(query.map(([name, value]) => [name, [value]]));
    const resource = { filesystem: path === undefined ? undefined : "fsys", path };
    const operation = recognizeDataLake(method, resource, asked, header === undefined ? {} : { [header]: "x" });
    assert.equal(operation.ok && words(operation.value), ownTitle[title] ?? title);
  }
});

test("operations: what has no row is told by what is wrong with it", () => {
  for (const [request, expected, headers] of [
    ["BREW /fsys", "400 InvalidHttpVerb"],
    ["GET /", "400 MissingRequiredQueryParameter resource"],
    ["GET /?resource=filesystem", "400 InvalidQueryParameterValue resource"],
    ["PUT /?resource=account", "405 UnsupportedHttpVerb"],
    ["POST /fsys?resource=filesystem", "405 UnsupportedHttpVerb"],
    ["HEAD /fsys", "400 MissingRequiredQueryParameter resource"],
    ["PATCH /fsys", "400 MissingRequiredQueryParameter resource"],
    ["PUT /fsys", "400 MissingRequiredQueryParameter resource"],
    ["DELETE /fsys/", "400 MissingRequiredQueryParameter resource"],
    ["PUT /fsys/?resource=directory", "400 InvalidQueryParameterValue resource"],
    ["PUT /fsys/", "400 MissingRequiredQueryParameter resource", source],
    ["PUT /fsys/a", "400 MissingRequiredQueryParameter resource"],
    ["PUT /fsys/a?resource=link", "400 InvalidQueryParameterValue resource"],
    ["PUT /fsys/a?resource=link", "400 InvalidQueryParameterValue resource", source],
    ["PUT /fsys/a?comp=tier", "400 InvalidQueryParameterValue comp"],
    ["PUT /fsys/a?comp=expiry&resource=file", "400 InvalidQueryParameterValue comp"],
    ["PATCH /fsys/a", "400 MissingRequiredQueryParameter action"],
    ["PATCH /fsys/a?action=truncate", "400 InvalidQueryParameterValue action"],
    ["HEAD /fsys/a?action=append", "400 InvalidQueryParameterValue action"],
    ["GET /fsys/a?resource=filesystem", "400 InvalidQueryParameterValue resource"],
    ["GET /fsys?restype=container&comp=list", "400 MissingRequiredQueryParameter showonly"],
    ["PUT /fsys/a?resource=file", "400 InvalidHeaderValue x-http-method-override", { "x-http-method-override": "DELETE" }],
    ["GET /fsys/a", "400 InvalidHeaderValue x-http-method-override", { "x-http-method-override": "PATCH" }],
    ["GET /f%FF/a", "400 InvalidUri"],
    ["GET /Fsys/a", "400 InvalidResourceName"],
    ["GET /fsys/a%01", "400 InvalidUri"],
    [`GET /fsys/${"a".repeat(1025)}`, "400 OutOfRangeInput"],
  ] as const) {
    assert.equal(outcome(request, headers), expected, request);
  }
});

test("resources: decoded once, canonical as the Blob service's are, without slashes at the ends of a path", () => {
  for (const [text, filesystem, path] of [
    ["", undefined, undefined],
    ["fsys", "fsys", undefined],
    ["fsys/", "fsys", ""],
    ["fsys//", "fsys", ""],
    ["fsys/%2F", "fsys", ""],
    ["fsys/a/b/", "fsys", "a/b"],
    ["fsys/a%2Fb", "fsys", "a/b"],
    ["fsys/a%5Cb/../c.", "fsys", "a/c"],
    ["fsys/%2561", "fsys", "%61"],
    ["fsys/a//b", "fsys", "a//b"],
  ] as const) {
    const resource = parseDataLakeResource(text);
    assert.deepEqual(resource, parsed<DataLakeResource>({ filesystem, path }), text);
  }
});

test("parameters and headers: what the operation does not take is refused by name, and so is what stands twice", () => {
  for (const [request, expected, headers] of [
    ["GET /fsys/a?position=1", "400 UnsupportedQueryParameter position"],
    ["PATCH /fsys/a?action=append&position=0&retainUncommittedData=true", "400 UnsupportedQueryParameter retainuncommitteddata"],
    ["PUT /fsys/a?resource=file&recursive=true", "400 UnsupportedQueryParameter recursive"],
    ["DELETE /fsys/a?recursive=true&recursive=false", "400 InvalidQueryParameterValue recursive"],
    ["PATCH /fsys/a?action=flush&position=1&action=append", "400 InvalidQueryParameterValue action"],
    ["PUT /fsys/a?resource=file&blobtype=appendblob", "501 NotImplemented"],
    ["GET /fsys/a?unknown=1&unknown=2", "ReadPath"],
    ["GET /fsys/a", "400 UnsupportedHeader x-ms-acl", { "x-ms-acl": "user::rwx,group::---,other::---" }],
    ["PUT /fsys/a?resource=directory", "400 UnsupportedHeader x-ms-expiry-option", { "x-ms-expiry-option": "NeverExpire" }],
    ["PUT /fsys/a?resource=file", "400 UnsupportedHeader x-ms-tags", { "x-ms-tags": "a=b" }],
    ["PUT /fsys/a", "400 UnsupportedHeader x-ms-umask", { ...source, "x-ms-umask": "0027" }],
    ["PATCH /fsys/a?action=setProperties", "400 UnsupportedHeader x-ms-permissions", { "x-ms-permissions": "0777" }],
    ["PATCH /fsys/a?action=append&position=0", "400 UnsupportedHeader x-ms-content-type", { "x-ms-content-type": "a/b" }],
    ["PATCH /fsys/a?action=append&position=0", "501 NotImplemented", { "x-ms-structured-body": "XSM/1.0" }],
    ["PUT /fsys?resource=filesystem", "400 ConditionHeadersNotSupported if-match", { "if-match": '"1"' }],
    ["PATCH /fsys/a?action=append&position=0", "400 ConditionHeadersNotSupported if-none-match", { "if-none-match": "*" }],
    ["PUT /fsys/a?resource=file", "400 UnsupportedHeader x-ms-source-if-match", { "x-ms-source-if-match": '"1"' }],
    ["PUT /fsys/a?resource=file", "400 InvalidHeaderValue if-match", { "if-match": '"1","2"' }],
    ["GET /fsys/a", "ReadPath", { "if-match": '"1","2"', "x-ms-client-request-id": "x", "x-ms-version": newestVersion }],
    [
      "PATCH /fsys/a?action=setAccessControlRecursive&mode=set",
      "400 UnsupportedHeader x-ms-lease-id",
      { "x-ms-acl": "x", "x-ms-lease-id": guid },
    ],
    ["PUT /fsys/a?resource=file", "400 ContentLengthMustBeZero", { "content-length": "1" }],
    ["PATCH /fsys/a?action=flush&position=0", "400 ContentLengthMustBeZero", { "content-length": "1" }],
    ["PATCH /fsys/a?action=append&position=0", "AppendData", { "content-length": "1" }],
  ] as const) {
    assert.equal(outcome(request, headers), expected, `${request} ${JSON.stringify(headers)}`);
  }
  const noLength = parse("PATCH /fsys/a?action=append&position=0");
  assert.ok(!noLength.ok && noLength.error.code === "MissingContentLengthHeader");
});

test("parameters and headers: an operation refuses every one that only others have", () => {
  const requests: Readonly<Record<string, string>> = Object.fromEntries(
    dataLakeOperationNames.map((name) => {
      const [level = "", method = "", ...query] = (dataLakeOperations[name].requests[0] as string).split(" ");
      return [name, `${method} ${{ account: "/", filesystem: "/fsys", root: "/fsys/", path: "/fsys/a" }[level]}?${query.join("&")}`];
    }),
  );
  for (const name of dataLakeOperationNames) {
    const row = dataLakeOperations[name];
    const own = name === "RenamePath" ? source : {};
    for (const header of specialHeaders) {
      if (row.headers?.includes(header) || header === "x-ms-rename-source") continue;
      assert.equal(outcome(requests[name] as string, { ...own, [header]: "x" }), `400 UnsupportedHeader ${header}`, name);
    }
    for (const parameter of specialParameters) {
      if (row.parameters?.includes(parameter)) continue;
      assert.equal(outcome(`${requests[name]}&${parameter}=x`, own), `400 UnsupportedQueryParameter ${parameter}`, name);
    }
  }
});
