/**
 * The server of ordinary gRPC behind a listening port: the same handlers, the bus as a stream, health and reflection. It is made when
 * the first HTTP/2 connection comes: loading it takes 0.1 s and 10 MB, and processes of a stamp call each other on plain connections.
 */
import type { Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectionInjector, ServerDuplexStream } from "@grpc/grpc-js";
import { Server } from "@grpc/grpc-js";
import type { ServedService } from "@stamp/ports";
import { HealthImplementation } from "grpc-health-check";
import type { FrameLink, LinkEvents } from "../bus/frame-link.ts";
import { GrpcServerLink } from "../bus/grpc-links.ts";
import { widenConnection, widenStreams } from "../bus/window.ts";
import type { Proven } from "../credentials/credential.ts";
import { type GuardOptions, guard, provenOf } from "../credentials/guard.ts";
import { serverOptions } from "../options.ts";
import { busDefinition, serverDefinition } from "./definitions.ts";
import { Draining } from "./draining.ts";
import { serverCredentials } from "./grpc-credentials.ts";
import { type NativeContext, nativeHandlers, type RunningCall } from "./native-server.ts";
import { addReflection } from "./reflection.ts";

export interface GrpcServerOptions {
  readonly context: Omit<NativeContext, "running" | "onAuthorized" | "onForbidden">;
  readonly services: readonly ServedService[];
  /** Names of what is served, the bus among them. */
  readonly descriptors: readonly DescService[];
  readonly guard: GuardOptions;
  /** Takes a connection of the bus. */
  readonly connect: (peer: string, by: Proven, accept: (events: LinkEvents) => FrameLink) => void;
}

export class GrpcServer {
  readonly #descriptors: readonly DescService[];
  readonly #server: Server;
  readonly #health: HealthImplementation;
  readonly #draining = new Draining();
  readonly #injector: ConnectionInjector;
  readonly #running = new Set<RunningCall>();

  constructor({ context, services, descriptors, guard: guarding, connect }: GrpcServerOptions) {
    const { limits } = context;
    this.#descriptors = descriptors;
    this.#server = new Server({ ...serverOptions(limits), interceptors: [this.#draining.interceptor, guard(guarding)] });
    widenStreams(this.#server, limits.windowBytes);
    const native: NativeContext = {
      ...context,
      running: this.#running,
      onAuthorized: guarding.onAdmitted,
      onForbidden: guarding.onRefused,
    };
    for (const given of services) this.#server.addService(serverDefinition(given.service), nativeHandlers(native, given));
    this.#server.addService(busDefinition, {
      Connect: (stream: ServerDuplexStream<Buffer, Buffer>) => {
        widenConnection(stream, limits.windowBytes);
        connect(stream.getPeer(), provenOf(stream.metadata), (events) => new GrpcServerLink(stream, events));
      },
    });
    this.#health = new HealthImplementation(
      Object.fromEntries(["", ...descriptors.map(({ typeName }) => typeName)].map((name) => [name, "SERVING"])),
    );
    this.#health.addToServer(this.#server);
    addReflection(this.#server, descriptors);
    this.#injector = this.#server.createConnectionInjector(serverCredentials());
    this.#draining.watch(this.#server);
  }

  /** Serves an HTTP/2 connection of which nothing has been taken. */
  take(socket: Socket): void {
    this.#injector.injectConnection(socket);
  }

  /** Number of calls in progress. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#draining.connections;
  }

  /** Health tells from now on that nothing is served. */
  leave(): void {
    for (const { typeName } of this.#descriptors) this.#health.setStatus(typeName, "NOT_SERVING");
    this.#health.setStatus("", "NOT_SERVING");
  }

  /** Refuses new calls, and ends each connection after its last call. */
  drain(): void {
    this.#draining.begin();
  }

  /** Ends the calls in progress, for their callers with a failure. */
  cut(): void {
    for (const call of this.#running) call.cut();
  }

  /** Ends every connection when `written` resolves, and the server with it. */
  async shutDown(written: () => Promise<void>): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    await written();
    this.#server.forceShutdown();
    await ended;
  }
}
