import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddress } from "./client-address.ts";

test("client address: an IPv4 address is the same on both kinds of socket, an IPv6 client is its network", () => {
  assert.equal(clientAddress("::ffff:10.0.0.1"), clientAddress("10.0.0.1"));
  assert.equal(clientAddress("2001:db8:0:1:2:3:4:5"), clientAddress("2001:db8:0:1::9"));
  assert.notEqual(clientAddress("2001:db8:0:1::9"), clientAddress("2001:db8:0:2::9"));
  assert.equal(clientAddress("::1"), "0:0:0:0");
});
