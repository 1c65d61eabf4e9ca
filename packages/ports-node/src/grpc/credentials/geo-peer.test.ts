/** Another stamp that proves the secret for the geo door: front-ends take it at that door, and nobody takes it elsewhere. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { type Outcome, ok } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { Accounts, type Caller, callers, FrontEnd, GeoDoor, LockService, methodsFor, Status } from "@stamp/wire";
import { GrpcTransport } from "../transport.ts";
import { geoPeerSecretOf, SecretCredential } from "./secret-credential.ts";

const secret = "the secret of this stamp, 32 characters and more";
const renewed = "the secret of this stamp after a rotation of it";
const call = { timeoutMs: 20_000 };
const as = (secrets: readonly string[], caller?: Caller): SecretCredential =>
  new SecretCredential(secrets, undefined, undefined, undefined, caller);

/** A process of the stamp. Its geo door tells whom it was called by. */
async function served(t: TestContext, role: Caller, credential: () => SecretCredential): Promise<{ address: string; callers: string[] }> {
  const seen: string[] = [];
  const services = [
    servedPartly(GeoDoor, {
      pinData: async (_request, { caller, callerName }) => {
        seen.push(`${caller} ${callerName}`);
        return ok({});
      },
    }),
    servedPartly(LockService, { getLease: async () => ok({}) }),
    servedPartly(Accounts, { getForCopy: async () => ok({}), list: async () => ok({}) }),
    servedPartly(Status, { getStatus: async () => ok({ role }) }),
    servedPartly(FrontEnd, { putBlob: async () => ok({}) }),
  ];
  const listener = await new GrpcTransport({ credential }).serve("127.0.0.1:0", services);
  t.after(() => listener.close(0));
  return { address: listener.address, callers: seen };
}

const links = ["plain", "gRPC"] as const;

function caller(t: TestContext, credential: SecretCredential, link: (typeof links)[number]): GrpcTransport {
  const transport = new GrpcTransport({ credential: () => credential, limits: { links: { control: link, bulk: link } } });
  t.after(() => transport.close());
  return transport;
}

const codeOf = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.code} ${outcome.failure.applied}`);

test("geo peer, by its secret: a front-end serves it the geo door and nothing else, whatever role it says to have", {
  timeout: 60_000,
}, async (t) => {
  const { address, callers: seen } = await served(t, "front-end", () => as([secret], "front-end"));
  for (const link of links)
    for (const role of ["geo-peer", "operator", "location-service", "partition-manager", undefined] as const) {
      seen.length = 0;
      const transport = caller(t, as([geoPeerSecretOf(secret)], role), link);
      assert.equal(codeOf(await transport.client(address, GeoDoor).pinData({}, call)), "ok", `${link} ${role}`);
      assert.deepEqual(seen, ["geo-peer undefined"]);
      const refused = [
        await transport.client(address, LockService).getLease({}, call),
        await transport.client(address, Accounts).getForCopy({}, call),
        await transport.client(address, Accounts).list({}, call),
        await transport.client(address, Status).getStatus({}, call),
      ];
      assert.deepEqual([...new Set(refused.map(codeOf))], ["permissionDenied no"], `${link} ${role}: ${inspect(refused)}`);
    }
});

test("geo peer, by its secret: every other role of the stamp refuses the connection", { timeout: 60_000 }, async (t) => {
  for (const role of callers.filter((each) => each !== "front-end")) {
    const { address, callers: seen } = await served(t, role, () => as([secret], role));
    for (const link of links) {
      const transport = caller(t, as([geoPeerSecretOf(secret)], "geo-peer"), link);
      for (const outcome of [
        await transport.client(address, GeoDoor).pinData({}, call),
        await transport.client(address, LockService).getLease({}, call),
        await transport.client(address, Status).getStatus({}, call),
      ])
        assert.equal(codeOf(outcome), "unauthenticated no", `${role}, ${link}: ${inspect(outcome)}`);
    }
    assert.deepEqual(seen, []);
  }
});

test("geo peer, by its secret: a rotation of the stamp's secret takes it over, and ends that of the secret before", {
  timeout: 60_000,
}, async (t) => {
  let now = as([secret], "front-end");
  const { address } = await served(t, "front-end", () => now);
  const [old, next] = [secret, renewed].map((each) => caller(t, as([geoPeerSecretOf(each)], "geo-peer"), "plain"));
  assert.ok(old && next);
  const ask = (transport: GrpcTransport) => transport.client(address, GeoDoor).pinData({}, call);
  assert.equal(codeOf(await ask(old)), "ok");
  now = now.withSecrets([renewed, secret]);
  assert.deepEqual([codeOf(await ask(old)), codeOf(await ask(next))], ["ok", "ok"]);
  now = now.withSecrets([renewed]);
  assert.deepEqual([codeOf(await ask(old)), codeOf(await ask(next))], ["unauthenticated no", "ok"]);
});

test("geo peer: its role may call the geo door, and what is for everybody", () => {
  const services = new Set([...methodsFor("geo-peer")].map((name) => name.split("/")[0]));
  assert.deepEqual([...services].sort(), ["stamp.v1.Availability", "stamp.v1.Bus", "stamp.v1.GeoDoor", "stamp.v1.Signals"]);
});

test("geo peer: its secret tells nothing of the stamp's, and is another for each", () => {
  const [one, other] = [geoPeerSecretOf(secret), geoPeerSecretOf(renewed)];
  assert.notEqual(one, other);
  assert.match(one, /^geo-peer\.[\w-]{43}$/);
});
