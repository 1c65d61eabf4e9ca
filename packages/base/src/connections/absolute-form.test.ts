import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAbsoluteForm } from "./absolute-form.ts";

test("absolute form: authority and the rest, which begins with a slash; other forms are none", () => {
  const rows: [string, string, string][] = [
    ["http://h/a/b?c=/d", "h", "/a/b?c=/d"],
    ["HTTPS://h.example:10000/", "h.example:10000", "/"],
    ["http://[::1]:1?comp=list", "[::1]:1", "/?comp=list"],
    ["http://h", "h", "/"],
    ["http://h//x", "h", "//x"],
    ["http://h/a\\b", "h", "/a\\b"],
  ];
  for (const [target, authority, originForm] of rows) assert.deepEqual(parseAbsoluteForm(target), { authority, originForm });
  for (const other of ["/a", "//h/a", "/http://h/a", "*", "h:80", "http:///a", "http://u@h/a", "http://h/a#b", "ftp://h/a", ""]) {
    assert.equal(parseAbsoluteForm(other), undefined, other);
  }
});
