/** The listening port of a process, seen by those who do not know the secret of the stamp: nothing but health, on every way in. */
import assert from "node:assert/strict";
import { createHmac, hkdfSync } from "node:crypto";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { Client, credentials, status } from "@grpc/grpc-js";
import { ok, unwrap } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { ExtentNode, FrontEnd, LockService } from "@stamp/wire";
import { answerBytes, helloBytes } from "../bus/handshake-format.ts";
import { OrdinaryGrpc } from "../native/ordinary-grpc.ts";
import { GrpcTransport } from "../transport.ts";
import { type Credential, proofKey } from "./credential.ts";
import { openCredential, SecretCredential } from "./secret-credential.ts";
import {
  allServices,
  call,
  counted,
  credential,
  nextBytes,
  secret,
  served,
  statusOf,
  stranger,
  untilClosed,
  wrong,
} from "./testing/strangers.ts";

test("gRPC without the secret: every method of every service and reflection is refused, none hangs; health answers", {
  timeout: 60_000,
}, async (t) => {
  assert.ok(allServices.length >= 8, "all services of the wire are here");
  let called = 0;
  const own = allServices;
  const { address, port } = await served(
    t,
    {},
    own.map((each) => counted(each, () => called++)),
  );
  const other = await served(t);
  const client = new Client(address, credentials.createInsecure());
  t.after(() => client.close());
  const replayed = credential.tokenFor(port).text;
  let answer = "";
  const first = await statusOf(client, "/stamp.v1.LockService/GetLease", false, replayed, (metadata) => {
    answer = String(metadata.get(proofKey)[0] ?? "");
  });
  assert.equal(first, status.OK, "with the secret the call goes through");
  assert.equal(called, 1);
  assert.ok(answer.length > 0, "the server has proven itself");
  const now = Date.now();
  const late = new SecretCredential([secret], () => now - 200_000);
  const early = new SecretCredential([secret], () => now + 200_000);
  const good = credential.tokenFor(port).text;
  const tokens: Readonly<Record<string, () => string | undefined>> = {
    none: () => undefined,
    empty: () => "",
    noise: () => "stamp1.x.y",
    "of another secret": () => wrong.tokenFor(port).text,
    "of no secret": () => openCredential.tokenFor(port).text,
    replayed: () => replayed,
    "the server's own proof": () => answer,
    "its proof instead of the right one": () => `${good.slice(0, good.lastIndexOf("."))}.${answer}`,
    "for another port": () => credential.tokenFor(other.port).text,
    "that was made long ago": () => late.tokenFor(port).text,
    "that was made in the future": () => early.tokenFor(port).text,
    "for tools, ended": () => credential.reusableToken(-1),
    "for tools, for more than a day": () => credential.reusableToken(86_400_001),
    "for tools, for ten years, on its last day": () =>
      new SecretCredential([secret], () => now - 3_650 * 86_400_000).reusableToken(3_650 * 86_400_000 + 3_600_000),
    "for tools, made in the future": () => new SecretCredential([secret], () => now + 200_000).reusableToken(60_000),
    "for tools, of a release that did not say when it was made": () => {
      const parts = credential.reusableToken(60_000).split(".").slice(0, 6);
      const key = Buffer.from(hkdfSync("sha256", secret, "", "stamp cluster secret v1", 32));
      const body = parts.join(".");
      return `${body}.${createHmac("sha256", key).update("stamp grpc v1 token\n").update(body).digest("base64url")}`;
    },
    "for tools, with a later end": () => {
      const parts = credential.reusableToken(-1).split(".");
      parts[3] = String(now + 1_000_000);
      return parts.join(".");
    },
    "the raw secret": () => secret,
    "too long": () => "stamp1.".repeat(1_000),
  };
  const methods = allServices.flatMap((service) =>
    service.methods.map((method) => ({ path: `/${service.typeName}/${method.name}`, streams: method.methodKind !== "unary" })),
  );
  for (const name of ["v1", "v1alpha"])
    methods.push({ path: `/grpc.reflection.${name}.ServerReflection/ServerReflectionInfo`, streams: true });
  for (const [what, token] of Object.entries(tokens)) {
    const found = await Promise.all(
      methods.map(async ({ path, streams }) => [path, await statusOf(client, path, streams, token())] as const),
    );
    assert.deepEqual(
      found.filter(([, code]) => code !== status.UNAUTHENTICATED),
      [],
      `a token ${what}`,
    );
  }
  assert.equal(called, 1, "no handler was called");
  assert.equal(await statusOf(client, "/grpc.health.v1.Health/Check", false, undefined), status.OK);
  const tool = credential.reusableToken(86_400_000);
  for (let i = 0; i < 2; i++) assert.equal(await statusOf(client, "/stamp.v1.LockService/GetLease", false, tool), status.OK);
});

