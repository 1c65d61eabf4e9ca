/** Plain connections of the bus, seen from a stranger on the same port, and when the other side is gone or says nothing. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { type ServedService, servedPartly } from "@stamp/ports";
import { ExtentNode } from "@stamp/wire";
import { openCredential } from "../credentials/secret-credential.ts";
import type { GrpcLimits } from "../options.ts";
import { GrpcTransport } from "../transport.ts";
import { kinds, writeHead } from "./frame-assembler.ts";

const append = servedPartly(ExtentNode, { append: async (request) => ok({ endBytes: BigInt(request.payload[0]?.length ?? 0) }) });

async function served(
  t: TestContext,
  limits: Partial<GrpcLimits> = {},
  service: ServedService = append,
): Promise<{ address: string; client: GrpcTransport }> {
  const client = new GrpcTransport({ limits });
  const listener = await new GrpcTransport({ limits }).serve("127.0.0.1:0", [service]);
  t.after(async () => {
    await client.close();
    await listener.close(0);
  });
  return { address: listener.address, client };
}

function stranger(t: TestContext, address: string): Socket {
  const socket = connect({ host: "127.0.0.1", port: Number(address.split(":")[1]) });
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  return socket;
}

/** Starts a server that is none of ours; `greet` handles each connection. */
async function strangeServer(t: TestContext, greet: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    greet(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("plain connection: a hello in pieces is answered; noise behind it ends that connection and no other", {
  timeout: 60_000,
}, async (t) => {
  const { address, client } = await served(t);
  const node = client.client(address, ExtentNode);
  assert.equal(unwrap(await node.append({ payload: [new Uint8Array(9)] }, { timeoutMs: 5_000 })).endBytes, 9n);
  const socket = stranger(t, address);
  await once(socket, "connect");
  const dialing = openCredential.dial(Number(address.split(":")[1]));
  socket.write(dialing.opening.subarray(0, 3));
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.write(dialing.opening.subarray(3));
  const [answer] = (await once(socket, "data")) as [Buffer];
  const step = dialing.received(answer);
  assert.ok(step.kind === "proven");
  socket.write(step.bytes);
  const closed = once(socket, "close");
  const head = Buffer.alloc(8);
  writeHead(head, 3, kinds.frames);
  socket.write(Buffer.concat([head, Buffer.from([0x0a, 0xff, 0x01])]));
  await closed;
  assert.equal(unwrap(await node.append({ payload: [new Uint8Array(7)] }, { timeoutMs: 5_000 })).endBytes, 7n);
});

test("plain connection: another version of the hello, and one that never comes, are closed", { timeout: 60_000 }, async (t) => {
  const { address } = await served(t, { proveTimeoutMs: 100 });
  const other = stranger(t, address);
  // The whole hello of version 1.
  other.write(Buffer.from([0x53, 0x42, 0x55, 0x53, 1, 0, 0, 0]));
  const [refusal] = (await once(other, "data")) as unknown as [Buffer];
  assert.equal(refusal.toString("hex"), "5342555302020000", "in this version, and why");
  await once(other, "close");
  const silent = stranger(t, address);
  await once(silent, "close");
});

test("plain connection: calls to a server that does not say hello were not applied", { timeout: 60_000 }, async (t) => {
  const client = new GrpcTransport({ limits: { connectTimeoutMs: 100 } });
  t.after(() => client.close());
  for (const greet of [(socket: Socket) => socket.end(), () => {}, (socket: Socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")]) {
    const address = await strangeServer(t, greet);
    const outcome = await client.client(address, ExtentNode).append({}, { timeoutMs: 5_000 });
    assert.ok(!outcome.ok && outcome.failure.reason === "connectFailed" && outcome.failure.applied === "no", JSON.stringify(outcome));
  }
});

test("plain connection: a server that falls silent is given up, and what was sent is unknown", { timeout: 60_000 }, async (t) => {
  const address = await strangeServer(t, (socket) => {
    const accepting = openCredential.accept([socket.localPort as number]);
    socket.once("data", (hello: Buffer) => {
      const step = accepting.received(hello);
      if (step.kind === "send") socket.write(step.bytes);
    });
  });
  const client = new GrpcTransport({ limits: { keepAliveEveryMs: 50, keepAliveTimeoutMs: 50 } });
  t.after(() => client.close());
  const outcome = await client.client(address, ExtentNode).append({}, { timeoutMs: 15_000 });
  assert.ok(!outcome.ok && outcome.failure.reason === "connectionLost" && outcome.failure.applied === "unknown", JSON.stringify(outcome));
});

test("plain connection: one without calls lives on signs of life", { timeout: 60_000 }, async (t) => {
  const peers = new Set<string>();
  const counted = servedPartly(ExtentNode, {
    append: async (_request, context) => {
      peers.add(context.peer);
      return ok({});
    },
  });
  const { address, client } = await served(t, { keepAliveEveryMs: 100, keepAliveTimeoutMs: 300 }, counted);
  const node = client.client(address, ExtentNode);
  for (let i = 0; i < 3; i++) {
    unwrap(await node.append({}, { timeoutMs: 5_000 }));
    await new Promise((resolve) => setTimeout(resolve, 900));
  }
  assert.equal(peers.size, 1, "the connection was given up");
});

test("plain connection: frames that come with the caller's proof, whole and in part, are taken once and in order", {
  timeout: 60_000,
}, async (t) => {
  const seen: number[] = [];
  const counted = servedPartly(ExtentNode, {
    append: async (request) => {
      seen.push(request.payload[0]?.length ?? 0);
      return ok({});
    },
  });
  const { address } = await served(t, {}, counted);
  // Bytes that a caller of ours sends, recorded by a server that never answers its calls.
  const recorded: Buffer[] = [];
  const frames = Promise.withResolvers<Buffer>();
  const sizes = [5, 70_000, 6];
  const recorder = await strangeServer(t, (socket) => {
    const accepting = openCredential.accept([socket.localPort as number]);
    let begun = false;
    socket.on("data", (chunk: Buffer) => {
      if (!begun) {
        begun = true;
        const step = accepting.received(chunk);
        if (step.kind === "send") socket.write(step.bytes);
        return;
      }
      recorded.push(chunk);
      const all = Buffer.concat(recorded);
      if (all.length > 32 + 70_000 + 60) frames.resolve(all.subarray(32));
    });
  });
  const client = new GrpcTransport({ limits: { frameBytes: 1 } });
  t.after(() => client.close());
  for (const size of sizes) {
    void client.client(recorder, ExtentNode).append({ payload: [new Uint8Array(size)] }, { timeoutMs: 10_000 });
  }
  const said = await frames.promise;
  for (const cut of [0, 1, 9, 30, 1_000, said.length]) {
    seen.length = 0;
    const socket = stranger(t, address);
    const dialing = openCredential.dial(Number(address.split(":")[1]));
    socket.write(dialing.opening);
    const [answer] = (await once(socket, "data")) as unknown as [Buffer];
    const step = dialing.received(answer);
    assert.ok(step.kind === "proven");
    socket.write(Buffer.concat([step.bytes, said.subarray(0, cut)]));
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.write(said.subarray(cut));
    while (seen.length < sizes.length) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(seen, sizes, `cut behind ${cut} bytes`);
    socket.destroy();
  }
});
