/**
 * One listening server: the bus on plain connections, and from the first HTTP/2 connection on the same handlers as ordinary gRPC methods,
 * with health and reflection. One port for all of it.
 */
import type { Socket } from "node:net";
import { FailureError } from "@stamp/base";
import type { Address, Clock, Listener, ServedService } from "@stamp/ports";
import { hostAndPort } from "./address.ts";
import { BusServerConnection } from "./bus/bus-server.ts";
import type { FrameLink, LinkEvents } from "./bus/frame-link.ts";
import { FrameMemory } from "./bus/frame-memory.ts";
import { TcpLink } from "./bus/tcp-link.ts";
import type { Proven } from "./credentials/credential.ts";
import { RefusalLog } from "./credentials/refusal-log.ts";
import { Door, peerOf } from "./door.ts";
import { servedUnaries } from "./methods.ts";
import { LaterServer, type ServerContext } from "./native/later-server.ts";

const graceDefaultMs = 1_000;

/** Time that the last answers, and the failures of calls that are cut, have to leave, in milliseconds. */
const flushMs = 500;

export async function listenGrpc(context: ServerContext, listen: Address, services: readonly ServedService[]): Promise<Listener> {
  const { limits } = context;
  const refusalLog = new RefusalLog(context.clock, context.logger);
  const onRefused = (peer: string, why: string): void => refusalLog.note(peer, why);
  let ports = portsOf(context.advertised);
  const connections = new Set<BusServerConnection>();
  const methods = servedUnaries(services);
  const memory = new FrameMemory(limits.reusedBytesMax);
  const connect = (socket: Socket, begin: Buffer, by: Proven): void => {
    const peer = peerOf(socket);
    const { caller, name } = by;
    // Asked at each frame: the credential is another object only after a secret was changed.
    const proven = context.credential();
    const stands = (): boolean => {
      const now = context.credential();
      return now === proven || now.stillAccepts(by);
    };
    const served = { ...context, methods, memory, stands, caller, name, onForbidden: (why: string) => onRefused(peer, why) };
    const accept = (events: LinkEvents): FrameLink => TcpLink.accepted(socket, begin, limits, memory, events);
    const connection = new BusServerConnection(served, peer, accept, () => connections.delete(connection));
    connections.add(connection);
  };
  const grpc = new LaterServer(context.logger, () => ({
    context,
    services,
    descriptors: services.map(({ service }) => service),
    guard: {
      open: services.filter(({ open }) => open === true).map(({ service }) => service),
      credential: context.credential,
      ports: () => ports,
      callerAt: (peer) => door.callerAt(peer),
      onAdmitted: (peer) => door.admitted(peer),
      onRefused,
    },
  }));
  const door = new Door({
    proveTimeoutMs: limits.proveTimeoutMs,
    unprovenMax: limits.unprovenMax,
    tls: context.tls,
    handshake: () => context.credential().accept(ports),
    plain: connect,
    http2: (socket) => grpc.take(socket),
    onRefused,
  });
  const port = await bind(door, listen);
  ports = [port, ...ports];
  const address = `${listen.slice(0, listen.lastIndexOf(":"))}:${port}`;
  let closing: Promise<number> | undefined;
  const close = async (graceMs: number): Promise<number> => {
    door.close();
    const server = await grpc.leave();
    const runningCount = (): number => server?.runningCount ?? 0;
    if (graceMs > 0) {
      server?.drain();
      for (const connection of [...connections]) connection.drain();
      await whileTrue(context.clock, () => connections.size > 0 || runningCount() > 0, graceMs);
    }
    const cut = [...connections].reduce((sum, connection) => sum + connection.runningCount, runningCount());
    server?.cut();
    for (const connection of [...connections]) connection.destroy();
    await server?.shutDown(async () => {
      if (graceMs > 0) await whileTrue(context.clock, () => server.connections > 0, flushMs);
    });
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

/** Waits while `holds` is true, for this time at most; looks every 5 ms. */
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