test("without the secret: refused before a message is taken, as unauthenticated and not applied, in both lanes and over gRPC", {
  timeout: 60_000,
}, async (t) => {
  let called = 0;
  const count = async () => {
    called++;
    return ok({});
  };
  const { address } = await served(t, {}, [servedPartly(ExtentNode, { append: count }), servedPartly(LockService, { getLease: count })]);
  const transports = [(by: Credential) => new GrpcTransport({ credential: () => by }), (by: Credential) => new OrdinaryGrpc(() => by)];
  for (const transportOf of transports) {
    for (const caller of [openCredential, wrong]) {
      const client = transportOf(caller);
      t.after(() => client.close());
      const outcomes = [
        await client.client(address, ExtentNode).append({ payload: [new Uint8Array(9)] }, call),
        await client.client(address, LockService).getLease({}, call),
      ];
      for (const outcome of outcomes) {
        assert.ok(!outcome.ok && outcome.failure.code === "unauthenticated" && outcome.failure.applied === "no", JSON.stringify(outcome));
      }
    }
    const client = transportOf(credential);
    t.after(() => client.close());
    unwrap(await client.client(address, LockService).getLease({}, call));
  }
  assert.equal(called, 2);
});

test("bus: a handshake that is replayed, reflected, altered or of another port is refused", { timeout: 60_000 }, async (t) => {
  const { port } = await served(t);
  const dialing = credential.dial(port);
  const genuine = stranger(t, port);
  genuine.write(dialing.opening);
  const answer = await nextBytes(genuine);
  const step = dialing.received(answer);
  assert.ok(step.kind === "proven" && step.bytes.length === 32);
  genuine.write(step.bytes);

  const proofs: Readonly<Record<string, (answer: Buffer) => Buffer>> = {
    replayed: () => step.bytes,
    "reflected: the server's own": (fresh) => fresh.subarray(answerBytes - 32, answerBytes),
    zeros: () => Buffer.alloc(32),
  };
  for (const [what, proof] of Object.entries(proofs)) {
    const socket = stranger(t, port);
    socket.write(dialing.opening);
    socket.write(Buffer.alloc(0));
    socket.write(proof(await nextBytes(socket)));
    assert.equal((await untilClosed(socket)).toString("hex"), "5342555302040000", what);
  }
  const hellos: Readonly<Record<string, [Buffer, string]>> = {
    "an unknown secret": [wrong.dial(port).opening, "5342555302030000"],
    "no secret": [openCredential.dial(port).opening, "5342555302030000"],
    "another port": [credential.dial(port === 65_535 ? 1 : port + 1).opening, "5342555302050000"],
    "the server's answer": [answer, "5342555302010000"],
    "bytes behind the hello": [Buffer.concat([credential.dial(port).opening, Buffer.alloc(40)]), "5342555302010000"],
    "the hello of version 1": [Buffer.from([0x53, 0x42, 0x55, 0x53, 1, 0, 0, 0]), "5342555302020000"],
    noise: [Buffer.from("GET / HTTP/1.1\r\n\r\n"), ""],
  };
  for (const [what, [hello, refusal]] of Object.entries(hellos)) {
    const socket = stranger(t, port);
    socket.write(hello);
    assert.equal((await untilClosed(socket)).toString("hex"), refusal, what);
  }
  // A server that answers a caller with what the caller itself says elsewhere.
  const mirrored = credential.dial(port);
  const reflected = mirrored.received(Buffer.concat([mirrored.opening.subarray(0, 40), answer.subarray(40)]));
  assert.ok(reflected.kind === "refused" && reflected.unauthenticated);
});

