/** Nodes whose port is closed, and nodes that accept a connection and never answer. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { Availability } from "../availability.ts";
import { EndpointBalancer } from "../balancer.ts";
import { availabilityService, GrpcAvailability } from "./availability.ts";

const sockets = new Set<Socket>();
let silentServer: Server;
let goodServer: GrpcServer;
/** Nobody listens on this port. One that was free a moment ago can be given to another process. */
const closed = "127.0.0.1:1";
let silent = "";
let good = "";

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
};

before(async () => {
  silentServer = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  silent = await listening(silentServer);
  goodServer = new GrpcServer();
  const { definition, implementation } = availabilityService(new Availability());
  goodServer.addService(definition, implementation);
  good = await new Promise((resolve, reject) => {
    goodServer.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(`127.0.0.1:${port}`),
    );
  });
});
after(() => {
  for (const socket of sockets) socket.destroy();
  silentServer.close();
  goodServer.forceShutdown();
});

test("a closed port and a silent node are each a no; the node behind them serves", async () => {
  const availability = new GrpcAvailability();
  try {
    for (const nodes of [
      [closed, good],
      [silent, good],
      [closed, silent, good],
    ]) {
      const balancer = new EndpointBalancer({ nodes, ordinal: 0, isAvailable: availability.ask, deadlineMs: 500 });
      assert.deepEqual(await balancer.resolve(), { kind: "node", node: good });
      const { nodes: counted } = balancer.counters();
      for (const node of nodes.slice(0, -1)) assert.equal((counted[node]?.errors ?? 0) + (counted[node]?.timeouts ?? 0), 1, node);
    }
  } finally {
    availability.close();
  }
});

test("when nobody answers, that is the outcome, and a call says so", async () => {
  const availability = new GrpcAvailability();
  try {
    const balancer = new EndpointBalancer({ nodes: [closed, silent], ordinal: 1, isAvailable: availability.ask, deadlineMs: 300 });
    const resolution = await balancer.resolve();
    assert.ok(resolution.kind === "none" && resolution.retryAfterMs > 0);
    await assert.rejects(
      balancer.call(
        () => assert.fail("no node to call"),
        () => true,
      ),
      { name: "NoNodeAvailableError" },
    );
  } finally {
    availability.close();
  }
});

test("a question ends with its signal, also if that was aborted before, and leaves no listener", async () => {
  const availability = new GrpcAvailability();
  try {
    const abort = new AbortController();
    const asked = availability.ask(silent, abort.signal);
    abort.abort();
    await assert.rejects(asked);
    await assert.rejects(availability.ask(silent, abort.signal), { name: "AbortError" });
    const later = new AbortController();
    assert.equal(await availability.ask(good, later.signal), true);
    await assert.rejects(availability.ask(closed, later.signal));
    assert.equal(getEventListeners(later.signal, "abort").length, 0);
  } finally {
    availability.close();
  }
});
