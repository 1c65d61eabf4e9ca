/** Strangers that say nothing or prove nothing: few are kept, each is dropped in time, and they keep nobody out. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { ok, unwrap } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { LockService } from "@stamp/wire";
import { GrpcTransport } from "../transport.ts";
import { tokenKey } from "./credential.ts";
import { asIs, call, credential, served, statusOf, stranger } from "./testing/strangers.ts";

/** Sockets of callers without a secret. It counts how many are open and how many the server has closed. */
async function crowd(t: TestContext, port: number, count: number, say: (socket: Socket, at: number) => unknown): Promise<Set<Socket>> {
  const open = new Set<Socket>();
  for (let i = 0; i < count; i++) {
    const socket = stranger(t, port);
    open.add(socket);
    socket.on("close", () => open.delete(socket)).resume();
    await once(socket, "connect");
    await say(socket, i);
  }
  return open;
}

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let i = 0; i < 2_000; i++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(what);
}

const saysLittle = (socket: Socket, at: number): void => {
  if (at % 3 === 1) socket.write("SBUS");
  if (at % 3 === 2) socket.write(credential.dial(socket.remotePort as number).opening);
};

test("door: of strangers that say nothing, or half a handshake, few are kept, and they keep nobody out", { timeout: 60_000 }, async (t) => {
  const limits = { unprovenMax: 8, proveTimeoutMs: 50_000 };
  const { address, port } = await served(t, limits, [servedPartly(LockService, { getLease: async () => ok({}) })]);
  const reached = async (): Promise<void> => {
    const client = new GrpcTransport({ credential: () => credential });
    unwrap(await client.client(address, LockService).getLease({}, call));
    await client.close();
  };
  await reached();
  const open = await crowd(t, port, 40, saysLittle);
  await until("the oldest give way", () => open.size <= 8);
  assert.ok(open.size > 0, "the newest stay");
  await reached();
});

test("door: a stranger that proves nothing is dropped in time, however far it got", { timeout: 60_000 }, async (t) => {
  const { port } = await served(t, { proveTimeoutMs: 200 });
  const open = await crowd(t, port, 3, saysLittle);
  await until("all are dropped", () => open.size === 0);
});

test("door: HTTP/2 connections without an admitted call give way to new ones; one with a call stays", { timeout: 60_000 }, async (t) => {
  const { address, port } = await served(t, { unprovenMax: 4, keepAliveEveryMs: 100_000 }, [
    servedPartly(LockService, { getLease: async () => ok({}) }),
  ]);
  const tool = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  t.after(() => tool.close());
  const seen = (): Promise<void> => {
    const metadata = new Metadata();
    metadata.set(tokenKey, credential.reusableToken(60_000));
    return new Promise((resolve, reject) => {
      const path = "/stamp.v1.LockService/GetLease";
      tool.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), metadata, (error) => (error ? reject(error) : resolve()));
    });
  };
  await seen();
  const state = tool.getChannel();
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
  // Each until the server has answered: then it is known as a connection of HTTP/2.
  const open = await crowd(t, port, 20, (socket) => {
    socket.write(preface);
    return once(socket, "data");
  });
  await until("the oldest give way", () => open.size <= 4);
  assert.equal(state.getConnectivityState(false), 2, "ready: its connection was not closed");
  await seen();
  const health = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  t.after(() => health.close());
  assert.equal(await statusOf(health, "/grpc.health.v1.Health/Check", false, undefined), status.OK);
});