test("bus: a caller sends nothing of a call to a server that does not know the secret", { timeout: 60_000 }, async (t) => {
  let received = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const accepting = wrong.accept([(server.address() as AddressInfo).port]);
    socket
      .on("error", () => {})
      .on("data", (chunk: Buffer) => {
        received += chunk.length;
        const answer = Buffer.alloc(answerBytes, 7);
        chunk.copy(answer, 0, 0, 8);
        answer[6] = 0;
        socket.write(accepting.received(chunk).kind === "more" ? Buffer.alloc(0) : answer);
      });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const client = new GrpcTransport({ credential: () => credential });
  t.after(() => client.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const outcome = await client.client(address, ExtentNode).append({ payload: [new Uint8Array(5_000)] }, call);
  assert.ok(!outcome.ok && outcome.failure.code === "unauthenticated" && outcome.failure.applied === "no", JSON.stringify(outcome));
  assert.equal(received, helloBytes);
});

test("streams: nothing of a request is sent to a server that does not prove itself, and its maker is told to stop", {
  timeout: 60_000,
}, async (t) => {
  // It admits everybody and proves nothing.
  const impostor = await new GrpcTransport().serve("127.0.0.1:0", [
    servedPartly(FrontEnd, {
      getBlob: async function* () {
        yield { payload: new Uint8Array(1) };
      },
      putBlob: async () => ok({}),
    }),
  ]);
  t.after(() => impostor.close(0));
  const client = new GrpcTransport({ credential: () => credential });
  t.after(() => client.close());
  const frontEnd = client.client(impostor.address, FrontEnd);
  let asked = 0;
  const requests = (async function* () {
    asked++;
    yield { payload: new Uint8Array(1) };
  })();
  const put = await frontEnd.putBlob(requests, { timeoutMs: 1_000 });
  assert.ok(!put.ok, "it took a proof from nobody");
  assert.equal(asked, 0);
  assert.equal((await requests.next()).done, true);
  await assert.rejects(frontEnd.getBlob({}, { timeoutMs: 1_000 })[Symbol.asyncIterator]().next());
});

test("rotation: processes with the old secret, with both, and with the new one understand their neighbours in turn", {
  timeout: 60_000,
}, async () => {
  const renewed = "the secret of this stamp after it was changed";
  const stages = {
    old: new SecretCredential([secret]),
    both: new SecretCredential([renewed, secret]),
    renewed: new SecretCredential([renewed]),
  };
  type Stage = keyof typeof stages;
  const reaches = async (from: Stage, to: Stage): Promise<boolean> => {
    const listener = await new GrpcTransport({ credential: () => stages[to] }).serve("127.0.0.1:0", [
      servedPartly(LockService, { getLease: async () => ok({}) }),
      servedPartly(FrontEnd, {
        getBlob: async function* () {
          yield { payload: new Uint8Array(1) };
        },
      }),
    ]);
    const client = new GrpcTransport({ credential: () => stages[from] });
    const outcome = await client.client(listener.address, LockService).getLease({}, call);
    const stream = await client
      .client(listener.address, FrontEnd)
      .getBlob({}, call)
      [Symbol.asyncIterator]()
      .next()
      .then(
        () => true,
        () => false,
      );
    await client.close();
    await listener.close(0);
    assert.equal(outcome.ok, stream, "the bus and gRPC agree");
    return outcome.ok;
  };
  for (const [from, to, expected] of [
    ["old", "both", true],
    ["both", "old", true],
    ["both", "both", true],
    ["both", "renewed", true],
    ["renewed", "both", true],
    ["old", "renewed", false],
    ["renewed", "old", false],
  ] as const) {
    assert.equal(await reaches(from, to), expected, `${from} to ${to}`);
  }
});

test("handshake: the bytes of version 2 are frozen", () => {
  const frozen = new SecretCredential(
    [secret],
    () => 1_800_000_000_000,
    (count) => Buffer.alloc(count, 7),
  );
  const dialing = frozen.dial(11_100);
  const accepting = frozen.accept([11_100]);
  const answer = accepting.received(dialing.opening);
  assert.ok(answer.kind === "send");
  const proof = dialing.received(answer.bytes);
  assert.ok(proof.kind === "proven");
  assert.deepEqual(
    [dialing.opening, answer.bytes, proof.bytes].map((each) => each.toString("hex")),
    [
      "5342555302005c2b07070707070707070707070707070707070707070707070707070707070707073abd5a03c10e88590000000000000000",
      "534255530200000007070707070707070707070707070707070707070707070707070707070707073abd5a03c10e8859" +
        "f8953b299e0832494df2f9e01af6d7a18778868aaa04b2098995787e21318df9",
      "bc210035d03148c1369f59d4cf113ebaa7722697ca3a583b9ea54d703c24569d",
    ],
  );
  assert.equal(
    frozen.tokenFor(11_100).text,
    "stamp1.3abd5a03c10e8859.call.1800000060000.11100.BwcHBwcHBwcHBwcHBwcHBw.PC3dytTCtVFAa4gLa9lTKyw6dnLP_OrRiu604ne8PIM",
  );
});
