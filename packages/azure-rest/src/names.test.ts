/** Names in paths as the service reads them, and which older names a path may mean. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkNames, olderBlob, parseBlobResource } from "./blob/resource.ts";
import { blobNameCharactersMax, canonicalPath, hasRefusedCharacter } from "./names.ts";
import { parseTarget, type Target } from "./target.ts";

const targetOf = (path: string): Target => {
  const target = parseTarget(path, "acct.blob.localhost", { hostSuffixes: ["blob.localhost"] });
  assert.ok(target.ok, path);
  return target.value;
};
const named = (path: string): string => {
  const resource = parseBlobResource(targetOf(path));
  if (!resource.ok) return resource.error.code;
  const names = checkNames(resource.value);
  return names.ok ? `${resource.value.container ?? ""} ${resource.value.blob ?? ""}` : names.error.code;
};
const olderOf = (path: string): string | undefined => {
  const older = olderBlob(targetOf(path));
  return older && `${older.container} ${older.blob}`;
};

test("paths: backslashes are slashes, dot segments resolve, dots at the end of segments are dropped", () => {
  for (const [path, expected] of [
    ["/abc/d/e", "abc d/e"],
    ["/abc/d%5Ce", "abc d/e"],
    ["/abc/d\\e", "abc d/e"],
    ["/abc%2Fd", "abc d"],
    ["/abc%5Cd", "abc d"],
    ["/abc/./d", "abc d"],
    ["/abc/%2E%2Fd", "abc d"],
    ["/abc/d/.%2e/e", "abc e"],
    ["/abc/d%5C..%5Ce", "abc e"],
    ["/abc/../xyz/d", "xyz d"],
    ["/abc/d/../../../../xyz/e", "xyz e"],
    ["/abc/d.", "abc d"],
    ["/abc/d...", "abc d"],
    ["/abc/d./e.", "abc d/e"],
    ["/abc./d", "abc d"],
    ["/abc/.d/..e/f.g", "abc .d/..e/f.g"],
    ["/abc/d/", "abc d/"],
    ["/abc/d/.", "abc d/"],
    ["/abc/d/e/..", "abc d/"],
    ["/abc/d/.../e", "abc d/e"],
    ["/abc//d", "abc /d"],
    ["/abc/d//e", "abc d//e"],
    ["/abc/d//../e", "abc d/e"],
    ["/abc/%252E%252E/d", "abc %2E%2E/d"],
    ["/abc/%255C", "abc %5C"],
    ["/abc/.", "abc "],
    ["/abc/d/..", "abc "],
    ["/abc/..", " "],
    ["/..", " "],
    ["/d.", "$root d"],
    ["/abc/\u00a0. ", "abc \u00a0. "],
  ] as const) {
    assert.equal(named(path), expected, path);
  }
});

test("paths: characters that no name may have are refused, their neighbours are not", () => {
  const encoded = (code: number): string => `/abc/d${encodeURIComponent(String.fromCharCode(code))}`;
  for (const code of [0, 1, 9, 0x0a, 0x1f, 0x7f, 0x81, 0xe000, 0xf003, 0xf8ff, 0xfffd]) {
    assert.equal(named(encoded(code)), "InvalidUri", code.toString(16));
  }
  for (const code of [0x20, 0x7e, 0x80, 0x82, 0xa0, 0xd7ff, 0xf900, 0xfeff, 0xfffc, 0xfffe, 0xffff]) {
    assert.equal(named(encoded(code)), `abc d${String.fromCharCode(code)}`, code.toString(16));
  }
  for (const path of ["/abc/%", "/abc/%zz", "/abc/%ED%A0%80", "/abc/%C0%AF", "/abc/%5"]) assert.equal(named(path), "InvalidUri", path);
});

test("paths: the canonical name has the limits", () => {
  const longest = "n".repeat(blobNameCharactersMax);
  assert.equal(named(`/abc/${longest}...`), `abc ${longest}`);
  assert.equal(named(`/abc/x/../${longest}`), `abc ${longest}`);
  assert.equal(named(`/abc/${longest}n`), "OutOfRangeInput");
  const segments = Array.from({ length: 254 }, () => "s");
  assert.equal(named(`/abc/${segments.join("%5C")}`), `abc ${segments.join("/")}`);
  assert.equal(named(`/abc/${segments.join("%5C")}%5Cs`), "InvalidResourceName");
  assert.equal(named(`/abc/${"./".repeat(300)}d`), "abc d");
});

test("paths: a canonical path stays as it is, and leads nowhere above its root", () => {
  const part = fc.constantFrom(".", "..", "...", "/", "\\", "a", "b.", ".c", " ", "é", "%2E");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
      const path = canonicalPath(parts.join(""));
      assert.equal(canonicalPath(path), path);
      assert.ok(!path.includes("\\"));
      for (const segment of path.split("/")) assert.ok(!segment.endsWith("."), path);
    }),
    { numRuns: 2000 },
  );
});

test("older names: only a path that means something else now may name an older blob, by valid names of before", () => {
  for (const [path, expected] of [
    ["/abc/d%5Ce", "abc d\\e"],
    ["/abc/../xyz/d", "abc ../xyz/d"],
    ["/abc/d.", "abc d."],
    ["/abc/%01", "abc \u0001"],
    ["/abc%2Fd", "$root abc/d"],
    ["/a%5Cb", "$root a\\b"],
    ["/abc/d/e", undefined],
    ["/abc/d%2Fe", undefined],
    ["/abc", undefined],
    ["/", undefined],
    ["/abc./d", undefined],
    ["/abc%5Cd/e", undefined],
    ["/../abc/d", undefined],
    [`/abc/${"n".repeat(blobNameCharactersMax)}.`, undefined],
    ["/abc/%ff.", undefined],
  ] as const) {
    assert.equal(olderOf(path), expected, path);
  }
  const target = { ...targetOf("/abc/d%5Ce%01"), older: true } as const;
  const resource = parseBlobResource(target);
  assert.deepEqual(resource, { ok: true, value: { container: "abc", blob: "d\\e\u0001" } });
  assert.ok(resource.ok && checkNames(resource.value, target.older).ok && !checkNames(resource.value).ok);
  assert.ok(hasRefusedCharacter("d\\e\u0001"));
});
