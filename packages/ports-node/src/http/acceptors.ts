/**
 * More than one door frame for a port. libuv accepts one connection of a listening socket in a turn of the event loop, in the order in which
 * they came: while turns are long, hundreds of new connections of one client stand for seconds before the first one of another. So a
 * port has several listening sockets (SO_REUSEPORT), among which the kernel spreads connections: as many are accepted in a turn, and who
 * comes waits behind a part of those that came before only.
 *
 * The port is still one process's: before it is shared among sockets of this one it is taken without SO_REUSEPORT, which fails when
 * anybody has it. Where the system does not know SO_REUSEPORT there is one socket, as ever.
 */
import type { Server as HttpServer } from "node:http";
import type { Server as HttpsServer } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import { ConnectionPlaces, clientAddress, type HeldHead, headsToEnd, type PlacesOptions } from "@stamp/base";
import { boundUnsent } from "./unsent-bound.ts";

export const acceptorsMax = 16;
const backlog = 4096;
const shares = process.platform === "linux";

/** Time between two looks at what idle connections hold, in milliseconds. */
const headsEveryMs = 250;

/**
 * Memory of this process for a TLS connection whose handshake has begun, in bytes. Measured: 69 KB.
 */
const handshakeBytes = 64 * 1024;

export interface AcceptorsOptions extends PlacesOptions {
  /** Largest head of a request, in bytes. */
  readonly headerBytesMax: number;
  /** Bound of the bytes of all unfinished heads; beyond it connections are ended. */
  readonly headBytesMax: number;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

/** Listening sockets beside the one that `server` itself has; what they accept is the server's. */
export class Acceptors {
  readonly #server: HttpServer | HttpsServer;
  readonly #more: Server[] = [];
  readonly #places: ConnectionPlaces<string>;
  /** Open connections, by the client's address and port. */
  readonly #sockets = new Map<string, Socket>();
  /** Number of bytes of each connection when its last request was answered. */
  readonly #answeredAt = new Map<string, number>();
  /** TLS connections whose handshake is over. */
  readonly #shaken = new Set<string>();
  readonly #options: AcceptorsOptions;
  #looking: NodeJS.Timeout | undefined;

  constructor(server: HttpServer | HttpsServer, options: AcceptorsOptions) {
    this.#server = server;
    this.#options = options;
    this.#places = new ConnectionPlaces(options);
    // Before the server's own listener, of which a destroyed socket wants nothing.
    server.prependListener("connection", (socket: Socket) => this.#count(socket));
    server.on("secureConnection", (socket: Socket) => this.#sockets.has(nameOf(socket)) && this.#shaken.add(nameOf(socket)));
  }

  /** Returns true if the bytes that the system holds unsent are bounded for each connection. */
  async listen(place: Place): Promise<boolean> {
    await this.#listen(place);
    return [this.#server, ...this.#more].every((server) => boundUnsent(server));
  }

  async #listen({ host, port }: Place): Promise<void> {
    if (!shares) return listening(this.#server, { host, port });
    if (port !== 0) {
      const probe = createServer();
      await listening(probe, { host, port });
      await new Promise<void>((resolve) => probe.close(() => resolve()));
    }
    await listening(this.#server, { host, port, reusePort: true });
    const bound = (this.#server.address() as AddressInfo).port;
    // The same setting as the server's own: beneath TLS nobody else would end the half of a client that left.
    const allowHalfOpen = !(this.#server instanceof TlsServer);
    while (this.#more.length + 1 < acceptorsMax) {
      const one = createServer({ allowHalfOpen, noDelay: true }, (socket) => this.#server.emit("connection", socket));
      await listening(one, { host, port: bound, reusePort: true });
      // Nothing that happens to one socket ends the process; the others accept.
      one.on("error", () => {});
      this.#more.push(one);
    }
  }

  /** Takes no more; resolves when every connection has ended. */
  async close(): Promise<void> {
    clearInterval(this.#looking);
    const all: (Server | HttpServer | HttpsServer)[] = [this.#server, ...this.#more];
    await Promise.all(all.map((one) => new Promise<void>((resolve) => one.close(() => resolve()))));
  }

  /** Ends every connection, also those that are no HTTP connections yet: a handshake of TLS that is not over. */
  endAll(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  /** Notes that a request of this connection is served. */
  busy(socket: Peer): void {
    this.#places.busy(nameOf(socket));
  }

  /** Notes that all requests of this connection were answered. */
  idle(socket: Peer): void {
    const name = nameOf(socket);
    this.#places.idle(name);
    this.#answeredAt.set(name, this.#sockets.get(name)?.bytesRead ?? 0);
  }

  /** Checks the request heads of open connections. Without a connection the timer stops, so that an unused door wakes no process. */
  #lookAtHeads(): void {
    this.#looking ??= setInterval(() => {
      if (this.#places.count > 0) return this.#endHeads();
      clearInterval(this.#looking);
      this.#looking = undefined;
    }, headsEveryMs).unref();
  }

  /** Ends connections whose heads hold too much together. What TLS adds counts, too, and a handshake that is not over. */
  #endHeads(): void {
    const { headerBytesMax, headBytesMax } = this.#options;
    if (this.#places.count * headerBytesMax <= headBytesMax) return;
    const heads: HeldHead<Socket>[] = [];
    const shakes = this.#server instanceof TlsServer;
    this.#places.forEachIdle((name, address) => {
      const connection = this.#sockets.get(name);
      if (!connection) return;
      const held = shakes && connection.bytesRead > 0 && !this.#shaken.has(name) ? handshakeBytes : 0;
      heads.push({ connection, address, bytes: held + connection.bytesRead - (this.#answeredAt.get(name) ?? 0) });
    });
    for (const connection of headsToEnd(heads, headBytesMax)) connection.destroy();
  }

  #count(socket: Socket): void {
    const name = nameOf(socket);
    const out = this.#places.add(name, clientAddress(socket.remoteAddress ?? ""));
    if (out === name) {
      socket.destroy();
      return;
    }
    if (out !== undefined) this.#sockets.get(out)?.destroy();
    this.#lookAtHeads();
    this.#sockets.set(name, socket);
    socket.once("close", () => {
      if (this.#sockets.get(name) !== socket) return;
      this.#sockets.delete(name);
      this.#answeredAt.delete(name);
      this.#shaken.delete(name);
      this.#places.remove(name);
    });
  }
}

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

/** Returns a name that a connection shares with the TLS socket over it. */
const nameOf = ({ remoteAddress, remotePort }: Peer): string => `${remoteAddress} ${remotePort}`;

function listening(server: Server | HttpServer | HttpsServer, options: Place & { readonly reusePort?: boolean }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...options, backlog }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
