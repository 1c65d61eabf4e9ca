/** Another stamp that proves the secret for the geo door: front-ends take it at that door, and nobody takes it elsewhere. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { type Outcome, ok } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { Accounts, type Caller, callers, FrontEnd, GeoDoor, LockService, methodsFor, Status } from "@stamp/wire";
import { OrdinaryGrpc } from "../native/ordinary-grpc.ts";
import { GrpcTransport } from "../transport.ts";
import { geoPeerSecretOf, locationSecretOf, sharedPeerSecretOf } from "./derived-secrets.ts";
import { SecretCredential } from "./secret-credential.ts";

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

function caller(t: TestContext, credential: SecretCredential, link: (typeof links)[number]): GrpcTransport | OrdinaryGrpc {
  const transport = link === "plain" ? new GrpcTransport({ credential: () => credential }) : new OrdinaryGrpc(() => credential);
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
      const transport = caller(t, as([geoPeerSecretOf(secret, "north-1")], role), link);
      assert.equal(codeOf(await transport.client(address, GeoDoor).pinData({}, call)), "ok", `${link} ${role}`);
      assert.deepEqual(seen, ["geo-peer north-1"]);
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
      const transport = caller(t, as([geoPeerSecretOf(secret, "north-1")], "geo-peer"), link);
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
  const [old, next] = [secret, renewed].map((each) => caller(t, as([geoPeerSecretOf(each, "north-1")], "geo-peer"), "plain"));
  assert.ok(old && next);
  const ask = (transport: GrpcTransport | OrdinaryGrpc) => transport.client(address, GeoDoor).pinData({}, call);
  assert.equal(codeOf(await ask(old)), "ok");
  now = now.withSecrets([renewed, secret]);
  assert.deepEqual([codeOf(await ask(old)), codeOf(await ask(next))], ["ok", "ok"]);
  now = now.withSecrets([renewed]);
  assert.deepEqual([codeOf(await ask(old)), codeOf(await ask(next))], ["unauthenticated no", "ok"]);
});

test("geo peer: its role may call the geo door, and what is for everybody", () => {
  const services = new Set([...methodsFor("geo-peer")].map((name) => name.split("/")[0]));
  assert.deepEqual([...services].sort(), ["stamp.v1.Availability", "stamp.v1.GeoDoor", "stamp.v1.Signals"]);
});

test("geo peer: its secret tells nothing of the stamp's, and is another for each stamp on either side", () => {
  const all = [secret, renewed].flatMap((each) => [
    geoPeerSecretOf(each, "north-1"),
    geoPeerSecretOf(each, "east.1"),
    sharedPeerSecretOf(each),
    locationSecretOf(each),
  ]);
  const ends = all.map((each) => each.slice(each.lastIndexOf(".") + 1));
  assert.equal(new Set(ends).size, all.length);
  assert.match(all[1] as string, /^geo-peer\.east\.1\.[\w-]{43}$/);
  assert.throws(() => geoPeerSecretOf(secret, "north/1"), /a stamp's name has letters/);
});

test("geo peer, by its secret: it speaks as the stamp that the secret was made for, and as no other one", {
  timeout: 60_000,
}, async (t) => {
  const { address, callers: seen } = await served(t, "front-end", () => as([secret], "front-end"));
  const own = geoPeerSecretOf(secret, "north-1");
  const renamed = own.replace("north-1", "south-1");
  for (const link of links) {
    seen.length = 0;
    assert.equal(
      codeOf(
        await caller(t, as([own], "geo-peer"), link)
          .client(address, GeoDoor)
          .pinData({}, call),
      ),
      "ok",
    );
    const as2 = await caller(t, as([renamed], "geo-peer"), link)
      .client(address, GeoDoor)
      .pinData({}, call);
    assert.equal(codeOf(as2), "unauthenticated no", inspect(as2));
    // The secret that releases before made for all peers together says no name.
    assert.equal(
      codeOf(
        await caller(t, as([sharedPeerSecretOf(secret)], "geo-peer"), link)
          .client(address, GeoDoor)
          .pinData({}, call),
      ),
      "ok",
    );
    assert.deepEqual(seen, ["geo-peer north-1", "geo-peer undefined"], link);
  }
});

test("location, by its secret: it is served what its role needs at a stamp, whatever role it says to have, and by no other process", {
  timeout: 120_000,
}, async (t) => {
  for (const role of callers.filter((each) => !each.endsWith("-peer") && each !== "operator")) {
    const { address } = await served(t, role, () => as([secret], role));
    const isCalled = ["lock-service", "stream-manager", "partition-manager"].includes(role);
    for (const link of links)
      for (const said of ["location-service", "operator", "partition-manager"] as const) {
        const transport = caller(t, as([locationSecretOf(secret)], said), link);
        const what = `${role}, ${link}, says ${said}`;
        const leader = await transport.client(address, LockService).getLease({}, call);
        assert.equal(codeOf(leader), isCalled ? "ok" : "unauthenticated no", `${what}: ${inspect(leader)}`);
        if (!isCalled) continue;
        assert.equal(codeOf(await transport.client(address, Accounts).list({}, call)), "ok", what);
        for (const outcome of [
          await transport.client(address, GeoDoor).pinData({}, call),
          await transport.client(address, Status).getStatus({}, call),
        ])
          assert.equal(codeOf(outcome), "permissionDenied no", `${what}: ${inspect(outcome)}`);
      }
  }
});

test("location: the role of its secret may find leaders, look at nodes and command roles, and write no metadata of a stamp", () => {
  const methods = [...methodsFor("location-peer")].filter((name) => !name.startsWith("stamp.v1.Accounts/")).sort();
  assert.deepEqual(methods, [
    "stamp.v1.Availability/IsAvailable",
    "stamp.v1.FeatureLevels/Announce",
    "stamp.v1.LockService/GetLease",
    "stamp.v1.MetadataStore/GetStamp",
    "stamp.v1.Signals/Publish",
    "stamp.v1.Signals/Subscribe",
    "stamp.v1.StreamManager/ListNodes",
  ]);
});

test("geo peer, by its secret: a hello or a token that says another stamp's name with the same key is refused", () => {
  const own = as([geoPeerSecretOf(secret, "north-1")], "geo-peer");
  const frontEnd = as([secret], "front-end");
  const { opening } = own.dial(7_000);
  assert.equal(frontEnd.accept([7_000]).received(opening).kind, "send");
  const renamed = Buffer.from(opening);
  renamed.write("south-1", renamed.indexOf("north-1"));
  const step = frontEnd.accept([7_000]).received(renamed);
  assert.deepEqual([step.kind, step.kind === "refused" && step.why], ["refused", "the caller does not know the secret of this stamp"]);
  const { text } = own.tokenFor(7_000);
  const named = (name: string): string => `.${Buffer.from(name).toString("base64url")}.`;
  assert.equal(frontEnd.admit(text, [7_000]).kind, "admitted");
  const other = own.tokenFor(7_000).text.replace(named("north-1"), named("south-1"));
  assert.equal(frontEnd.admit(other, [7_000]).kind, "refused");
});
