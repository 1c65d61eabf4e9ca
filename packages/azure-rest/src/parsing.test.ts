import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import { BlockListReader, blockListBytesMax, parseBlockList } from "./blob/block-list-xml.ts";
import { blobOperationNames } from "./blob/operation-rows.ts";
import { recognizeBlob } from "./blob/operations.ts";
import { parsePageRange } from "./blob/page-headers.ts";
import { type BlobResource, checkNames, parseBlobResource } from "./blob/resource.ts";
import { parseSourceConditions, parseSourceRange } from "./blob/sources/copy-headers.ts";
import { parseTier } from "./blob/state-headers.ts";
import { checkUnsupported } from "./blob/unsupported.ts";
import { fitsIfRange, parseConditions } from "./conditions.ts";
import { isCivilDate, parseHttpDate, parseRfc1123 } from "./dates.ts";
import { parseMetadata, parseRange } from "./headers.ts";
import { allParsed, type Parsed, parsed, reasonPhraseOf, rejected, restErrorOfService } from "./rest-error.ts";
import { parseTarget, type Target } from "./target.ts";
import { bodyLimitsOf, etagHeader, isVersion, newestVersion, parseVersion } from "./version.ts";
import { xmlTokenBytesMax } from "./xml/xml-reader.ts";

const options = { hostSuffixes: ["blob.localhost", "blob.core.windows.net"] };
const at = (target: string, host = "127.0.0.1:10000"): Parsed<Target & BlobResource> => {
  const parsed = parseTarget(target, host, options);
  if (!parsed.ok) return parsed;
  const resource = parseBlobResource(parsed.value);
  return resource.ok ? { ok: true, value: { ...parsed.value, ...resource.value } } : resource;
};
const codeOf = (result: Parsed<unknown>): string => (result.ok ? "ok" : result.error.code);

function value<T>(result: Parsed<T>): T {
  assert.ok(result.ok, codeOf(result));
  return result.value;
}

test("the account is in the path, or in the host when its suffix is a configured one", () => {
  const path = value(at("/acct/c/a/b?comp=metadata"));
  assert.deepEqual([path.account, path.container, path.blob, path.addressing], ["acct", "c", "a/b", "path"]);
  const host = value(at("/c/a/b", "acct.blob.localhost:10000"));
  assert.deepEqual([host.account, host.container, host.blob, host.addressing], ["acct", "c", "a/b", "host"]);
  const other = value(at("/c2c/x/y", "acct.blob.elsewhere"));
  assert.equal(other.account, "c2c");
});

test("one segment is a container where the query says so, else a blob of $root", () => {
  assert.deepEqual(value(at("/acct")).container, undefined);
  assert.deepEqual(value(at("/acct/")).container, undefined);
  assert.deepEqual([value(at("/acct/x?restype=container")).container, value(at("/acct/x?restype=container")).blob], ["x", undefined]);
  assert.deepEqual([value(at("/acct/x")).container, value(at("/acct/x")).blob], ["$root", "x"]);
});

test("names are decoded once, and must be UTF-8", () => {
  assert.equal(value(at("/acct/c/%2541")).blob, "%41");
  assert.equal(value(at("/acct/c/a+b")).blob, "a+b");
  assert.equal(value(at("/acct/c/a%2Fb")).blob, "a/b");
  for (const bad of ["/acct/c/%", "/acct/c/%G0", "/acct/c/%C3", "/acct/c/%ED%A0%80"]) assert.equal(codeOf(at(bad)), "InvalidUri", bad);
});

test("the secondary location of an account is named in the path and in the host, and the account is the part before", () => {
  for (const result of [at("/acct-secondary/c/b"), at("/c/b", "acct-secondary.blob.localhost")]) {
    const { account, secondary, container, blob } = value(result);
    assert.deepEqual([account, secondary, container, blob], ["acct", true, "c", "b"]);
  }
  assert.equal(value(at("/acct/c/b")).secondary, undefined);
  for (const bad of ["/-secondary/c/b", "/ab-secondary/c/b", "/acct-secondary-secondary/c/b"])
    assert.equal(codeOf(at(bad)), "InvalidUri", bad);
});

