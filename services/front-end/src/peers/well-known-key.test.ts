/** For which gRPC calls the key that everybody knows is good. Requests of HTTP: local-requests.test.ts and the conformance tests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeToken, parseNetwork } from "@stamp/azure-rest";
import { ok } from "@stamp/base";
import type { CallContext, World } from "@stamp/ports";
import { NodeDigest } from "@stamp/ports-node";
import type { Accounts } from "../accounts/accounts.ts";
import { Signals } from "../grpc/signals.ts";
import { signalsHandlers } from "../grpc/signals-service.ts";
import { callTakesWellKnownKey, type WellKnownKeyRules } from "./well-known-key.ts";

const rules: WellKnownKeyRules = { servedTo: "thisMachine", trustedProxies: [], hosts: [], hostSuffixes: [] };
const local = { peer: "127.0.0.1:4711", metadata: {} };

test("the well-known key: a gRPC call is from this machine if its peer is and no proxy has touched it", () => {
  for (const peer of ["127.0.0.1:4711", "[::1]:4711", "::1:4711", "[::ffff:127.0.0.1]:4711"]) {
    assert.equal(callTakesWellKnownKey(rules, { ...local, peer }), true, peer);
    assert.equal(callTakesWellKnownKey({ ...rules, servedTo: "nobody" }, { ...local, peer }), false, peer);
  }
  for (const peer of ["10.0.0.1:4711", "[fe80::1]:4711", "", "127.0.0.1.example:1"]) {
    assert.equal(callTakesWellKnownKey(rules, { ...local, peer }), false, peer);
    assert.equal(callTakesWellKnownKey({ ...rules, servedTo: "everybody" }, { ...local, peer }), true, peer);
  }
  for (const name of ["x-forwarded-for", "via", "forwarded"])
    assert.equal(callTakesWellKnownKey(rules, { ...local, metadata: { [name]: "10.0.0.1" } }), false, name);
  const trusted = parseNetwork("127.0.0.1/32");
  assert.ok(trusted);
  assert.equal(callTakesWellKnownKey({ ...rules, trustedProxies: [trusted] }, local), false);
});

test("signals: a token by the well-known key counts for calls of this machine, one by the account's own key for any", async () => {
  const [own, wellKnown] = [new Uint8Array(64).fill(1), new Uint8Array(64).fill(2)];
  const digest = new NodeDigest();
  const account = {
    kind: "known",
    keys: [own],
    wellKnownKeys: [wellKnown],
    serviceProperties: { blob: { deleteRetention: {}, containerDeleteRetention: {} } },
    role: undefined,
  };
  const world = { digest, clock: { wallMs: () => 0 } } as unknown as World;
  const accounts = { find: async () => ok(account) } as unknown as Accounts;
  const handlers = signalsHandlers({
    world,
    accounts,
    signals: new Signals(10),
    takesWellKnownKey: (call) => callTakesWellKnownKey(rules, call),
  });
  const publish = async (key: Uint8Array, peer: string): Promise<string> => {
    const token = makeToken({ account: "acct", expiresMs: 1_000 }, key, (one, message) => digest.hmacSha256(one, message));
    const context = { peer, metadata: { authorization: `Bearer ${token}` }, deadlineMs: 1_000, signal: new AbortController().signal };
    const answer = await handlers.publish({ account: "acct", topic: "t" } as never, context as unknown as CallContext);
    return answer.ok ? "ok" : answer.failure.code;
  };
  assert.equal(await publish(own, "10.0.0.1:1"), "ok");
  assert.equal(await publish(wellKnown, "127.0.0.1:1"), "ok");
  assert.equal(await publish(wellKnown, "10.0.0.1:1"), "unauthenticated");
});
