import assert from "node:assert/strict";
import { test } from "node:test";
import { cookieOf, refusalOf, securityHeaders, tokenIn } from "./guard.ts";

const host = "127.0.0.1:10010";
const own = { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" };

test("guard: the page and its requests pass, by each name of loopback and through a tunnel with another port", () => {
  assert.equal(refusalOf({ method: "GET", headers: { host } }), undefined);
  assert.equal(refusalOf({ method: "POST", headers: own }), undefined);
  for (const name of ["localhost:10010", "[::1]:10010", "127.0.0.1:9999", "localhost"]) {
    assert.equal(refusalOf({ method: "GET", headers: { host: name } }), undefined, name);
    assert.equal(refusalOf({ method: "POST", headers: { host: name, origin: `http://${name}` } }), undefined, name);
  }
});

test("guard: a name that somebody points at this machine is refused, also one that begins or ends like ours", () => {
  for (const name of [
    "evil.example",
    "evil.example:10010",
    "127.0.0.1.evil.example",
    "localhost.evil.example:10010",
    "evil-localhost",
    "",
    "127.0.0.1:10010:1",
    "user@127.0.0.1",
    "127.0.0.1:10010, evil.example",
    "127.0.0.1:",
    "localhost.:10010",
    "0.0.0.0:10010",
    "127.1:10010",
    "2130706433:10010",
    "[::ffff:127.0.0.1]:10010",
  ]) {
    assert.match(refusalOf({ method: "GET", headers: { host: name } }) ?? "", /answers only to/, name);
  }
});

test("guard: pages of other sites are refused, those of other ports of this machine, too", () => {
  for (const origin of ["http://evil.example", "null", "https://127.0.0.1:10010", "http://127.0.0.1:3000", "http://localhost:10010"]) {
    for (const method of ["GET", "POST", "PUT", "DELETE"])
      assert.match(refusalOf({ method, headers: { host, origin } }) ?? "", /another site/, origin);
  }
  for (const site of ["cross-site", "same-site"]) {
    assert.match(
      refusalOf({ method: "GET", headers: { host, "sec-fetch-site": site, "sec-fetch-mode": "no-cors" } }) ?? "",
      /another site/,
    );
    assert.equal(
      refusalOf({ method: "GET", headers: { host, "sec-fetch-site": site, "sec-fetch-mode": "navigate" } }),
      undefined,
      "a link to the page",
    );
    assert.notEqual(
      refusalOf({ method: "POST", headers: { host, origin: `http://${host}`, "sec-fetch-site": site, "sec-fetch-mode": "navigate" } }),
      undefined,
    );
  }
});

test("guard: what changes something names its origin", () => {
  for (const method of ["POST", "PUT", "DELETE", "PATCH"]) assert.match(refusalOf({ method, headers: { host } }) ?? "", /names its origin/);
});

test("guard: a cookie is for one port, no script reads it, and no other site sends it", () => {
  const request = { headers: { host } };
  assert.equal(cookieOf("abc", request), "stamp-console-10010=abc; HttpOnly; SameSite=Strict; Path=/api/");
  assert.equal(tokenIn({ headers: { host, cookie: "a=b; stamp-console-10010=abc" } }), "abc");
  assert.equal(tokenIn({ headers: { host, cookie: "a=b, stamp-console-10010=abc" } }), "abc", "headers that came twice");
  assert.equal(tokenIn({ headers: { host, cookie: "stamp-console-3000=abc" } }), "");
  assert.equal(tokenIn({ headers: { host } }), "");
  assert.match(cookieOf("", request), /Max-Age=0/);
});

test("guard: the page may load nothing from elsewhere, and run nothing that stands in its HTML", () => {
  const policy = securityHeaders["Content-Security-Policy"] ?? "";
  assert.match(policy, /^default-src 'none';/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*|data:/);
  assert.match(policy, /frame-ancestors 'none'/);
});