test("container names follow the rules of the service", () => {
  const check = (name: string): string => codeOf(checkNames({ ...value(at("/acct")), container: name }));
  for (const good of ["abc", "a-b-c", "0a0", "$root", "$web", "$logs", "a".repeat(63)]) assert.equal(check(good), "ok", good);
  assert.equal(check("$blobchangefeed"), "NotImplemented");
  for (const bad of ["A", "-ab", "ab-", "a--b", "a_b", "a.b", "$other", ""]) assert.equal(check(bad), "InvalidResourceName", bad);
  for (const length of ["ab", "a".repeat(64)]) assert.equal(check(length), "OutOfRangeInput", length);
});

test("each operation is recognized by its row, and what is in none is told apart", () => {
  const asked = (method: string, target: string, headers: Record<string, string> = {}): string => {
    const result = recognizeBlob(method, value(at(target)), headers);
    return result.ok ? result.value : result.error.code;
  };
  const seen = new Set([
    asked("GET", "/acct?comp=list"),
    asked("GET", "/acct?restype=service&comp=properties"),
    asked("PUT", "/acct?restype=service&comp=properties"),
    asked("GET", "/acct?restype=service&comp=stats"),
    asked("POST", "/acct?restype=service&comp=userdelegationkey"),
    asked("GET", "/acct/c?restype=container&comp=acl"),
    asked("PUT", "/acct/c?restype=container&comp=acl"),
    asked("HEAD", "/acct?restype=account&comp=properties"),
    asked("PUT", "/acct/c?restype=container"),
    asked("HEAD", "/acct/c?restype=container"),
    asked("GET", "/acct/c?restype=container&comp=metadata"),
    asked("PUT", "/acct/c?restype=container&comp=metadata"),
    asked("DELETE", "/acct/c?restype=container"),
    asked("GET", "/acct/c?restype=container&comp=list"),
    asked("PUT", "/acct/c/b"),
    asked("GET", "/acct/c/b"),
    asked("HEAD", "/acct/c/b"),
    asked("HEAD", "/acct/c/b?comp=metadata"),
    asked("PUT", "/acct/c/b?comp=metadata"),
    asked("PUT", "/acct/c/b?comp=properties"),
    asked("DELETE", "/acct/c/b"),
    asked("PUT", "/acct/c/b?comp=block&blockid=AA"),
    asked("PUT", "/acct/c/b?comp=blocklist"),
    asked("GET", "/acct/c/b?comp=blocklist"),
    asked("PUT", "/acct/c/b?comp=appendblock"),
    asked("PUT", "/acct/c/b?comp=seal"),
    asked("PUT", "/acct/c/b?comp=page"),
    asked("GET", "/acct/c/b?comp=pagelist"),
    asked("POST", "/acct?comp=batch"),
    asked("PUT", "/acct/c/b?comp=copy&copyid=x"),
    asked("PUT", "/acct/c/b", { "x-ms-copy-source": "u" }),
    asked("PUT", "/acct/c/b", { "x-ms-copy-source": "u", "x-ms-requires-sync": "true" }),
    asked("PUT", "/acct/c/b", { "x-ms-copy-source": "u", "x-ms-blob-type": "BlockBlob" }),
    asked("PUT", "/acct/c/b?comp=block", { "x-ms-copy-source": "u" }),
    asked("PUT", "/acct/c/b?comp=appendblock", { "x-ms-copy-source": "u" }),
    asked("PUT", "/acct/c/b?comp=page", { "x-ms-copy-source": "u" }),
    asked("POST", "/acct/c?restype=container&comp=batch"),
    asked("PUT", "/acct/c?restype=container&comp=lease"),
    asked("PUT", "/acct/c?restype=container&comp=undelete"),
    asked("GET", "/acct?comp=blobs&where=x"),
    asked("GET", "/acct/c?restype=container&comp=blobs"),
    asked("PUT", "/acct/c/b?comp=lease"),
    asked("PUT", "/acct/c/b?comp=snapshot"),
    asked("PUT", "/acct/c/b?comp=undelete"),
    asked("PUT", "/acct/c/b?comp=tier"),
    asked("PUT", "/acct/c/b?comp=tags"),
    asked("GET", "/acct/c/b?comp=tags&snapshot=2020"),
    asked("PUT", "/acct/c/b?comp=expiry"),
    asked("PUT", "/acct/c/b?comp=immutabilitypolicies"),
    asked("DELETE", "/acct/c/b?comp=immutabilitypolicies"),
    asked("PUT", "/acct/c/b?comp=legalhold"),
  ]);
  assert.deepEqual([...seen].sort(), [...blobOperationNames].sort());
  assert.equal(asked("POST", "/acct/c/b?comp=query"), "NotImplemented");
  assert.equal(asked("POST", "/acct/c/b"), "UnsupportedHttpVerb");
  assert.equal(asked("BREW", "/acct/c/b"), "InvalidHttpVerb");
  assert.equal(asked("GET", "/acct/c/b?comp=constructor"), "InvalidQueryParameterValue");
});

