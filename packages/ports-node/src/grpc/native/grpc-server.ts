/**
 * The server of ordinary gRPC behind a listening port: the same handlers, health and reflection. It is made when
 * the first HTTP/2 connection comes: loading it takes 0.1 s and 10 MB, and processes of a stamp call each other on plain connections.
 */
import type { Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectionInjector } from "@grpc/grpc-js";
import { Server } from "@grpc/grpc-js";
import type { ServedService } from "@stamp/ports";
import { HealthImplementation } from "grpc-health-check";
import { type GuardOptions, guard } from "../credentials/guard.ts";
import { serverOptions } from "../options.ts";
import { serverDefinition } from "./definitions.ts";
import { Draining } from "./draining.ts";
import { serverCredentials } from "./grpc-credentials.ts";
import { type NativeContext, nativeHandlers, type RunningCall } from "./native-server.ts";
import { addReflection } from "./reflection.ts";
import { widenStreams } from "./window.ts";

export interface GrpcServerOptions {
  readonly context: Omit<NativeContext, "running" | "onAuthorized" | "onForbidden">;
  readonly services: readonly ServedService[];
  readonly descriptors: readonly DescService[];
  readonly guard: GuardOptions;
}

export class GrpcServer {
  readonly #descriptors: readonly DescService[];
  readonly #server: Server;
  readonly #health: HealthImplementation;
  readonly #draining = new Draining();
  readonly #injector: ConnectionInjector;
  readonly #running = new Set<RunningCall>();

  constructor({ context, services, descriptors, guard: guarding }: GrpcServerOptions) {
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

  /** Makes health say that nothing is served. */
  leave(): void {
    for (const { typeName } of this.#descriptors) this.#health.setStatus(typeName, "NOT_SERVING");
    this.#health.setStatus("", "NOT_SERVING");
  }

  /** Refuses new calls, and ends each connection after its last call. */
  drain(): void {
    this.#draining.begin();
  }

  /** Ends the calls in progress; their callers get a failure. */
  cut(): void {
    for (const call of this.#running) call.cut();
  }

  /** Ends every connection, and the server, when `written` resolves. */
  async shutDown(written: () => Promise<void>): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    await written();
    this.#server.forceShutdown();
    await ended;
  }
}
