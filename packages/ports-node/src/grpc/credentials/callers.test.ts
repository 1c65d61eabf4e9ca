/** A server refuses every method that the table of callers does not give the role of the caller: method by method, on every way in. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create, type DescService } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { type Outcome, ok } from "@stamp/base";
import { type CallOptions, type ServedService, servedPartly } from "@stamp/ports";
import * as wire from "@stamp/wire";
import { type Caller, callers, callersOf, LockService, requestCheckOf } from "@stamp/wire";
import { GrpcTransport } from "../transport.ts";
import { tokenKey } from "./credential.ts";
import { SecretCredential } from "./secret-credential.ts";

const secret = "the secret of this stamp, 32 characters and more";
const as = (caller: Caller | undefined): SecretCredential => new SecretCredential([secret], undefined, undefined, undefined, caller);
const services = (Object.values(wire) as unknown[]).filter(
  (each): each is DescService => (each as { kind?: unknown } | null)?.kind === "service",
);
const unary = services.flatMap((service) =>
  service.methods
    .filter(({ methodKind }) => methodKind === "unary")
    .map((method) => ({ service, method, name: `${service.typeName}/${method.name}` })),
);
const emptyRequests = new Map(unary.map(({ method, name }) => [name, create(method.input)]));
const call = { timeoutMs: 20_000 };
const asIs = (bytes: Buffer): Buffer => bytes;

async function served(t: TestContext): Promise<{ address: string; port: number; called: string[] }> {
  const called: string[] = [];
  const all = services.map((service): ServedService => {
    const handlers = service.methods
      .filter(({ methodKind }) => methodKind === "unary")
      .map(({ localName, name }) => [
        localName,
        async () => {
          called.push(`${service.typeName}/${name}`);
          return ok({});
        },
      ]);
    return servedPartly(service, Object.fromEntries(handlers));
  });
  const listener = await new GrpcTransport({ credential: () => as("lock-service") }).serve("127.0.0.1:0", all);
  t.after(() => listener.close(0));
  return { address: listener.address, port: Number(listener.address.split(":")[1]), called };
}

/** True if the table gives the method to the role, and with it what an empty request does. */
const given = (caller: Caller | undefined, name: string): boolean => {
  const by = callersOf(name);
  if (caller === undefined || by === "everybody") return true;
  const empty = emptyRequests.get(name);
  return by?.includes(caller) === true && (empty === undefined || requestCheckOf(name)?.(empty, caller, undefined) === undefined);
};

test("callers: over the bus, each role gets through to the methods that are its own, and to no other", { timeout: 120_000 }, async (t) => {
  const { address, called } = await served(t);
  for (const caller of [...callers, undefined]) {
    const transport = new GrpcTransport({ credential: () => as(caller) });
    t.after(() => transport.close());
    called.length = 0;
    const wrong: string[] = [];
    await Promise.all(
      unary.map(async ({ service, method, name }) => {
        const client = transport.client(address, service) as unknown as Record<
          string,
          (request: object, options: CallOptions) => Promise<Outcome<object>>
        >;
        const outcome = await client[method.localName]?.({}, call);
        if (outcome?.ok === given(caller, name)) {
          if (outcome.ok) return;
          const { code, applied } = outcome.failure;
          if (code === "permissionDenied" && applied === "no") return;
        }
        wrong.push(name);
      }),
    );
    assert.deepEqual(wrong, [], String(caller));
    assert.deepEqual(
      called.toSorted(),
      unary
        .map(({ name }) => name)
        .filter((name) => given(caller, name))
        .toSorted(),
      String(caller),
    );
  }
});

test("callers: over ordinary gRPC, every method, streams and reflection too, is refused to roles that the table does not name", {
  timeout: 120_000,
}, async (t) => {
  const { address, port } = await served(t);
  const client = new Client(address, credentials.createInsecure());
  t.after(() => client.close());
  const methods = services.flatMap((service) =>
    service.methods.map((method) => ({ name: `${service.typeName}/${method.name}`, streams: method.methodKind !== "unary" })),
  );
  methods.push({ name: "grpc.reflection.v1.ServerReflection/ServerReflectionInfo", streams: true });
  const codeOf = (name: string, streams: boolean, token: string): Promise<status> => {
    const metadata = new Metadata();
    metadata.set(tokenKey, token);
    // A caller that names itself what it wants to be.
    metadata.set("stamp-proven-by", "x operator");
    return new Promise((resolve) => {
      const done = (error: ServiceError | null): void => resolve(error?.code ?? status.OK);
      const deadline = Date.now() + 30_000;
      if (!streams) client.makeUnaryRequest(`/${name}`, asIs, asIs, Buffer.alloc(0), metadata, { deadline }, done);
      else {
        const stream = client.makeBidiStreamRequest(`/${name}`, asIs, asIs, metadata, { deadline });
        stream.on("error", done).on("data", () => {});
        stream.on("end", () => resolve(status.OK));
        stream.end();
      }
    });
  };
  for (const caller of callers) {
    const credential = as(caller);
    const tool = credential.reusableToken(60_000);
    const found = await Promise.all(
      methods.flatMap(({ name, streams }) =>
        [credential.tokenFor(port).text, tool].map(async (token) => [name, await codeOf(name, streams, token)] as const),
      ),
    );
    const reflects = (name: string): boolean => name.startsWith("grpc.") && caller === "operator";
    for (const [name, code] of found) {
      const expected = callersOf(name) === "everybody" || given(caller, name) || reflects(name);
      assert.equal(code !== status.PERMISSION_DENIED, expected, `${caller} ${name}: ${code}`);
    }
  }
});

test("callers: a role that this release does not know, or none, is one of a release before roles: the secret is all that is asked", async (t) => {
  const { address } = await served(t);
  const transport = new GrpcTransport({ credential: () => as(undefined) });
  t.after(() => transport.close());
  assert.ok((await transport.client(address, LockService).refuseRenewals({}, call)).ok);
});
