import assert from "node:assert/strict";
import { test } from "node:test";
import { isHostPattern, isOwnHost } from "./host-names.ts";

test("hosts of the development account: addresses, names that no stranger can own, and those that are listed", () => {
  const own = [
    "127.0.0.1:10000",
    "10.1.2.3",
    "[::1]:10000",
    "localhost",
    "LOCALHOST:1",
    "localhost.",
    "acct.blob.localhost",
    "front-end-1:10000",
  ];
  for (const host of [...own, "host.docker.internal:10000", "acct.blob.storage.example"])
    assert.ok(isOwnHost(host, [], ["blob.storage.example"]), host);
  const strange = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:10000",
    "",
    "127.1",
    "blob.storage.example.evil",
  ];
  for (const host of [...strange, "xlocalhost.evil", "1.2.3.4.5", "::1"])
    assert.equal(isOwnHost(host, [], ["blob.storage.example"]), false, host);
  assert.ok(isOwnHost("Storage.Example:443", ["storage.example"], []));
  assert.equal(isOwnHost("a.storage.example", ["storage.example"], []), false);
  assert.ok(isOwnHost("a.b.storage.example", ["*.storage.example"], []));
  assert.equal(isOwnHost("storage.example", ["*.storage.example"], []), false);
  assert.equal(isOwnHost("evilstorage.example", ["*.storage.example"], []), false);
  assert.ok(isOwnHost("evil.example", ["*"], []));
});

test("patterns of hosts: names, *.name and *", () => {
  for (const text of ["*", "storage.example", "*.storage.example", "stamp"]) assert.ok(isHostPattern(text), text);
  for (const text of ["", "*.", "a.*", "*a", "http://a", "a:1", "a b", "**"]) assert.equal(isHostPattern(text), false, text);
});
