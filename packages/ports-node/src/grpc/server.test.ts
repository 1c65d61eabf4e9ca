/** One gRPC server seen from outside: by gRPC tools, by health checks, by clients that flood or send noise; and its receive windows. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:http2";
import { createRequire } from "node:module";
import { connect as dial } from "node:net";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { promisify } from "node:util";
import { toBinary } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { Client, credentials, Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { ok, refused, unwrap } from "@stamp/base";
import type { ServedService } from "@stamp/ports";
import { served, servedPartly } from "@stamp/ports";
import { ExtentNode, FrontEnd, GetLeaseRequestSchema, LockService, Status } from "@stamp/wire";
import { NodeClock } from "../clock.ts";
import { hostAndPort } from "./address.ts";
import { headBytes, kinds, writeHead } from "./bus/frame-assembler.ts";
import { openCredential, SecretCredential } from "./credentials/secret-credential.ts";
import { widenStreams } from "./native/window.ts";
import type { GrpcLimits } from "./options.ts";
import { GrpcTransport } from "./transport.ts";

const asIs = (bytes: Buffer): Buffer => bytes;
const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

async function started(
  t: TestContext,
  services: ServedService[],
  limits: Partial<GrpcLimits> = {},
): Promise<{ address: string; client: GrpcTransport }> {
  const server = new GrpcTransport({ limits });
  const client = new GrpcTransport({ limits });
  const listener = await server.serve("127.0.0.1:0", services);
  t.after(async () => {
    await client.close();
    await listener.close(0);
  });
  return { address: listener.address, client };
}

function rawCall(address: string, path: string, request: Uint8Array): Promise<{ error: ServiceError | null; answer: Buffer | undefined }> {
  const client = new Client(address, credentials.createInsecure());
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, asIs, asIs, Buffer.from(request), new Metadata(), { deadline: Date.now() + 5_000 }, (error, answer) => {
      client.close();
      resolve({ error, answer });
    });
  });
}

test("server: a plain gRPC call reaches the same handler; its failure carries reason, applied and details", async (t) => {
  const { address } = await started(t, [
    servedPartly(LockService, {
      getLease: async (request, context) => {
        assert.ok(context.deadlineMs > performance.now());
        return refused("failedPrecondition", "leaseEnded", `the lease ${request.name} ended`, {
          "x-ms-error-code": "Gone",
          currentTerm: "7",
        });
      },
    }),
  ]);
  const { error } = await rawCall(
    address,
    "/stamp.v1.LockService/GetLease",
    toBinary(GetLeaseRequestSchema, { $typeName: "stamp.v1.GetLeaseRequest", name: "a", knownEpoch: 0n, waitMs: 0 }),
  );
  assert.equal(error?.code, status.FAILED_PRECONDITION);
  assert.equal(error?.details, "the lease a ended");
  const keys = ["stamp-reason", "stamp-applied", "x-ms-error-code", "currentterm"];
  assert.deepEqual(
    keys.map((key) => error?.metadata.get(key)[0]),
    ["leaseEnded", "no", "Gone", "7"],
  );
});

test("server: health answers SERVING for the whole and for each service", async (t) => {
  const { address } = await started(t, [servedPartly(LockService, {})]);
  for (const name of ["", "stamp.v1.LockService"]) {
    const request = Buffer.concat([Buffer.from([0x0a, name.length]), Buffer.from(name)]);
    const { error, answer } = await rawCall(address, "/grpc.health.v1.Health/Check", request);
    assert.equal(error, null);
    assert.deepEqual([...(answer ?? [])], [0x08, 0x01], name);
  }
});

test("server: a gRPC tool lists and calls by reflection", { timeout: 60_000 }, async (t) => {
  const { address } = await started(t, [
    servedPartly(Status, {
      getStatus: async () => ok({ role: "extent-node", ready: true, facts: { free: 5, nested: { a: [true] } } }),
    }),
    servedPartly(ExtentNode, {}),
  ]);
  const buf = createRequire(import.meta.url).resolve("@bufbuild/buf/bin/buf");
  const curl = async (path: string, ...rest: string[]): Promise<string> => {
    const common = ["curl", "--protocol", "grpc", "--http2-prior-knowledge"];
    const { stdout } = await promisify(execFile)(process.execPath, [buf, ...common, ...rest, `http://${address}${path}`]);
    return stdout;
  };
  const listed = await curl("", "--list-methods");
  for (const method of ["stamp.v1.Status/GetStatus", "stamp.v1.ExtentNode/Append"]) assert.ok(listed.includes(method), listed);
  const answer = JSON.parse(await curl("/stamp.v1.Status/GetStatus", "-d", "{}"));
  assert.deepEqual(answer, { role: "extent-node", ready: true, facts: { free: 5, nested: { a: [true] } } });
  assert.ok(listed.includes("grpc.health.v1.Health/Check"), listed);
  assert.deepEqual(JSON.parse(await curl("/grpc.health.v1.Health/Check", "-d", '{"service":"stamp.v1.Status"}')), { status: "SERVING" });
});

test("bus: a receiver that is full stops reading, and every call is answered in the end", async (t) => {
  let running = 0;
  let most = 0;
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { address, client } = await started(
    t,
    [
      servedPartly(ExtentNode, {
        append: async () => {
          running += 1;
          most = Math.max(most, running);
          await gate;
          running -= 1;
          return ok({});
        },
      }),
    ],
    { inFlightCallsMax: 8, frameBytes: 64 * 1024, writingBytesMax: 256 * 1024 },
  );
  const node = client.client(address, ExtentNode);
  const calls = Array.from({ length: 300 }, () => node.append({ payload: [new Uint8Array(60_000)] }, { timeoutMs: 20_000 }));
  await tick();
  let before = -1;
  // On a busy machine the first of them come late; if they never do, the calls' deadline ends the test.
  while (most < 8 || most !== before) {
    before = most;
    for (let i = 0; i < 10; i++) await tick();
  }
  assert.ok(most >= 8 && most < 100, `${most} handlers were running`);
  release();
  for (const outcome of await Promise.all(calls)) unwrap(outcome);
});

test("bus: many small requests for large answers are held back by what their answers will be", async (t) => {
  let running = 0;
  let most = 0;
  const { address, client } = await started(
    t,
    [
      servedPartly(ExtentNode, {
        read: async () => {
          running += 1;
          most = Math.max(most, running);
          await tick();
          running -= 1;
          return ok({ payload: new Uint8Array(500_000) });
        },
      }),
    ],
    { inFlightBytesMax: 4_000_000, frameBytes: 1_000 },
  );
  const node = client.client(address, ExtentNode);
  unwrap(await node.read({}, { timeoutMs: 20_000 }));
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => node.read({}, { timeoutMs: 20_000 })));
  for (const outcome of outcomes) assert.equal(unwrap(outcome).payload.length, 500_000);
  // Bound: 4 MB of answers, one frame and the stream's own buffer of 16 frames.
  assert.ok(most >= 8 && most < 60, `${most} reads were running`);
});

test("bus: a sender with too much waiting refuses more, not applied; what was accepted is sent", async (t) => {
  const { address, client } = await started(t, [servedPartly(ExtentNode, { append: async () => ok({}) })], { queuedBytesMax: 1_000_000 });
  const node = client.client(address, ExtentNode);
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, () => node.append({ payload: [new Uint8Array(100_000)] }, { timeoutMs: 10_000 })),
  );
  const failures = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.failure]));
  assert.ok(failures.length >= 10 && failures.length < 20, `${failures.length} refused`);
  for (const failure of failures)
    assert.deepEqual([failure.code, failure.reason, failure.applied], ["resourceExhausted", "overloaded", "no"]);
});

test("bus: a message that is too large is refused before it is sent, or as unknown when it is an answer", async (t) => {
  const { address, client } = await started(
    t,
    [servedPartly(ExtentNode, { append: async () => ok({}), read: async () => ok({ payload: new Uint8Array(2_000_000) }) })],
    { messageBytesMax: 1_000_000 },
  );
  const node = client.client(address, ExtentNode);
  const request = await node.append({ payload: [new Uint8Array(2_000_000)] }, { timeoutMs: 5_000 });
  assert.ok(!request.ok && request.failure.reason === "messageTooLarge" && request.failure.applied === "no");
  const answer = await node.read({}, { timeoutMs: 5_000 });
  assert.ok(!answer.ok && answer.failure.reason === "messageTooLarge" && answer.failure.applied === "unknown");
  unwrap(await node.append({}, { timeoutMs: 5_000 }));
});

test("bus: a malformed frame ends its connection and nothing else", async (t) => {
  const { address, client } = await started(t, [servedPartly(LockService, { getLease: async () => ok({}) })]);
  const { host, port } = hostAndPort(address);
  const dialing = openCredential.dial(port);
  const socket = dial({ host, port });
  t.after(() => socket.destroy());
  socket.on("error", () => {});
  socket.write(dialing.opening);
  const [answer] = (await once(socket, "data")) as [Buffer];
  const step = dialing.received(answer);
  assert.ok(step.kind === "proven");
  const ended = once(socket, "close");
  socket.resume();
  const frame = Buffer.from([0x0a, 0xff, 0x01]);
  const head = Buffer.alloc(headBytes);
  writeHead(head, frame.length, kinds.frames);
  socket.write(Buffer.concat([step.bytes, head, frame]));
  await ended;
  unwrap(await client.client(address, LockService).getLease({}, { timeoutMs: 5_000 }));
});

test("bus: a request that is no message is a bad request, not applied, and its connection lives", async (t) => {
  const { address, client } = await started(t, [servedPartly(LockService, { getLease: async () => ok({}) })]);
  const outcome = await client.client(address, LockService).acquireLease({ termMs: -1 }, { timeoutMs: 5_000 });
  assert.ok(!outcome.ok && outcome.failure.reason === "badRequest" && outcome.failure.applied === "no");
  unwrap(await client.client(address, LockService).getLease({ name: "x" }, { timeoutMs: 5_000 }));
});

test("bus: a call while nobody listens fails quickly, and the first after somebody does succeeds", async (t) => {
  const first = await new GrpcTransport().serve("127.0.0.1:0", [servedPartly(LockService, {})]);
  await first.close(0);
  const client = new GrpcTransport();
  t.after(() => client.close());
  for (let i = 0; i < 4; i++) {
    const outcome = await client.client(first.address, LockService).getLease({}, { timeoutMs: 5_000 });
    assert.ok(!outcome.ok && outcome.failure.reason === "connectFailed", JSON.stringify(outcome));
  }
  const again = await new GrpcTransport().serve(first.address, [servedPartly(LockService, { getLease: async () => ok({}) })]);
  t.after(() => again.close(0));
  unwrap(await client.client(first.address, LockService).getLease({}, { timeoutMs: 5_000 }));
});

test("server: closing with grace answers what is running and refuses what comes, not applied", async (t) => {
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let entered = false;
  const server = new GrpcTransport();
  const client = new GrpcTransport();
  t.after(() => client.close());
  const listener = await server.serve("127.0.0.1:0", [
    servedPartly(LockService, {
      getLease: async () => {
        entered = true;
        await gate;
        return ok({ holder: "done" });
      },
      listLeases: async () => ok({}),
    }),
  ]);
  const lock = client.client(listener.address, LockService);
  const running = lock.getLease({}, { timeoutMs: 10_000 });
  while (!entered) await tick();
  const closed = listener.close(5_000);
  const refusedCall = await lock.listLeases({}, { timeoutMs: 5_000 });
  assert.ok(!refusedCall.ok && refusedCall.failure.applied === "no", JSON.stringify(refusedCall));
  release();
  assert.equal(unwrap(await running).holder, "done");
  await closed;
});

test("server: closing with grace lets a stream go on past keepalive pings, counts what it cuts, and the caller learns of it", async (t) => {
  const secret = new SecretCredential(["the secret of this stamp, 32 characters and more"]);
  const options = { limits: { keepAliveEveryMs: 50, keepAliveTimeoutMs: 60_000 }, credential: () => secret };
  // The server's time stands until the test moves it, so that a slow machine cuts nothing before its turn.
  let nowMs = 0;
  const clock = Object.assign(new NodeClock(), { monotonicMs: () => nowMs });
  const [server, client] = [new GrpcTransport({ ...options, clock }), new GrpcTransport(options)];
  t.after(() => client.close());
  let entered = 0;
  const listener = await server.serve("127.0.0.1:0", [
    servedPartly(FrontEnd, {
      putBlob: async (requests) => {
        let bytes = 0;
        for await (const { payload } of requests) {
          entered++;
          bytes += payload.length;
        }
        return ok({ contentLengthBytes: BigInt(bytes) });
      },
    }),
  ]);
  const [ends, never] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  t.after(() => never.resolve());
  async function* pieces(gate: Promise<void>) {
    yield { payload: Buffer.alloc(10) };
    await gate;
    yield { payload: Buffer.alloc(10) };
  }
  const door = client.client(listener.address, FrontEnd);
  const ending = door.putBlob(pieces(ends.promise), { timeoutMs: 60_000 });
  const tooLong = door.putBlob(pieces(never.promise), { timeoutMs: 60_000 });
  while (entered < 2) await tick();
  const closed = listener.close(1_500);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const late = await door.putBlob(pieces(Promise.resolve()), { timeoutMs: 60_000 });
  assert.ok(!late.ok && late.failure.reason === "stopping" && late.failure.applied === "no", JSON.stringify(late));
  ends.resolve();
  assert.equal(unwrap(await ending).contentLengthBytes, 20n);
  nowMs += 1_500;
  assert.equal(await closed, 1);
  const cut = await tooLong;
  assert.ok(
    !cut.ok && cut.failure.message === "the service stopped before the call was over" && cut.failure.applied === "unknown",
    JSON.stringify(cut),
  );
});

test("server: a port that is taken is a failure that says so", async (t) => {
  const { address } = await started(t, [servedPartly(LockService, {})]);
  await assert.rejects(new GrpcTransport().serve(address, [served(LockService, servedPartly(LockService, {}).handlers)]), /taken/);
});

test("windows: the internal of grpc-js that is touched is where it is expected, and streams get windows as wide as asked", async (t) => {
  const windowBytes = 3_000_000;
  assert.equal(widenStreams({} as Server, windowBytes), false);
  const server = new Server();
  assert.equal(widenStreams(server, windowBytes), true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  t.after(() => server.forceShutdown());
  // The settings of the connection that the peer is told.
  const session = connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const [settings] = (await once(session, "remoteSettings")) as [{ initialWindowSize: number }];
  assert.equal(settings.initialWindowSize, windowBytes);
});