test("headers that would change the meaning are 501, others are let through", () => {
  const check = (name: string, text = "x"): string => codeOf(checkUnsupported("PutBlob", { "x-ms-blob-type": "BlockBlob", [name]: text }));
  assert.equal(check("x-ms-structured-body"), "NotImplemented");
  for (const name of ["x-ms-date", "x-ms-meta-tags", "x-ms-blob-content-type", "x-ms-lease-id", "user-agent"])
    assert.equal(check(name), "ok", name);
  assert.equal(check("x-ms-blob-type", "HeapBlob"), "InvalidHeaderValue");
  assert.equal(check("x-ms-blob-content-length", "512"), "ok");
  assert.equal(check("x-ms-page-write", "update"), "UnsupportedHeader");
  assert.equal(check("x-ms-lease-action", "acquire"), "UnsupportedHeader");
  assert.equal(check("x-ms-tags", "a=b"), "ok");
  assert.equal(codeOf(checkUnsupported("DeleteBlob", { "x-ms-delete-snapshots": "include" })), "ok");
  assert.equal(codeOf(checkUnsupported("DeleteBlob", { "x-ms-delete-snapshots": "some" })), "InvalidHeaderValue");
});

test("metadata: names are identifiers, 8 KiB together", () => {
  assert.deepEqual({ ...value(parseMetadata({ "x-ms-meta-a_1": " v ", other: "x" }, undefined)) }, { a_1: "v" });
  assert.equal(codeOf(parseMetadata({ "x-ms-meta-": "v" }, undefined)), "EmptyMetadataKey");
  for (const name of ["1a", "a-b", "a.b", "ä"])
    assert.equal(codeOf(parseMetadata({ [`x-ms-meta-${name}`]: "v" }, undefined)), "InvalidMetadata", name);
  for (const sent of ["ü", "\u00a0v", "v\u00a0", "\u00a0"])
    assert.equal(codeOf(parseMetadata({ "x-ms-meta-a": sent }, undefined)), "InvalidMetadata");
  assert.equal(codeOf(parseMetadata({ "x-ms-meta-a": "v".repeat(8191) }, undefined)), "ok");
  assert.equal(codeOf(parseMetadata({ "x-ms-meta-a": "v".repeat(8192) }, undefined)), "MetadataTooLarge");
  assert.deepEqual(Object.keys(value(parseMetadata({ "x-ms-meta-__proto__": "v" }, undefined))), ["__proto__"]);
});

test("metadata: names as they were sent, each once", () => {
  const headers = { "x-ms-meta-name": "1", "x-ms-meta-n": "2" };
  const sent = ["X-Ms-Meta-Name", "1", "x-ms-meta-N", "2", "x-ms-meta-other-length", "3"];
  assert.deepEqual({ ...value(parseMetadata(headers, sent)) }, { Name: "1", N: "2" });
  assert.equal(codeOf(parseMetadata({ "x-ms-meta-a": "1, 2" }, ["x-ms-meta-a", "1", "X-MS-META-A", "2"])), "InvalidMetadata");
});

test("reason phrases: one line of printable ASCII, bounded", () => {
  assert.equal(reasonPhraseOf({ message: "Not there.\nRequestId:1" }), "Not there.");
  assert.equal(reasonPhraseOf({ message: "a\r\u0000é\u{1f600}" }), "a?????");
  assert.equal(reasonPhraseOf({ message: "x".repeat(10_000) }).length, 256);
  assert.equal(reasonPhraseOf({ message: "" }), "");
});

test("tiers: Smart is a feature that is not here, other names are none", () => {
  assert.equal(codeOf(parseTier({ "x-ms-access-tier": "Smart" })), "NotImplemented");
  assert.equal(codeOf(parseTier({ "x-ms-access-tier": "Smarter" })), "InvalidHeaderValue");
});

