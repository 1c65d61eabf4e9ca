/**
 * One listening server: the given services as ordinary gRPC methods, the bus over the same handlers (through gRPC and on plain
 * connections), health and reflection for all. One port for all of it.
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { Server } from "@grpc/grpc-js";
import { FailureError } from "@stamp/base";
import type { Address, Clock, Listener, Logger, ServedService } from "@stamp/ports";
import { Bus } from "@stamp/wire";
import { HealthImplementation } from "grpc-health-check";
import { hostAndPort } from "./address.ts";
import { BusServerConnection } from "./bus/bus-server.ts";
import type { FrameLink, LinkEvents } from "./bus/frame-link.ts";
import { FrameMemory } from "./bus/frame-memory.ts";
import { GrpcServerLink } from "./bus/grpc-links.ts";
import { TcpLink } from "./bus/tcp-link.ts";
import { widenConnection, widenStreams } from "./bus/window.ts";
import type { Credential, Proven } from "./credentials/credential.ts";
import { guard, provenOf } from "./credentials/guard.ts";
import type { PeerTls } from "./credentials/peer-tls.ts";
import { RefusalLog } from "./credentials/refusal-log.ts";
import { Door, peerOf } from "./door.ts";
import { servedUnaries } from "./methods.ts";
import { busDefinition, serverDefinition } from "./native/definitions.ts";
import { Draining } from "./native/draining.ts";
import { nativeHandlers, type RunningCall } from "./native/native-server.ts";
import type { GrpcLimits } from "./options.ts";
import { serverCredentials, serverOptions } from "./options.ts";

const graceDefaultMs = 1_000;

/** Time that the last answers, and the failures of calls that are cut, have to leave, in milliseconds. */
const flushMs = 500;

export interface ServerContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: GrpcLimits;
  /** Credential of callers. */
  readonly credential: () => Credential;
  /** Certificates, with which both sides prove who they are; undefined without TLS. */
  readonly tls?: (() => PeerTls) | undefined;
  /** Where others reach this process, when that is not where it listens. */
  readonly advertised?: Address | undefined;
}

export async function listenGrpc(context: ServerContext, listen: Address, services: readonly ServedService[]): Promise<Listener> {
  const { limits } = context;
  const refusalLog = new RefusalLog(context.clock, context.logger);
  const onRefused = (peer: string, why: string): void => refusalLog.note(peer, why);
  let ports = portsOf(context.advertised);
  const interceptor = guard({
    open: services.filter(({ open }) => open === true).map(({ service }) => service),
    credential: context.credential,
    ports: () => ports,
    callerAt: (peer) => door.callerAt(peer),
    onAdmitted: (peer) => door.admitted(peer),
    onRefused,
  });
  const draining = new Draining();
  const server = new Server({ ...serverOptions(limits), interceptors: [draining.interceptor, interceptor] });
  widenStreams(server, limits.windowBytes);
  const running = new Set<RunningCall>();
  const connections = new Set<BusServerConnection>();
  const methods = servedUnaries(services);
  const memory = new FrameMemory(limits.reusedBytesMax);
  const connect = (peer: string, { id, caller, name }: Proven, accept: (events: LinkEvents) => FrameLink): void => {
    // Asked at each frame: the credential is another object only after a secret was changed.
    const proven = context.credential();
    const stands = (): boolean => {
      const now = context.credential();
      return now === proven || now.open || now.accepts.includes(id) || now.acceptsPeers.includes(id);
    };
    const served = { ...context, methods, memory, stands, caller, name, onForbidden: (why: string) => onRefused(peer, why) };
    const connection = new BusServerConnection(served, peer, accept, () => connections.delete(connection));
    connections.add(connection);
  };
  for (const given of services)
    server.addService(
      serverDefinition(given.service),
      nativeHandlers({ ...context, running, onAuthorized: (peer) => door.admitted(peer) }, given),
    );
  server.addService(busDefinition, {
    Connect: (stream: ServerDuplexStream<Buffer, Buffer>) => {
      widenConnection(stream, limits.windowBytes);
      connect(stream.getPeer(), provenOf(stream.metadata), (events) => new GrpcServerLink(stream, events));
    },
  });
  const descriptors = [...services.map(({ service }) => service), Bus];
  const health = new HealthImplementation(
    Object.fromEntries(["", ...descriptors.map(({ typeName }) => typeName)].map((name) => [name, "SERVING"])),
  );
  health.addToServer(server);
  // Only here: it is large, and a process that only calls needs none of it.
  const { addReflection } = await import("./native/reflection.ts");
  addReflection(server, descriptors);

  const injector = server.createConnectionInjector(serverCredentials());
  draining.watch(server);
  const door = new Door({
    proveTimeoutMs: limits.proveTimeoutMs,
    unprovenMax: limits.unprovenMax,
    tls: context.tls,
    handshake: () => context.credential().accept(ports),
    plain: (socket, begin, by) => connect(peerOf(socket), by, (events) => TcpLink.accepted(socket, begin, limits, memory, events)),
    http2: (socket) => injector.injectConnection(socket),
    onRefused,
  });
  const port = await bind(door, listen);
  ports = [port, ...ports];
  const address = `${listen.slice(0, listen.lastIndexOf(":"))}:${port}`;
  let closing: Promise<number> | undefined;
  const close = async (graceMs: number): Promise<number> => {
    door.close();
    for (const { typeName } of descriptors) health.setStatus(typeName, "NOT_SERVING");
    health.setStatus("", "NOT_SERVING");
    if (graceMs > 0) {
      draining.begin();
      for (const connection of [...connections]) connection.drain();
      await whileTrue(context.clock, () => connections.size > 0 || running.size > 0, graceMs);
    }
    const cut = [...connections].reduce((sum, connection) => sum + connection.runningCount, running.size);
    for (const call of running) call.cut();
    for (const connection of [...connections]) connection.destroy();
    const ended = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    if (graceMs > 0) await whileTrue(context.clock, () => draining.connections > 0, flushMs);
    server.forceShutdown();
    await ended;
    return cut;
  };
  return {
    address,
    close: (graceMs = graceDefaultMs) => {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

/** Waits while `holds`, at most so long; looks every 5 ms. */
async function whileTrue(clock: Clock, holds: () => boolean, atMostMs: number): Promise<void> {
  const endMs = clock.monotonicMs() + atMostMs;
  while (holds() && clock.monotonicMs() < endMs) await new Promise((resolve) => setTimeout(resolve, 5));
}

const portsOf = (address: Address | undefined): readonly number[] => (address === undefined ? [] : [hostAndPort(address).port]);

async function bind(door: Door, listen: Address): Promise<number> {
  try {
    return await door.listen(listen);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const taken = code === "EADDRINUSE";
    throw new FailureError({
      code: taken ? "alreadyExists" : "unavailable",
      reason: taken ? "conflict" : "connectFailed",
      message: taken ? `${listen} is taken by another process` : `can't listen at "${listen}": ${message}`,
      applied: "no",
    });
  }
}
