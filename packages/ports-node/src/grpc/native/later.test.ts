/** Processes serve and call each other without grpc-js, which is loaded by the first HTTP/2 connection. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { ok, unwrap } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { LockService } from "@stamp/wire";
import { GrpcTransport } from "../transport.ts";

const index = pathToFileURL(new URL("../../index.ts", import.meta.url).pathname).href;

const program = `
import { createRequire } from "node:module";
import { connect } from "node:http2";
import { once } from "node:events";
const { GrpcTransport } = await import(${JSON.stringify(index)});
const loaded = () => Object.keys(createRequire("file:///x.js").cache).filter((name) => /@grpc|grpc-health-check|protobufjs/.test(name)).length;
const transport = new GrpcTransport();
const listener = await transport.serve("127.0.0.1:0", []);
const before = loaded();
const session = connect("http://" + listener.address);
await once(session, "remoteSettings");
session.destroy();
await listener.close(0);
console.log(JSON.stringify([before, loaded()]));
process.exit(0);
`;

test("transport: a process that serves has not loaded grpc-js; the first HTTP/2 connection loads it", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  const [before, after] = JSON.parse(stdout) as [number, number];
  assert.equal(before, 0);
  assert.ok(after > 0, "the other half says nothing");
});

test("transport: connections of gRPC that come at once, before its server is loaded, are all served", async (t) => {
  const server = new GrpcTransport();
  const listener = await server.serve("127.0.0.1:0", [servedPartly(LockService, {})]);
  t.after(() => listener.close(0));
  const asIs = (bytes: Buffer): Buffer => bytes;
  const codes = Array.from({ length: 8 }, () => {
    const client = new Client(listener.address, credentials.createInsecure());
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        "/stamp.v1.LockService/GetLease",
        asIs,
        asIs,
        Buffer.alloc(0),
        new Metadata(),
        { deadline: Date.now() + 20_000 },
        (error) => {
          client.close();
          resolve(error?.code);
        },
      );
    });
  });
  assert.deepEqual(await Promise.all(codes), Array(8).fill(status.UNIMPLEMENTED));
});

test("transport: a connection that is gone before the server of gRPC is loaded harms nobody", async (t) => {
  const server = new GrpcTransport();
  const listener = await server.serve("127.0.0.1:0", [servedPartly(LockService, { getLease: async () => ok({}) })]);
  const client = new GrpcTransport();
  t.after(async () => {
    await client.close();
    await listener.close(0);
  });
  const [host = "", port = ""] = listener.address.split(":");
  const gone = connect(Number(port), host);
  await once(gone, "connect");
  gone.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  gone.resetAndDestroy();
  const session = connectHttp2(`http://${listener.address}`);
  await once(session, "remoteSettings");
  session.destroy();
  unwrap(await client.client(listener.address, LockService).getLease({ name: "a" }, { timeoutMs: 20_000 }));
});

test("transport: a server that closes ends a connection of gRPC that still waits", async () => {
  const server = new GrpcTransport();
  const listener = await server.serve("127.0.0.1:0", [servedPartly(LockService, {})]);
  const session = connectHttp2(`http://${listener.address}`);
  session.on("error", () => {});
  const ended = once(session, "close");
  await once(session, "connect");
  await listener.close(0);
  await ended;
});
