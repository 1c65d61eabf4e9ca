/** Tests of what a door needs beside the parsers: whose a request is, needs of callers, lists as JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { permits } from "../auth/authorization.ts";
import type { HttpHeaders } from "../headers.ts";
import { parseTarget } from "../target.ts";
import { newestVersion } from "../version.ts";
import { dataLakeAuthorizationOf } from "./authorization.ts";
import { filesystemsJson, pathsJson } from "./lists-json.ts";
import { dataLakeOperationNames } from "./operation-rows.ts";
import { isDataLakeRequest } from "./operations.ts";
import { parseDataLakeResource } from "./resource.ts";
import { outcome, source } from "./testing/ask.ts";

function isOwn(request: string, headers: HttpHeaders = {}): boolean {
  const [method = "", path = ""] = request.split(/ (.*)/s);
  const target = parseTarget(`/account${path}`, "h:1", { hostSuffixes: [] });
  const resource = target.ok ? parseDataLakeResource(target.value.resource) : target;
  assert.ok(target.ok && resource.ok);
  return isDataLakeRequest(method, resource.value, target.value.query, headers);
}

test("dfs door: what only this service has is its own, what both have and what only the Blob service has is not", () => {
  const own = [
    "GET /?resource=account",
    "PUT /fs?resource=filesystem",
    "GET /fs?resource=filesystem&recursive=true",
    "PUT /fs/a?resource=file",
    "PATCH /fs/a?action=append&position=0",
    "DELETE /fs/a?recursive=true",
    "DELETE /fs/a",
    "POST /fs/a",
    "HEAD /fs/a?action=getStatus",
    "HEAD /fs/",
    "HEAD /fs/a",
  ];
  for (const request of own) assert.equal(isOwn(request), true, request);
  assert.equal(isOwn("PUT /fs/a", source), true);
  assert.equal(isOwn("PUT /fs/a?action=append", { "x-http-method-override": "PATCH" }), true);
  const others = ["GET /fs/a", "HEAD /fs", "PUT /fs/a", "PUT /fs?restype=container", "DELETE /fs?restype=container", "GET /?comp=list"];
  for (const request of [...others, "PUT /fs/a?comp=metadata", "PUT /fs/a?comp=lease"]) assert.equal(isOwn(request), false, request);
  assert.equal(isOwn("HEAD /fs/a", { accept: "application/xml" }), false);
});

test("dfs door: letters and roles that operations need", () => {
  for (const operation of dataLakeOperationNames) {
    const { accountSas, serviceSas, delegationSas, role, anonymous } = dataLakeAuthorizationOf(operation);
    assert.equal(anonymous, undefined, `${operation} lets nobody in without authorization`);
    const changes = !/^(List|Get|Read|Check)/.test(operation);
    for (const groups of [accountSas, serviceSas, delegationSas]) assert.equal(permits("rlef", groups) && changes, false, operation);
    assert.equal(role === "read", !changes, operation);
  }
  const renames = dataLakeAuthorizationOf("RenamePath");
  for (const letters of ["w", "d", "rlec"]) {
    for (const groups of [renames.accountSas, renames.serviceSas, renames.delegationSas])
      assert.equal(permits(letters, groups), false, letters);
  }
  assert.ok(permits("m", renames.serviceSas) && permits("wd", renames.delegationSas) && !permits("m", renames.accountSas));
  assert.equal(outcome("PUT /fsys/a", source), "RenamePath");
});

test("dfs door: lists have numbers and flags as texts, ETags without quotes, and isDirectory of directories only", () => {
  const shown = { etag: "0x8D", lastModifiedMs: 0, createdMs: 1, owner: "$superuser", group: "$superuser", permissions: "rw-r-----" };
  const paths = [
    { ...shown, name: "a", isDirectory: true, contentLengthBytes: 0 },
    { ...shown, name: "a/b", isDirectory: false, contentLengthBytes: 7 },
  ];
  const { paths: told } = JSON.parse(pathsJson(newestVersion, paths)) as { paths: Record<string, unknown>[] };
  const entry = {
    contentLength: "0",
    creationTime: "116444736000010000",
    etag: "0x8D",
    group: "$superuser",
    isDirectory: "true",
    lastModified: "Thu, 01 Jan 1970 00:00:00 GMT",
    name: "a",
    owner: "$superuser",
    permissions: "rw-r-----",
  };
  const { isDirectory: _, ...file } = { ...entry, contentLength: "7", name: "a/b" };
  assert.deepEqual(told, [entry, file]);
  assert.deepEqual(JSON.parse(filesystemsJson(newestVersion, [{ name: "f", etag: "0x1", lastModifiedMs: 0 }])), {
    filesystems: [{ etag: "0x1", lastModified: "Thu, 01 Jan 1970 00:00:00 GMT", name: "f" }],
  });
});
