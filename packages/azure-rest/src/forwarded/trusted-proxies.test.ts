import assert from "node:assert/strict";
import { test } from "node:test";
import { isTrusted, type Network, parseNetwork, seenThroughProxies } from "./trusted-proxies.ts";

const networks = (...texts: string[]): Network[] => texts.map((text) => parseNetwork(text) as Network);
const proxies = networks("10.0.0.0/8", "127.0.0.1", "fd00::/8");

const through = (remoteAddress: string, headers: Record<string, string>, secure = false) =>
  seenThroughProxies(proxies, { remoteAddress, secure, headers: { host: "stamp:10000", ...headers } });
const clientOf = (remoteAddress: string, forwardedFor: string): string =>
  through(remoteAddress, { "x-forwarded-for": forwardedFor }).remoteAddress;

test("networks of proxies: addresses and CIDR are taken, names, every address at once and mixed families are not", () => {
  for (const text of ["10.1.2.3", "10.0.0.0/8", " 10.0.0.0/8 ", "::1", "fd00::/8", "2001:db8::1/128", "128.0.0.0/1"])
    assert.ok(parseNetwork(text), text);
  for (const text of [
    "",
    "proxy",
    "10.1.2",
    "10.1.2.3.4",
    "10.1.2.3/33",
    "10.1.2.3/0",
    "::/0",
    "10.0.0.0/8/8",
    "10.0.0.0/",
    "::ffff:10.0.0.1/104",
  ])
    assert.equal(parseNetwork(text), undefined, text);
  assert.ok(isTrusted(proxies, "::ffff:10.9.9.9") && isTrusted(proxies, "fd00::1%eth0") && isTrusted(proxies, "127.0.0.1"));
  for (const address of ["11.0.0.1", "127.0.0.2", "::1", "fe80::1", "", "x"]) assert.equal(isTrusted(proxies, address), false, address);
});

test("proxies: headers of a peer that is not trusted say nothing, and the request is the same object", () => {
  const headers = { "x-forwarded-for": "9.9.9.9", "x-forwarded-proto": "https", "x-forwarded-host": "evil.example" };
  for (const remoteAddress of ["11.0.0.1", "::ffff:11.0.0.1", "::1", ""]) {
    const peer = { remoteAddress, secure: false, headers };
    assert.equal(seenThroughProxies(proxies, peer), peer);
  }
  const peer = { remoteAddress: "10.0.0.1", secure: false, headers };
  assert.equal(seenThroughProxies([], peer), peer, "no proxy is trusted by default");
});

test("proxies: the client is the first address from the right that is no proxy; what it sent itself is ignored", () => {
  assert.equal(clientOf("10.0.0.1", "9.9.9.9"), "9.9.9.9");
  assert.equal(clientOf("10.0.0.1", "1.1.1.1, 9.9.9.9"), "9.9.9.9");
  assert.equal(clientOf("10.0.0.1", "1.1.1.1,9.9.9.9 ,10.0.0.2"), "9.9.9.9");
  assert.equal(clientOf("10.0.0.1", "10.7.7.7, 9.9.9.9, 10.0.0.2, 10.0.0.3"), "9.9.9.9", "an address of a proxy, sent by the client");
  assert.equal(clientOf("::ffff:10.0.0.1", "9.9.9.9"), "9.9.9.9");
  assert.equal(clientOf("fd00::1", "2001:db8::5"), "2001:db8::5");
  assert.equal(clientOf("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3", "a client inside the network of the proxies");
  assert.equal(clientOf("10.0.0.1", "9.9.9.9:4711"), "9.9.9.9");
  assert.equal(clientOf("10.0.0.1", "[2001:db8::5]:4711"), "2001:db8::5");
  assert.equal(clientOf("10.0.0.1", "::ffff:9.9.9.9"), "9.9.9.9");
});

test("proxies: an entry that is no address makes the client the proxy that added it, never somebody left of it", () => {
  for (const entry of ["unknown", "_hidden", "9.9.9", "0x09090909", "9.9.9.9 ; drop", "%", "9.9.9.9/8"]) {
    assert.equal(clientOf("10.0.0.1", `1.1.1.1, ${entry}`), "10.0.0.1", entry);
    assert.equal(clientOf("10.0.0.1", `1.1.1.1, ${entry}, 10.0.0.2`), "10.0.0.2", entry);
  }
  assert.equal(clientOf("10.0.0.1", ""), "10.0.0.1");
  assert.equal(through("10.0.0.1", {}).remoteAddress, "10.0.0.1");
});

test("proxies: the scheme is that of the client's connection, in lists at the client's place", () => {
  const secure = (proto: string | undefined, forwardedFor: string, was = false): boolean =>
    through("10.0.0.1", { "x-forwarded-for": forwardedFor, ...(proto === undefined ? {} : { "x-forwarded-proto": proto }) }, was).secure;
  assert.equal(secure("https", "9.9.9.9"), true);
  assert.equal(secure("HTTPS", "9.9.9.9"), true);
  assert.equal(secure("http", "9.9.9.9", true), false, "TLS behind the proxy does not make the client's connection secure");
  assert.equal(secure(undefined, "9.9.9.9", true), true);
  assert.equal(secure(undefined, "9.9.9.9", false), false);
  assert.equal(secure("https, http", "9.9.9.9"), false, "left of the proxy's own entry is what the client sent");
  assert.equal(secure("https, http", "9.9.9.9, 10.0.0.2"), true, "http is what the second proxy saw of the first");
  assert.equal(secure("https", "9.9.9.9, 10.0.0.2"), true, "replaced by each proxy");
  assert.equal(secure("httpss", "9.9.9.9"), false);
});

test("proxies: the host is what the client asked for, if it is one; every other header stays", () => {
  const hostOf = (value: string | undefined): string | undefined =>
    through("10.0.0.1", { "x-forwarded-for": "9.9.9.9", ...(value === undefined ? {} : { "x-forwarded-host": value }) }).headers.host;
  assert.equal(hostOf("storage.example"), "storage.example");
  assert.equal(hostOf("evil.example, storage.example:8443"), "storage.example:8443");
  assert.equal(hostOf("[2001:db8::1]:443"), "[2001:db8::1]:443");
  for (const value of [undefined, "", "a b", "a/b", "a@b", "http://a", "a:b", "a:123456"])
    assert.equal(hostOf(value), "stamp:10000", String(value));
  const { headers } = through("10.0.0.1", { "x-forwarded-host": "storage.example", "x-ms-version": "2020-02-10" });
  assert.deepEqual(headers, { host: "storage.example", "x-forwarded-host": "storage.example", "x-ms-version": "2020-02-10" });
});