test("ranges: two forms; what is neither is ignored, in either header", () => {
  assert.deepEqual(parseRange({ range: "bytes=0-0" }), { startBytes: 0, endBytes: 1 });
  assert.deepEqual(parseRange({ range: "Bytes=7-" }), { startBytes: 7 });
  assert.deepEqual(parseRange({ range: "bytes=0-1", "x-ms-range": "bytes=2-3" }), { startBytes: 2, endBytes: 4 });
  assert.equal(parseRange({ range: "bytes=0-1", "x-ms-range": "bytes=-3" }), undefined, "x-ms-range counts, whatever is in it");
  assert.equal(parseRange({}), undefined);
  for (const bad of ["bytes=-5", "bytes=2-1", "bytes=0-1,3-4", "items=0-1", "bytes=", "bytes=x-", "bytes 0-1", ""]) {
    assert.equal(parseRange({ range: bad }), undefined, bad);
    assert.equal(parseRange({ "x-ms-range": bad }), undefined, bad);
  }
  const far = "9".repeat(30);
  assert.deepEqual(parseRange({ range: `bytes=7-${far}` }), { startBytes: 7 });
  assert.deepEqual(parseRange({ range: `bytes=${far}-${far}` }), { startBytes: Number.MAX_SAFE_INTEGER });
});

test("ranges: without an end since 2011-08-18", () => {
  assert.deepEqual(parseRange({ range: "bytes=7-" }, "2011-08-18"), { startBytes: 7 });
  assert.equal(parseRange({ range: "bytes=7-" }, "2009-09-19"), undefined);
  assert.deepEqual(parseRange({ range: "bytes=7-8" }, "2009-09-19"), { startBytes: 7, endBytes: 9 });
});

test("ranges: of pages and of sources, what can't be read is refused", () => {
  assert.deepEqual(value(parsePageRange({ range: "bytes=512-1023" })), { startBytes: 512, endBytes: 1024 });
  assert.equal(codeOf(parsePageRange({})), "MissingRequiredHeader");
  for (const bad of ["bytes=0-", "bytes=0-510", "bytes=1-512", "bytes=-512", "x"]) {
    assert.equal(codeOf(parsePageRange({ "x-ms-range": bad })), "InvalidHeaderValue", bad);
  }
  assert.deepEqual(value(parseSourceRange({ "x-ms-source-range": "bytes=1-" })), { startBytes: 1 });
  assert.equal(codeOf(parseSourceRange({ "x-ms-source-range": "bytes=-1" })), "InvalidHeaderValue");
});

test("conditions: three forms of dates; of HTTP's headers what is no date is ignored, of the service's own it is refused", () => {
  const ms = 784_111_777_000;
  for (const date of ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]) {
    assert.deepEqual(value(parseConditions({ "if-modified-since": date })), { ifModifiedSinceMs: ms });
    assert.deepEqual(value(parseConditions({ "if-unmodified-since": ` ${date} ` })), { ifUnmodifiedSinceMs: ms });
    assert.deepEqual(value(parseSourceConditions({ "x-ms-source-if-modified-since": date })), { ifModifiedSinceMs: ms });
    assert.deepEqual(value(parseConditions({ "x-ms-blob-if-modified-since": date }, "x-ms-blob-")), { ifModifiedSinceMs: ms });
    assert.equal(codeOf(parseConditions({ "if-modified-since": `${date}, ${date}` })), "InvalidHeaderValue");
    assert.equal(codeOf(parseConditions({ "if-unmodified-since": `${date}, yesterday` })), "InvalidHeaderValue");
  }
  for (const bad of ["yesterday", "2020-01-01T00:00:00Z", "Mon, 06 Nov 1994 08:49:37 GMT", "784111777", ","]) {
    assert.deepEqual(value(parseConditions({ "if-modified-since": bad, "if-unmodified-since": bad, "if-match": "*" })), { ifMatch: "*" });
    assert.equal(codeOf(parseSourceConditions({ "x-ms-source-if-unmodified-since": bad })), "InvalidHeaderValue");
    assert.equal(codeOf(parseConditions({ "x-ms-blob-if-unmodified-since": bad }, "x-ms-blob-")), "InvalidHeaderValue");
  }
  assert.equal(codeOf(parseSourceConditions({ "x-ms-source-lease-id": "x" })), "InvalidHeaderValue");
});

