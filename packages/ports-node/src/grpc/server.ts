/**
 * One listening gRPC server: the given services as ordinary methods, the bus over the same handlers, health and reflection for all.
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { Server } from "@grpc/grpc-js";
import { FailureError } from "@stamp/base";
import type { Address, Clock, Listener, Logger, ServedService } from "@stamp/ports";
import { Bus } from "@stamp/wire";
import { HealthImplementation } from "grpc-health-check";
import { BusServerConnection } from "./bus-server.ts";
import type { CallState } from "./call-state.ts";
import { busDefinition, serverDefinition } from "./definitions.ts";
import { servedUnaries } from "./methods.ts";
import { nativeHandlers } from "./native-server.ts";
import type { GrpcLimits } from "./options.ts";
import { serverCredentials, serverOptions } from "./options.ts";
import { addReflection } from "./reflection.ts";
import { widenConnection, widenStreams } from "./window.ts";

const graceDefaultMs = 1_000;

export interface ServerContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: GrpcLimits;
}

export async function listenGrpc(context: ServerContext, listen: Address, services: readonly ServedService[]): Promise<Listener> {
  const { limits } = context;
  const server = new Server(serverOptions(limits));
  widenStreams(server, limits.windowBytes);
  const running = new Set<CallState>();
  const connections = new Set<BusServerConnection>();
  const methods = servedUnaries(services);
  for (const given of services) server.addService(serverDefinition(given.service), nativeHandlers({ ...context, running }, given));
  server.addService(busDefinition, {
    Connect: (stream: ServerDuplexStream<Buffer, Buffer>) => {
      widenConnection(stream, limits.windowBytes);
      const connection = new BusServerConnection({ ...context, methods }, stream, () => connections.delete(connection));
      connections.add(connection);
    },
  });
  const descriptors = [...services.map(({ service }) => service), Bus];
  const health = new HealthImplementation(
    Object.fromEntries(["", ...descriptors.map(({ typeName }) => typeName)].map((name) => [name, "SERVING"])),
  );
  health.addToServer(server);
  addReflection(server, descriptors);

  const port = await bind(server, listen);
  const address = `${listen.slice(0, listen.lastIndexOf(":"))}:${port}`;
  let closing: Promise<void> | undefined;
  const close = async (graceMs: number): Promise<void> => {
    for (const { typeName } of descriptors) health.setStatus(typeName, "NOT_SERVING");
    health.setStatus("", "NOT_SERVING");
    const ended = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    if (graceMs > 0) {
      for (const connection of [...connections]) connection.drain();
      const deadlineMs = context.clock.monotonicMs() + graceMs;
      while ((connections.size > 0 || running.size > 0) && context.clock.monotonicMs() < deadlineMs) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    for (const state of running) state.abort();
    server.forceShutdown();
    await ended;
  };
  return {
    address,
    close: (graceMs = graceDefaultMs) => {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

function bind(server: Server, listen: Address): Promise<number> {
  const failed = (error: Error): FailureError => {
    const taken = /EADDRINUSE/.test(error.message);
    return new FailureError({
      code: taken ? "alreadyExists" : "unavailable",
      reason: taken ? "conflict" : "connectFailed",
      message: taken ? `${listen} is taken by another process` : `can't listen at "${listen}": ${error.message}`,
      applied: "no",
    });
  };
  return new Promise((resolve, reject) => {
    try {
      server.bindAsync(listen, serverCredentials(), (error, port) => {
        if (!error) return resolve(port);
        server.forceShutdown();
        reject(failed(error));
      });
    } catch (error) {
      reject(failed(error as Error));
    }
  });
}
