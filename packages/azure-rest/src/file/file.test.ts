import assert from "node:assert/strict";
import { test } from "node:test";
import { rejected } from "../rest-error.ts";
import { parseTarget } from "../target.ts";
import { fileError } from "./errors.ts";
import { fileTime, parseFileLength, parseQuota, parseSmbProperties, parseWriteRange } from "./file-headers.ts";
import { fileOperationNames, recognizeFile } from "./operations.ts";
import { isSddl } from "./permissions.ts";
import { checkShareName, parseFileResource } from "./resource.ts";

const codeOf = (parsed: { ok: true; value: unknown } | { ok: false; error: { code: string } }) =>
  parsed.ok ? parsed.value : parsed.error.code;

function asked(method: string, path: string, headers: Record<string, string> = {}): unknown {
  const target = parseTarget(path, "acct.file.localhost", { hostSuffixes: ["file.localhost"] });
  return target.ok ? codeOf(recognizeFile(method, target.value, headers)) : target.error.code;
}

test("files: a request is told by method, path, restype, comp and headers", () => {
  assert.equal(asked("PUT", "/s?restype=share"), "CreateShare");
  assert.equal(asked("GET", "/s/d?restype=directory&comp=list"), "ListDirectoriesAndFiles");
  assert.equal(asked("GET", "/s?restype=directory"), "GetDirectoryProperties");
  assert.equal(asked("PUT", "/s/f?comp=range"), "PutRange");
  assert.equal(asked("PUT", "/s/f?comp=range", { "x-ms-copy-source": "http://x/" }), "PutRangeFromURL");
  assert.equal(asked("PUT", "/s/f", { "x-ms-copy-source": "http://x/" }), "CopyFile");
  assert.equal(asked("PUT", "/s/f?restype=hardlink"), "CreateHardLink");
  assert.equal(asked("HEAD", "/s/f"), "GetFileProperties");
  assert.equal(asked("GET", "/s%2Ff"), "GetFile", "the SDK for Java writes the source of a copy so");
  assert.equal(asked("GET", "/s%2f?restype=directory"), "GetDirectoryProperties");
  assert.equal(asked("GET", "/s/f?comp=none"), "InvalidQueryParameterValue");
  assert.equal(asked("BREW", "/s/f"), "InvalidHttpVerb");
  assert.equal(new Set(fileOperationNames).size, 45);
});

test("files: a path is divided at slashes, escaped ones too, and dots at the end of a name count only if asked for", () => {
  const path = (text: string, headers = {}) => codeOf(parseFileResource(text, headers));
  assert.deepEqual(path("s//a%20b/c...//"), { share: "s", path: ["a b", "c"] });
  assert.deepEqual(path("s/c..", { "x-ms-allow-trailing-dot": "true" }), { share: "s", path: ["c.."] });
  assert.deepEqual(path("s%2Fa%5cb"), { share: "s", path: ["a", "b"] });
  assert.deepEqual(path("s/../x"), { share: "s", path: ["..", "x"] }, "the tree refuses it");
  assert.deepEqual(path(""), { share: undefined, path: [] });
  assert.equal(path("s/%zz"), "InvalidUri");
  assert.deepEqual(
    ["abc", "a", "A--b", "a-b-c"].map((name) => codeOf(checkShareName(name))),
    ["abc", "OutOfRangeInput", "InvalidResourceName", "a-b-c"],
  );
});

test("files: attributes have one order and spelling, and times seven digits", () => {
  const smb = (headers: Record<string, string>, isDirectory = false) => codeOf(parseSmbProperties(headers, isDirectory));
  assert.deepEqual(smb({ "x-ms-file-attributes": "archive|READONLY" }), { attributes: "ReadOnly | Archive" });
  assert.deepEqual(smb({ "x-ms-file-attributes": "None" }), { attributes: "None" });
  assert.deepEqual(smb({ "x-ms-file-attributes": "None" }, true), { attributes: "Directory" });
  assert.equal(smb({ "x-ms-file-attributes": "Directory" }), "InvalidHeaderValue");
  assert.equal(smb({ "x-ms-file-attributes": "Sparse" }), "InvalidHeaderValue");
  assert.deepEqual(smb({ "x-ms-file-creation-time": "preserve", "x-ms-file-last-write-time": "Now" }), { lastWriteTime: "now" });
  assert.equal(smb({ "x-ms-file-creation-time": "yesterday" }), "InvalidHeaderValue");
  assert.equal(smb({ "x-ms-file-permission": "x", "x-ms-file-permission-key": "1*2" }), "InvalidHeaderValue");
  assert.deepEqual(smb({ "x-ms-file-permission": "inherit" }), {});
  assert.deepEqual(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.12Z", "2026-13-02T03:04:05Z", "2026-01-02"].map(fileTime), [
    "2026-01-02T03:04:05.0000000Z",
    "2026-01-02T03:04:05.1200000Z",
    undefined,
    undefined,
  ]);
});

test("files: lengths, quotas and ranges have the reference's bounds", () => {
  const length = (text: string) => codeOf(parseFileLength({ "x-ms-content-length": text }));
  assert.deepEqual(
    [length("0"), length(String(4 * 1024 ** 4)), length(String(4 * 1024 ** 4 + 1))],
    [0, 4 * 1024 ** 4, "InvalidHeaderValue"],
  );
  const quota = (text: string) => codeOf(parseQuota({ "x-ms-share-quota": text }));
  assert.deepEqual([quota("0"), quota("1"), quota("102400"), quota("102401")], ["InvalidHeaderValue", 1, 102_400, "InvalidHeaderValue"]);
  assert.deepEqual(codeOf(parseWriteRange({ "x-ms-range": "bytes=3-3" })), { startBytes: 3, endBytes: 4 });
  assert.equal(codeOf(parseWriteRange({ range: "bytes=3-" })), "InvalidHeaderValue");
  assert.equal(codeOf(parseWriteRange({})), "MissingRequiredHeader");
});

test("files: errors have the names that this service gives them", () => {
  assert.equal(fileError(rejected("ContainerNotFound").error).code, "ShareNotFound");
  assert.deepEqual(
    [fileError(rejected("InvalidPageRange").error).code, fileError(rejected("InvalidPageRange").error).status],
    ["InvalidRange", 416],
  );
  assert.equal(fileError(rejected("ServerBusy").error).code, "ServerBusy");
  assert.match(fileError(rejected("InvalidOperation").error).message, /^The handle was not opened for this/);
});

test("permissions: texts of security descriptors are known by their form", () => {
  for (const text of [
    "O:BAG:BAD:(A;;FA;;;SY)",
    "O:S-1-5-21-2127-1604G:S-1-5-21-2127-513D:AI(A;;FA;;;SY)(A;OICIIO;GXGR;;;S-1-5-21-39-62)S:NO_ACCESS_CONTROL",
    "D:P",
    'D:(XA;;FX;;;S-1-1-0;(@User.Title=="PM" && (@User.Division=="Finance" || @User.Division =="Sales")))',
    "o:syd:(a;;fa;;;sy)",
  ]) {
    assert.equal(isSddl(text), true, text);
  }
  for (const text of ["", "invalid", "D:(A;;FA;;;SY", "G:BAO:BA", "D:(A)x", `D:${"(".repeat(10_000)}`, `O:S-1${"-1".repeat(4_000)}!`]) {
    assert.equal(isSddl(text), false, text.slice(0, 20));
  }
});