test("If-Range: the strong ETag or the very date", () => {
  const object = { etag: '"0x8D0000000000001"', lastModifiedMs: 784_111_777_000 };
  const fits = (text: string) => fitsIfRange(text, object);
  assert.deepEqual([fits(object.etag), fits(` ${object.etag} `), fits("Sunday, 06-Nov-94 08:49:37 GMT")], [true, true, true]);
  for (const other of [`W/${object.etag}`, '"0x8D0000000000002"', "*", "0x8D0000000000001", "Sun, 06 Nov 1994 08:49:38 GMT", "x", ""]) {
    assert.equal(fits(other), false, other);
  }
});

test("block lists keep order and source; everything else is refused", () => {
  const parse = (xml: string) => parseBlockList(new TextEncoder().encode(xml));
  const items = value(
    parse(`<?xml version="1.0" encoding="utf-8"?>
<BlockList>
  <Latest>QQ==</Latest><Committed>Qg==</Committed>
  <Uncommitted>QQ==</Uncommitted>
</BlockList>`),
  );
  assert.deepEqual(
    items.map((item) => [String.fromCharCode(...item.blockId), item.source]),
    [
      ["A", "latest"],
      ["B", "committed"],
      ["A", "uncommitted"],
    ],
  );
  assert.deepEqual(value(parse("<BlockList/>")), []);
  assert.equal(codeOf(parse('<!DOCTYPE a [<!ENTITY b "c">]><BlockList/>')), "InvalidXmlDocument");
  assert.equal(codeOf(parse("<BlockList><Other>QQ==</Other></BlockList>")), "UnsupportedXmlNode");
  assert.equal(codeOf(parse(`<BlockList>${"<Latest>QQ==</Latest>".repeat(50_001)}</BlockList>`)), "BlockListTooLong");
});

test("block lists are XML 1.0: references, CDATA, comments, instructions, a mark of the encoding; white space around an id is dropped", () => {
  for (const xml of [
    "<BlockList><Latest>YQ&#61;&#x3d;</Latest></BlockList>",
    "<BlockList><Latest><![CDATA[YQ==]]></Latest></BlockList>",
    "<BlockList><Latest>Y<!-- of one byte --><![CDATA[Q=]]>=</Latest></BlockList>",
    "<BlockList><Latest>Y<?what is this?>Q==</Latest><?and this?><!-- and that --></BlockList><!-- behind it -->\n",
    "\ufeff<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\r\n<BlockList >\r\n\t<Latest\n>\r\n YQ== \t</Latest\r\n></BlockList\t>",
    '<BlockList a="1" b=\'>\'><Latest xmlns="x">YQ==</Latest></BlockList>',
  ]) {
    assert.deepEqual(value(parseBlockList(utf8(xml))), [{ blockId: utf8("a"), source: "latest" }], xml);
  }
  for (const [xml, code] of [
    ["<BlockList><Latest><![CDATA[YQ&#61;=]]></Latest></BlockList>", "InvalidXmlNodeValue"],
    ["<BlockList><Latest>&amp;#81;Q==</Latest></BlockList>", "InvalidXmlNodeValue"],
    ["<BlockList><Latest>Y Q==</Latest></BlockList>", "InvalidXmlNodeValue"],
    ["<BlockList><Latest>YQ==<b/></Latest></BlockList>", "InvalidXmlNodeValue"],
    ["<BlockList><Latest/></BlockList>", "InvalidXmlNodeValue"],
    [`<BlockList><Latest>${"QUFB".repeat(22)}</Latest></BlockList>`, "InvalidXmlNodeValue"],
    ["<BlockList>YQ==</BlockList>", "UnsupportedXmlNode"],
    ["<BlockList><latest>YQ==</latest></BlockList>", "UnsupportedXmlNode"],
    ["<BlockList><toString>YQ==</toString></BlockList>", "UnsupportedXmlNode"],
    ["<Blocks><Latest>YQ==</Latest></Blocks>", "InvalidXmlDocument"],
    ["<BlockList><Latest>YQ==</BlockList></Latest>", "InvalidXmlDocument"],
    ["<BlockList><Latest>YQ==</Latest>", "InvalidXmlDocument"],
    ["<BlockList></BlockList><BlockList/>", "InvalidXmlDocument"],
    ["<BlockList></BlockList>x", "InvalidXmlDocument"],
    ["<BlockList><Latest>&nbsp;</Latest></BlockList>", "InvalidXmlDocument"],
    ["<BlockList><Latest>&constructor;</Latest></BlockList>", "InvalidXmlDocument"],
    ["<BlockList><Latest>&#xd800;</Latest></BlockList>", "InvalidXmlDocument"],
    ["<BlockList><Latest>&#8;</Latest></BlockList>", "InvalidXmlDocument"],
    ["<?xml version='1.1'?><BlockList><Latest>&#8;</Latest></BlockList>", "InvalidXmlDocument"],
    ["<BlockList><Latest>\u0008</Latest></BlockList>", "InvalidXmlDocument"],
    ['<BlockList a="1" a="2"/>', "InvalidXmlDocument"],
    ["", "InvalidXmlDocument"],
    [" \n", "InvalidXmlDocument"],
  ] as const) {
    assert.equal(codeOf(parseBlockList(utf8(xml))), code, xml);
  }
  assert.equal(codeOf(parseBlockList(Uint8Array.of(...utf8("<BlockList>"), 0xff))), "InvalidXmlDocument");
});

