/**
 * The server of ordinary gRPC before anybody needs it. It is loaded and made when the first HTTP/2 connection comes.
 * Invariants:
 * - A connection that comes while it is made waits, and is served in its turn; nothing of it is read meanwhile.
 * - After `leave`, no server is made, and a connection that waits is ended.
 * - A failure to make it ends the connections that wait, and the next connection tries again.
 */
import type { Socket } from "node:net";
import type { Address, Clock, Logger } from "@stamp/ports";
import type { Credential } from "../credentials/credential.ts";
import type { PeerTls } from "../credentials/peer-tls.ts";
import type { GrpcLimits } from "../options.ts";
import type { GrpcServer, GrpcServerOptions } from "./grpc-server.ts";

export interface ServerContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: GrpcLimits;
  /** Returns the credential that judges callers. */
  readonly credential: () => Credential;
  /** Certificates by which both sides prove their names; undefined without TLS. */
  readonly tls?: (() => PeerTls) | undefined;
  /** Address at which others reach this process, if it is not the one it listens at. */
  readonly advertised?: Address | undefined;
}

const loadServer = (): Promise<typeof import("./grpc-server.ts")> => import("./grpc-server.ts");

export class LaterServer {
  readonly #logger: Logger;
  readonly #options: () => GrpcServerOptions;
  readonly #load: typeof loadServer;
  #made: Promise<GrpcServer | undefined> | undefined;
  #server: GrpcServer | undefined;
  #isLeaving = false;
  /** True if the last attempt failed, which was logged. */
  #hasFailed = false;

  constructor(logger: Logger, options: () => GrpcServerOptions, load = loadServer) {
    this.#logger = logger;
    this.#options = options;
    this.#load = load;
  }

  /** Serves an HTTP/2 connection of which nothing has been taken. */
  take(socket: Socket): void {
    if (this.#server !== undefined) {
      this.#server.take(socket);
      return;
    }
    if (this.#isLeaving) {
      socket.destroy();
      return;
    }
    const gone = (): void => void socket.destroy();
    // Without a listener, the error of a connection that waits would end the process.
    socket.on("error", gone);
    this.#made ??= this.#make();
    void this.#made.then((server) => {
      socket.off("error", gone);
      if (server === undefined || this.#isLeaving) socket.destroy();
      else if (!socket.destroyed) server.take(socket);
    });
  }

  /** Takes no more connections, and has the server tell its callers to go elsewhere. Returns the server; undefined if none was made. */
  async leave(): Promise<GrpcServer | undefined> {
    this.#isLeaving = true;
    const server = await this.#made;
    server?.leave();
    return server;
  }

  /** Makes the server. Never rejects. */
  async #make(): Promise<GrpcServer | undefined> {
    try {
      const { GrpcServer } = await this.#load();
      if (this.#isLeaving) return undefined;
      this.#server = new GrpcServer(this.#options());
      return this.#server;
    } catch (error) {
      // Too many open files, for one, may pass.
      this.#made = undefined;
      if (!this.#hasFailed)
        this.#logger.error("a connection of gRPC was not served, because its server could not be loaded; the next one tries again", {
          error,
        });
      this.#hasFailed = true;
      return undefined;
    }
  }
}
