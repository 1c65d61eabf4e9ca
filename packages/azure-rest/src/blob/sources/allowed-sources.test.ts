import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedSource, parseSourcePattern, type SourcePattern } from "./allowed-sources.ts";

const patterns = (...texts: string[]): SourcePattern[] =>
  texts.map((text) => {
    const pattern = parseSourcePattern(text);
    assert.ok(pattern, text);
    return pattern;
  });
const isAllowed = (list: string[], secure: boolean, host: string): boolean => allowedSource(patterns(...list), secure, host) !== undefined;
const mayConnect = (list: string[], host: string, address: string): boolean =>
  allowedSource(patterns(...list), true, host)?.mayConnectTo(address) ?? false;

test("allowed sources: what is no pattern is refused when it is read", () => {
  for (const text of [
    "",
    "files.example",
    "ftp://files.example",
    "https://",
    "https://a.*.example",
    "https://user@files.example",
    "https://files.example/path",
    "https://files.example:99999",
    "https://files.example=10.0.0.0",
    "https://files.example=10.0.0.0/33",
    "https://[::1",
    "https://[:::1]",
  ])
    assert.equal(parseSourcePattern(text), undefined, text);
});

test("allowed sources: scheme, name and port have to be those of a pattern", () => {
  assert.equal(isAllowed([], true, "files.example"), false);
  const one = ["https://files.example"];
  assert.equal(isAllowed(one, true, "files.example"), true);
  assert.equal(isAllowed(one, true, "FILES.example:443"), true);
  assert.equal(isAllowed(one, false, "files.example"), false);
  assert.equal(isAllowed(one, true, "files.example:8443"), false);
  assert.equal(isAllowed(one, true, "x.files.example"), false);
  assert.equal(isAllowed(one, true, "files.example.evil.example"), false);
  assert.equal(isAllowed(one, true, "user@files.example"), false);
  assert.equal(isAllowed(["https://files.example:*"], true, "files.example:1"), true);
  const below = ["https://*.blob.example"];
  assert.equal(isAllowed(below, true, "acct.blob.example"), true);
  assert.equal(isAllowed(below, true, "blob.example"), false);
  assert.equal(isAllowed(below, true, "evilblob.example"), false);
  assert.equal(isAllowed(["https://*"], true, "any.example"), true);
});

test("allowed sources: an address is allowed as itself or inside a named network, never as a name", () => {
  assert.equal(isAllowed(["https://*"], true, "8.8.8.8"), false);
  assert.equal(isAllowed(["https://*"], true, "[::1]"), false);
  assert.equal(isAllowed(["https://10.1.2.3"], true, "10.1.2.3"), true);
  assert.equal(isAllowed(["https://10.1.2.3"], true, "10.1.2.4"), false);
  assert.equal(isAllowed(["https://[::1]"], true, "[0:0:0:0:0:0:0:1]"), true);
  assert.equal(isAllowed(["https://127.0.0.1"], true, "[::ffff:127.0.0.1]"), true);
  assert.equal(isAllowed(["https://*=10.0.0.0/8"], true, "10.1.2.3"), true);
  assert.equal(isAllowed(["https://*=10.0.0.0/8"], true, "11.1.2.3"), false);
});

test("allowed sources: a name stands for public addresses only, unless its pattern names a network", () => {
  const special = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::1",
    "2001:0:7f00:1::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "not an address",
  ];
  for (const address of special) assert.equal(mayConnect(["https://*"], "any.example", address), false, address);
  for (const address of ["8.8.8.8", "20.60.1.1", "2a01:111:f100::1", "::ffff:8.8.8.8"]) {
    assert.equal(mayConnect(["https://*"], "any.example", address), true, address);
  }
  const inside = ["https://b.internal=10.0.0.0/8"];
  assert.equal(mayConnect(inside, "b.internal", "10.1.2.3"), true);
  assert.equal(mayConnect(inside, "b.internal", "192.168.0.1"), false);
  assert.equal(mayConnect(inside, "b.internal", "8.8.8.8"), false, "it stands for nothing else");
  assert.equal(mayConnect(["https://b.internal=127.0.0.0/8", "https://*"], "b.internal", "127.0.0.1"), true);
  assert.equal(mayConnect(["https://b.internal=127.0.0.0/8", "https://*"], "c.internal", "127.0.0.1"), false);
  assert.equal(mayConnect(["https://169.254.169.254"], "169.254.169.254", "169.254.169.254"), true, "named");
});
