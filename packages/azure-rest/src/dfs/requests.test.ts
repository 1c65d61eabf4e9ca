/** Requests of Data Lake Storage: their values, what is refused by code and name, and errors. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withoutEmptyHeaders } from "../empty-values.ts";
import { isErrorCode } from "../error-codes.ts";
import type { HttpHeaders } from "../headers.ts";
import { rejected, restError } from "../rest-error.ts";
import { listsText, replacedLists, rootLists } from "./access/access-list.ts";
import { modeText } from "./access/rights.ts";
import { dataLakeError, dataLakeErrorJson } from "./errors.ts";
import { specialHeaders, specialParameters } from "./operation-rows.ts";
import { propertiesText } from "./properties.ts";
import { guid, outcome, parse, source, valueIs } from "./testing/ask.ts";

test("values: creation", () => {
  const headers = {
    "x-ms-content-type": "text/plain",
    "content-type": "application/octet-stream",
    "cache-control": "no-cache",
    "x-ms-cache-control": "max-age=1",
    "content-language": "de",
    "x-ms-properties": "a=MQ==, b_2=,C=/w==",
    "x-ms-permissions": "rwxr-x--T",
    "x-ms-umask": "0007",
    "x-ms-owner": guid.toUpperCase(),
    "x-ms-group": "$superuser",
    "x-ms-proposed-lease-id": `{${guid}}`,
    "x-ms-lease-duration": "-1",
    "x-ms-expiry-option": "RelativeToNow",
    "x-ms-expiry-time": "5000",
    "x-ms-encryption-context": "context",
    "if-none-match": "*",
  };
  const file = valueIs("CreateFile", "PUT /fsys/a?resource=file", headers);
  assert.deepEqual(
    { ...file.content },
    {
      contentType: "text/plain",
      contentEncoding: undefined,
      contentLanguage: "de",
      contentDisposition: undefined,
      cacheControl: "max-age=1",
      contentMd5: undefined,
    },
  );
  assert.ok(file.properties && file.ownership.permissions && file.umask);
  assert.deepEqual([...file.properties.keys()], ["a", "b_2", "C"]);
  assert.equal(propertiesText(file.properties), "a=MQ==,b_2=,C=/w==");
  assert.deepEqual([modeText(file.ownership.permissions), modeText(file.umask)], ["rwxr-x--T", "------rwx"]);
  assert.deepEqual([file.ownership.owner, file.ownership.group, file.ownership.lists], [guid, "$superuser", undefined]);
  assert.deepEqual(file.lease, { leaseId: guid, durationSeconds: -1 });
  assert.deepEqual(file.expiry, { option: "relativeToNow", timeMs: 5000 });
  assert.equal(file.encryptionContext, "context");
  assert.deepEqual(file.conditions, { ifNoneMatch: "*" });
  const bare = valueIs("CreateDirectory", "PUT /fsys/a?resource=directory");
  assert.deepEqual([bare.properties, bare.umask, bare.lease, bare.encryptionContext], [undefined, undefined, undefined, undefined]);
  const acl = "user::rwx,group::r-x,other::---,default:other::r--";
  const { lists } = valueIs("CreateDirectory", "PUT /fsys/a?resource=directory", { "x-ms-acl": acl }).ownership;
  assert.equal(
    lists && listsText(replacedLists(rootLists, lists)),
    `user::rwx,group::r-x,other::---,default:user::rwx,default:group::r-x,default:other::r--`,
  );
  for (const [wrong, expected] of [
    [{ "x-ms-acl": acl }, "400 InvalidHeaderValue x-ms-acl"],
    [{ "x-ms-acl": "user::rwx,group::r-x,other::---", "x-ms-permissions": "0750" }, "400 InvalidHeaderValue x-ms-permissions"],
    [{ "x-ms-umask": "27" }, "400 InvalidHeaderValue x-ms-umask"],
    [{ "x-ms-owner": "a,b" }, "400 InvalidHeaderValue x-ms-owner"],
    [{ "x-ms-group": "a b" }, "400 InvalidHeaderValue x-ms-group"],
    [{ "x-ms-lease-duration": "20" }, "400 MissingRequiredHeader x-ms-proposed-lease-id"],
    [{ "x-ms-proposed-lease-id": guid }, "400 MissingRequiredHeader x-ms-lease-duration"],
    [{ "x-ms-proposed-lease-id": guid, "x-ms-lease-duration": "14" }, "400 InvalidHeaderValue x-ms-lease-duration"],
    [{ "x-ms-expiry-time": "1" }, "400 MissingRequiredHeader x-ms-expiry-option"],
    [{ "x-ms-encryption-context": "x".repeat(1025) }, "400 InvalidHeaderValue x-ms-encryption-context"],
  ] as const) {
    assert.equal(outcome("PUT /fsys/a?resource=file", wrong), expected, JSON.stringify(wrong));
  }
  assert.equal(outcome("PUT /fsys/a?resource=file&mode=loose"), "400 InvalidQueryParameterValue mode");
});

test("values: properties are named values in base64, 8 KiB together", () => {
  for (const [text, expected] of [
    ["a=MQ==,A=MQ==", "400 InvalidHeaderValue x-ms-properties"],
    ["a", "400 InvalidHeaderValue x-ms-properties"],
    ["a=x", "400 InvalidHeaderValue x-ms-properties"],
    ["=MQ==", "400 InvalidPropertyName x-ms-properties"],
    ["a=MQ==,", "400 InvalidPropertyName x-ms-properties"],
    ["a-b=MQ==", "400 InvalidPropertyName x-ms-properties"],
    [`a=${"AAAA".repeat(2731)}`, "400 MetadataTooLarge"],
    [`a=${"AAAA".repeat(2730)}`, "SetPathProperties"],
  ] as const) {
    assert.equal(outcome("PATCH /fsys/a?action=setProperties", { "x-ms-properties": text }), expected, text.slice(0, 20));
  }
  const md5 = valueIs("SetPathProperties", "PATCH /fsys/a?action=setProperties", { "x-ms-content-md5": "AAEC" }).content.contentMd5;
  assert.deepEqual(md5, new Uint8Array([0, 1, 2]));
});

test("values: rename", () => {
  const headers = {
    "x-ms-rename-source": "/other/a%2Fb%3Fc/?sv=1&sig=secret",
    "x-ms-source-lease-id": guid,
    "x-ms-source-if-none-match": '"7"',
    "x-ms-source-if-unmodified-since": "Thu, 01 Jan 1970 00:00:01 GMT",
    "x-ms-lease-id": guid,
    "if-match": '"8"',
  };
  const rename = valueIs("RenamePath", "PUT /fsys/x?mode=legacy&continuation=t", headers);
  assert.deepEqual([rename.source.filesystem, rename.source.path], ["other", "a/b?c"]);
  assert.deepEqual(rename.source.query.get("sig"), ["secret"]);
  assert.deepEqual(rename.sourceConditions, { leaseId: guid, ifNoneMatch: '"7"', ifUnmodifiedSinceMs: 1000 });
  assert.deepEqual(rename.conditions, { leaseId: guid, ifMatch: '"8"' });
  assert.deepEqual([rename.mode, rename.continuation, rename.resourceType, rename.properties], ["legacy", "t", undefined, undefined]);
  const plain = valueIs("RenamePath", "PUT /fsys/x?resource=file", source);
  assert.deepEqual([plain.mode, plain.resourceType, plain.continuation], ["posix", "file", undefined]);
  for (const text of ["fsys/b", "/fsys", "/fsys/", "//b", "/", "https://h/fsys/b", "/fsys/%FF", "/FSYS/b", "/fsys/b%01", "/fsys/b?a=%FF"]) {
    assert.equal(outcome("PUT /fsys/x", { "x-ms-rename-source": text }), "400 InvalidSourceUri x-ms-rename-source", text);
  }
  const refused = parse("PUT /fsys/x", { "x-ms-rename-source": "/fsys?sv=1&sig=secret" });
  assert.ok(!refused.ok && !JSON.stringify(refused.error).includes("secret"), "a signature is not told");
  const empty = withoutEmptyHeaders({ "x-ms-rename-source": "" });
  assert.ok(!empty.ok && empty.error.details.HeaderName === "x-ms-rename-source", "else a file would be created");
});

test("values: append and flush", () => {
  const append = valueIs("AppendData", "PATCH /fsys/a?action=append&position=10&flush=true&close=TRUE", {
    "content-length": "5",
    "content-md5": "AAAAAAAAAAAAAAAAAAAAAA==",
    "x-ms-lease-action": "acquire-release",
    "x-ms-proposed-lease-id": guid,
    "x-ms-lease-duration": "15",
  });
  assert.deepEqual([append.position, append.lengthBytes, append.flush, append.close], [10, 5, true, true]);
  assert.deepEqual([append.md5?.length, append.crc64], [16, undefined]);
  assert.deepEqual(append.lease, { action: "acquire-release", leaseId: guid, durationSeconds: 15 });
  const flush = valueIs("FlushData", "PATCH /fsys/a?action=flush&position=9007199254740991&retainUncommittedData=true", {
    "x-ms-lease-action": "release",
    "x-ms-lease-id": guid,
    "cache-control": "of the connection",
    "x-ms-content-encoding": "gzip",
  });
  assert.deepEqual([flush.position, flush.close, flush.retainUncommittedData], [Number.MAX_SAFE_INTEGER, false, true]);
  assert.deepEqual([flush.lease, flush.conditions], [{ action: "release", leaseId: guid }, { leaseId: guid }]);
  assert.deepEqual([flush.content.contentEncoding, flush.content.cacheControl], ["gzip", undefined]);
  for (const [query, expected, headers] of [
    ["action=append", "400 MissingRequiredQueryParameter position"],
    ["action=flush", "400 MissingRequiredQueryParameter position"],
    ["action=append&position=-1", "400 InvalidQueryParameterValue position"],
    ["action=append&position=1e3", "400 InvalidQueryParameterValue position"],
    ["action=flush&position=9007199254740992", "400 InvalidQueryParameterValue position"],
    ["action=flush&position=1&close=yes", "400 InvalidQueryParameterValue close"],
    ["action=append&position=1&close=true", "400 InvalidQueryParameterValue close"],
    ["action=append&position=1", "400 InvalidHeaderValue x-ms-lease-action", { "x-ms-lease-action": "release", "x-ms-lease-id": guid }],
    ["action=append&position=1", "400 MissingRequiredHeader x-ms-lease-id", { "x-ms-lease-action": "auto-renew" }],
    ["action=append&position=1", "400 MissingRequiredHeader x-ms-proposed-lease-id", { "x-ms-lease-action": "acquire" }],
    ["action=append&position=1", "400 MissingRequiredHeader x-ms-lease-action", { "x-ms-proposed-lease-id": guid }],
    ["action=append&position=1", "400 InvalidHeaderValue x-ms-lease-action", { "x-ms-lease-action": "break" }],
    ["action=append&position=1", "400 InvalidMd5 content-md5", { "content-md5": "AAAA" }],
    ["action=append&position=1", "400 InvalidHeaderValue x-ms-content-crc64", { "x-ms-content-crc64": "AAAA" }],
    [
      "action=append&position=1",
      "400 BothCrc64AndMd5HeaderPresent",
      { "content-md5": "AAAAAAAAAAAAAAAAAAAAAA==", "x-ms-content-crc64": "AAAAAAAAAAA=" },
    ],
  ] as const) {
    assert.equal(outcome(`PATCH /fsys/a?${query}`, headers), expected, `${query} ${JSON.stringify(headers)}`);
  }
});

test("values: access control", () => {
  const request = "PATCH /fsys/a?action=setAccessControl";
  assert.equal(outcome(request), "400 MissingRequiredHeader x-ms-acl");
  const set = valueIs("SetAccessControl", request, { "x-ms-permissions": "0640", "x-ms-owner": "john@contoso", "if-match": '"1"' });
  assert.deepEqual([set.ownership.owner, set.ownership.permissions && modeText(set.ownership.permissions)], ["john@contoso", "rw-r-----"]);
  assert.equal(outcome(request, { "x-ms-acl": "owner::rwx" }), "400 InvalidHeaderValue x-ms-acl");
  const recursive = "PATCH /fsys/a?action=setAccessControlRecursive";
  const acl = `user:${guid}:r-x`;
  for (const [query, expected, list] of [
    ["", "400 MissingRequiredQueryParameter mode", acl],
    ["&mode=replace", "400 InvalidQueryParameterValue mode", acl],
    ["&mode=modify", "400 MissingRequiredHeader x-ms-acl", undefined],
    ["&mode=set", "400 InvalidHeaderValue x-ms-acl", acl],
    ["&mode=remove", "400 InvalidHeaderValue x-ms-acl", acl],
    ["&mode=modify", "400 InvalidHeaderValue x-ms-acl", `user:${guid}`],
    ["&mode=modify&maxRecords=0", "400 OutOfRangeQueryParameterValue maxrecords", acl],
    ["&mode=modify&forceFlag=1", "400 InvalidQueryParameterValue forceflag", acl],
  ] as const) {
    assert.equal(outcome(recursive + query, list === undefined ? {} : { "x-ms-acl": list }), expected, query);
  }
  const modify = valueIs("SetAccessControlRecursively", `${recursive}&mode=modify&forceFlag=true&maxRecords=9999&continuation=t`, {
    "x-ms-acl": acl,
  });
  assert.deepEqual([modify.force, modify.maxRecords, modify.continuation], [true, 2000, "t"]);
  assert.deepEqual(modify.change, { mode: "modify", entries: [{ scope: "access", kind: "user", id: guid, rights: 5 }] });
  const remove = valueIs("SetAccessControlRecursively", `${recursive}&mode=remove`, { "x-ms-acl": "default:group" });
  assert.deepEqual([remove.force, remove.maxRecords], [false, 2000]);
  assert.deepEqual(remove.change, { mode: "remove", names: [{ scope: "default", kind: "group", id: "" }] });
  assert.equal(valueIs("CheckAccess", "HEAD /fsys/a?action=checkAccess&fsAction=-wx").rights, 3);
  assert.equal(outcome("HEAD /fsys/a?action=checkAccess"), "400 MissingRequiredQueryParameter fsaction");
  assert.equal(outcome("HEAD /fsys/a?action=checkAccess&fsAction=7"), "400 InvalidQueryParameterValue fsaction");
});

test("values: lists", () => {
  const list = valueIs(
    "ListPaths",
    "GET /fsys?resource=filesystem&recursive=true&directory=%2Fa%2Fb%2F&maxResults=9000&upn=true&beginFrom=c/d&continuation=t",
  );
  assert.deepEqual(
    { ...list },
    { operation: "ListPaths", recursive: true, directory: "a/b", maxResults: 5000, upn: true, beginFrom: "c/d", continuation: "t" },
  );
  const few = valueIs("ListPaths", "GET /fsys?resource=filesystem&recursive=false&maxResults=7&beginFrom=c");
  assert.deepEqual([few.directory, few.maxResults, few.upn, few.beginFrom], ["", 7, false, "c"]);
  for (const [query, expected] of [
    ["", "400 MissingRequiredQueryParameter recursive"],
    ["&recursive=maybe", "400 InvalidQueryParameterValue recursive"],
    ["&recursive=false&beginFrom=c/d", "400 InvalidQueryParameterValue beginfrom"],
    ["&recursive=true&maxResults=0", "400 OutOfRangeQueryParameterValue maxresults"],
    ["&recursive=true&maxResults=-5", "400 OutOfRangeQueryParameterValue maxresults"],
    ["&recursive=true&maxResults=many", "400 InvalidQueryParameterValue maxresults"],
    ["&recursive=true&directory=a%01", "400 InvalidQueryParameterValue directory"],
  ] as const) {
    assert.equal(outcome(`GET /fsys?resource=filesystem${query}`), expected, query);
  }
  const filesystems = valueIs("ListFilesystems", "GET /?resource=account&prefix=a&maxResults=2&continuation=t");
  assert.deepEqual([filesystems.prefix, filesystems.maxResults, filesystems.continuation], ["a", 2, "t"]);
  const deleted = valueIs("ListDeletedPaths", "GET /fsys?restype=container&comp=list&showonly=deleted&prefix=a&delimiter=/");
  assert.deepEqual([deleted.list.prefix, deleted.list.delimiter, deleted.list.onlyDeleted], ["a", "/", true]);
});

test("values: leases, reads, deletions, undeletions, expiry", () => {
  const lease = (headers: HttpHeaders): string => outcome("POST /fsys/a", headers);
  assert.equal(lease({}), "400 MissingRequiredHeader x-ms-lease-action");
  assert.equal(lease({ "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15" }), "400 MissingRequiredHeader x-ms-proposed-lease-id");
  assert.equal(lease({ "x-ms-lease-action": "auto-renew", "x-ms-lease-id": guid }), "400 InvalidHeaderValue x-ms-lease-action");
  assert.equal(lease({ "x-ms-lease-action": "renew" }), "400 MissingRequiredHeader x-ms-lease-id");
  const broken = valueIs("LeasePath", "POST /fsys/a", { "x-ms-lease-action": "break", "x-ms-lease-break-period": "0" });
  assert.deepEqual([broken.lease.action, broken.lease.breakPeriodSeconds], ["break", 0]);
  const read = valueIs("ReadPath", "GET /fsys/a", { range: "bytes=5-9", "x-ms-range-get-content-md5": "true" });
  assert.deepEqual([read.range, read.rangeMd5], [{ startBytes: 5, endBytes: 10 }, true]);
  assert.equal(outcome("GET /fsys/a", { "x-ms-range-get-content-md5": "true" }), "400 InvalidHeaderValue x-ms-range-get-content-md5");
  const removal = valueIs("DeletePath", "DELETE /fsys/a?recursive=false&continuation=t");
  assert.deepEqual([removal.recursive, removal.paginated, removal.continuation], [false, false, "t"]);
  assert.equal(valueIs("DeletePath", "DELETE /fsys/a").recursive, undefined);
  const undelete = (text: string): string => outcome("PUT /fsys/a?comp=undelete", { "x-ms-undelete-source": text });
  assert.deepEqual(valueIs("UndeletePath", "PUT /fsys/a?comp=undelete", { "x-ms-undelete-source": "a%2Fb?deletionid=132" }).source, {
    path: "a/b",
    deletionId: "132",
  });
  assert.equal(valueIs("UndeletePath", "PUT /fsys/a?comp=undelete").source, undefined);
  for (const text of ["a", "?deletionid=1", "a?deletionid=x", "../a/b?deletionid=1", "%FF?deletionid=1"]) {
    assert.equal(undelete(text), "400 InvalidSourceUri x-ms-undelete-source", text);
  }
  assert.equal(outcome("PUT /fsys/a?comp=expiry"), "400 MissingRequiredHeader x-ms-expiry-option");
  const expiry = { "x-ms-expiry-option": "Absolute", "x-ms-expiry-time": "Thu, 01 Jan 1970 00:00:01 GMT" };
  assert.deepEqual(valueIs("SetPathExpiry", "PUT /fsys/a?comp=expiry", expiry).expiry, { option: "absolute", timeMs: 1000 });
});

test("errors: this service's names, and JSON", () => {
  assert.equal(dataLakeError(restError("BlobNotFound")).code, "PathNotFound");
  assert.deepEqual(
    [dataLakeError(restError("ContainerNotFound")).code, dataLakeError(restError("ContainerNotFound")).status],
    ["FilesystemNotFound", 404],
  );
  const other = restError("ConditionNotMet", {}, { status: 304 });
  assert.equal(dataLakeError(other), other);
  const error = rejected("PathNotFound").error;
  assert.deepEqual(JSON.parse(dataLakeErrorJson(error, "id", "2026-11-29T00:00:00.0000000Z")), {
    error: { code: "PathNotFound", message: "The specified path does not exist.\nRequestId:id\nTime:2026-11-29T00:00:00.0000000Z" },
  });
});

test("any request is answered, with a value or an error of the service", () => {
  const text = fc.string({ unit: "binary", maxLength: 30 });
  const queryNames = [...specialParameters, "restype", "comp", "resource", "action"];
  const values = fc.constantFrom(
    "true",
    "false",
    "file",
    "directory",
    "filesystem",
    "append",
    "flush",
    "setaccesscontrol",
    "set",
    "0",
    "-1",
    "5",
    "r-x",
    "a/b",
  );
  const pair = fc.tuple(fc.constantFrom(...queryNames), fc.oneof(values, text.map(encodeURIComponentOf))).map((parts) => parts.join("="));
  const path = fc
    .array(fc.oneof(fc.constantFrom("/", "fsys", "a", "..", "%2F", "%", "\\"), text), { maxLength: 6 })
    .map((parts) => parts.join(""));
  const name = fc.constantFrom(
    ...specialHeaders,
    "if-match",
    "x-ms-lease-id",
    "x-ms-source-lease-id",
    "content-length",
    "content-md5",
    "range",
    "x-http-method-override",
  );
  const value = fc.oneof(
    text,
    fc.constantFrom("acquire", "release", guid, "user::rwx,group::r-x,other::---", "/fsys/a", "0750", "a=MQ==", "PATCH", "0"),
  );
  const headers = fc.dictionary(name, value, { maxKeys: 6, noNullPrototype: true });
  const method = fc.constantFrom("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "BREW");
  fc.assert(
    fc.property(method, path, fc.array(pair, { maxLength: 5 }), headers, (verb, where, query, sent) => {
      const result = parse(`${verb} /${where}?${query.join("&")}`, sent);
      assert.ok(result.ok || (isErrorCode(result.error.code) && result.error.status >= 400));
    }),
    { numRuns: 1000 },
  );
});

/** Percent-encodes a text; one that is no Unicode stays as it is. */
function encodeURIComponentOf(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : text;
}
