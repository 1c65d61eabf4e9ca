import assert from "node:assert/strict";
import { test } from "node:test";
import { isLocalRequest } from "./local-requests.ts";

const local = { remoteAddress: "127.0.0.1", headers: { host: "127.0.0.1:10000" } };

test("a request is local when it comes from loopback, asks for a loopback name, and no proxy has touched it", () => {
  for (const host of ["127.0.0.1:10000", "localhost:10000", "LOCALHOST", "acct.blob.localhost:10000", "[::1]:10000", "127.0.0.2"])
    for (const remoteAddress of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
      assert.ok(isLocalRequest({ remoteAddress, headers: { host } }), host);
  for (const host of ["storage.example", "localhost.example", "10.0.0.1:10000", "127.0.0.1.example", ""])
    assert.equal(isLocalRequest({ ...local, headers: { host } }), false, host);
  assert.equal(isLocalRequest({ ...local, headers: {} }), false);
  for (const remoteAddress of ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "", "127.0.0.1.2.3"])
    assert.equal(isLocalRequest({ ...local, remoteAddress }), false, remoteAddress);
  for (const name of ["forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "front-end-https"])
    assert.equal(isLocalRequest({ ...local, headers: { ...local.headers, [name]: "x" } }), false, name);
});