test("block lists: cut anywhere, into pieces of any size, a list is read the same", () => {
  const xml = utf8(
    "\ufeff<?xml version='1.0'?><BlockList><!-- é\u{1f600} --><Latest>YQ&#61;=</Latest>\r\n<Committed><![CDATA[Yg==]]></Committed></BlockList>",
  );
  const whole = value(parseBlockList(xml));
  for (let size = 1; size < xml.length; size++) {
    const reader = new BlockListReader();
    for (let at = 0; at < xml.length; at += size) assert.equal(reader.push(xml.subarray(at, at + size)), undefined, `pieces of ${size}`);
    assert.deepEqual(value(reader.end()), whole);
  }
});

test("block lists: the first thing that is wrong ends the reading, whatever follows", () => {
  const piece = utf8("<Latest>QUFB</Latest>".repeat(1_000));
  const reader = new BlockListReader();
  assert.equal(reader.push(utf8("<BlockList>")), undefined);
  for (let i = 0; i < 50; i++) assert.equal(reader.push(piece), undefined);
  assert.equal(reader.push(utf8("<Latest>"))?.code, "BlockListTooLong");
  const wrong = new BlockListReader();
  assert.equal(wrong.push(utf8("<BlockList><Earliest>"))?.code, "UnsupportedXmlNode");
  const large = new BlockListReader();
  assert.equal(large.push(utf8("<BlockList>")), undefined);
  const comment = utf8(`<!--${"x".repeat(xmlTokenBytesMax - 20)}-->`);
  for (let i = 0; i < blockListBytesMax / xmlTokenBytesMax; i++) assert.equal(large.push(comment), undefined);
  assert.equal(large.push(comment)?.code, "RequestBodyTooLarge");
  const shown = parseBlockList(utf8(`<BlockList><Latest>${"QUFB".repeat(250_000)}</Latest></BlockList>`));
  assert.ok(!shown.ok && (shown.error.details.XmlNodeValue?.length ?? 0) === 1_024);
});

test("XML: a token that never ends is refused at 512 KiB, a tag at 256 attributes", () => {
  const piece = utf8("x".repeat(16 * 1024));
  for (const begin of [
    "<BlockList><Latest>",
    "<BlockList><!-- ",
    "<BlockList><?p ",
    '<BlockList a="',
    "<BlockList><",
    "<!DOCTYPE a ['",
    "<BlockList><Latest>&",
  ]) {
    const reader = new BlockListReader();
    reader.push(utf8(begin));
    let pieces = 0;
    let error: string | undefined;
    while (error === undefined && pieces < 1_000) {
      pieces++;
      error = reader.push(piece)?.code;
    }
    // The bytes before it in its first piece may count, or not.
    assert.ok(error === "InvalidXmlDocument" && [0, 1].includes(pieces - xmlTokenBytesMax / piece.length), `${begin}: ${pieces} ${error}`);
  }
  const attributes = (count: number): string => `<BlockList ${Array.from({ length: count }, (_, i) => `a${i}=""`).join(" ")}/>`;
  assert.deepEqual(value(parseBlockList(utf8(attributes(256)))), []);
  assert.equal(codeOf(parseBlockList(utf8(attributes(257)))), "InvalidXmlDocument");
});

test("versions: well-formed ones are accepted, behaviour follows them", () => {
  assert.equal(value(parseVersion("2099-01-01")), newestVersion);
  assert.equal(codeOf(parseVersion("2099-01-01", true)), "InvalidHeaderValue");
  assert.equal(value(parseVersion(newestVersion, true)), newestVersion);
  for (const good of ["2009-09-19", "2019-12-12", "2026-06-06"]) assert.equal(value(parseVersion(good, true)), good);
  for (const bad of ["", "2019-13-01", "2019-02-30", "19-02-03", "x", "2020-01-01", "2020-02-11", "2008-01-01", "2099-13-01", "2026-1-1"]) {
    assert.equal(codeOf(parseVersion(bad)), "InvalidHeaderValue", bad);
    assert.equal(isVersion(bad), false, bad);
  }
  assert.equal(bodyLimitsOf("2019-12-12").blockBytesMax, 4000 * 1024 * 1024);
  assert.equal(bodyLimitsOf("2019-07-07").blockBytesMax, 100 * 1024 * 1024);
  assert.equal(etagHeader("2009-09-19", '"0x8"'), "0x8");
});

test("dates: the three forms of HTTP; two digits of a year mean the century whose weekday fits", () => {
  assert.equal(parseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_777_000);
  assert.equal(parseHttpDate("Sunday, 06-Nov-94 08:49:37 GMT"), 784_111_777_000);
  assert.equal(parseHttpDate("Sun Nov  6 08:49:37 1994"), 784_111_777_000);
  assert.equal(parseHttpDate("Thursday, 01-Jan-70 00:00:00 GMT"), 0);
  assert.equal(parseHttpDate("Wednesday, 01-Jan-70 00:00:00 GMT"), Date.UTC(2070, 0, 1));
  for (let day = Date.UTC(1900, 0, 1); day < Date.UTC(2100, 0, 1); day += 23 * 86_400_000) {
    const date = new Date(day);
    const [weekday = "", dd, month, year = "", time] = date.toUTCString().split(" ");
    const long = date.toLocaleDateString("en-US", { weekday: "long", timeZone: "UTC" });
    assert.equal(parseHttpDate(`${long}, ${dd}-${month}-${year.slice(2)} ${time} GMT`), day);
    assert.equal(parseHttpDate(`${weekday.slice(0, 3)} ${month} ${String(Number(dd)).padStart(2)} ${time} ${year}`), day);
  }
  for (const bad of [
    "Monday, 06-Nov-94 08:49:37 GMT",
    "Sun, 06-Nov-94 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994",
    "Sun Nov 06 08:49:37 1994 GMT",
    "",
  ]) {
    assert.equal(parseHttpDate(bad), undefined, bad);
  }
});

test("dates: only what RFC 1123 says, and only days that exist", () => {
  assert.equal(parseRfc1123("Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_777_000);
  for (const bad of [
    "Mon, 06 Nov 1994 08:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:49:37 GMT",
    "Thu, 31 Feb 1994 08:49:37 GMT",
  ]) {
    assert.equal(parseRfc1123(bad), undefined, bad);
  }
  assert.equal(isCivilDate("2024-02-29"), true);
  assert.equal(isCivilDate("2023-02-29"), false);
});

test("answers of partition servers: 304 and 412 are told apart, a range error says the size, a strange code is our bug", () => {
  assert.equal(restErrorOfService("ConditionNotMet", "", { status: "304" }).status, 304);
  assert.equal(restErrorOfService("ConditionNotMet", "", { status: "412" }).status, 412);
  assert.deepEqual(restErrorOfService("InvalidRange", "", { contentLength: "5" }).headers, { "Content-Range": "bytes */5" });
  assert.equal(restErrorOfService("constructor", "", {}).status, 500);
});

test("parts of a request are parsed together: all values, or the first error in their order", () => {
  assert.deepEqual(allParsed({ size: parsed(3), name: parsed("b") }), parsed({ size: 3, name: "b" }));
  const parts = { size: parsed(3), first: rejected("InvalidBlockId"), second: rejected("InvalidRange") };
  const refused = allParsed(parts);
  assert.ok(!refused.ok);
  assert.equal(refused.error.code, "InvalidBlockId");
});
