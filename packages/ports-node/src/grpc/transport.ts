/**
 * The Transport port. Unary calls travel over the bus (bus-client.ts, bus-server.ts): a plain connection (tcp-link.ts) for each address and
 * lane. Streams are gRPC's own. Every service is also reachable by ordinary gRPC tools.
 */
import type { DescService } from "@bufbuild/protobuf";
import type { Address, CallOptions, Client, Clock, Listener, Logger, ServedService, Transport } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import { NodeClock } from "../clock.ts";
import { sharedInterval } from "../time/shared-interval.ts";
import { AnswerFrames } from "./bus/answer-frames.ts";
import type { BusMethod } from "./bus/bus-client.ts";
import { BusClient } from "./bus/bus-client.ts";
import type { FrameLink, LinkEvents } from "./bus/frame-link.ts";
import { methodField } from "./bus/frames.ts";
import { TcpLink } from "./bus/tcp-link.ts";
import type { Credential } from "./credentials/credential.ts";
import type { PeerTls } from "./credentials/peer-tls.ts";
import { openCredential } from "./credentials/secret-credential.ts";
import { codecOf } from "./message-codec.ts";
import type { Lane } from "./methods.ts";
import { laneOf, methodName } from "./methods.ts";
import { LaterClient } from "./native/later.ts";
import type { GrpcLimits } from "./options.ts";
import { defaultLimits } from "./options.ts";

export interface GrpcTransportOptions {
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly limits?: Partial<GrpcLimits>;
  /** Returns the credential of this process, asked for at each connection; without it nobody proves anything. */
  readonly credential?: () => Credential;
  /** Certificates with which this process and its peers prove who they are, asked for at each connection; without them there is no TLS. */
  readonly tls?: (() => PeerTls) | undefined;
  /** Address at which others reach the transport's services, if it is not the one it listens at. */
  readonly advertised?: Address | undefined;
}

export class GrpcTransport implements Transport {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #limits: GrpcLimits;
  readonly #credential: () => Credential;
  readonly #tls: (() => PeerTls) | undefined;
  readonly #advertised: Address | undefined;
  readonly #frames: AnswerFrames;
  #endTrims: (() => void) | undefined;
  readonly #buses = new Map<string, BusClient>();
  readonly #natives = new Map<Address, LaterClient>();
  readonly #clients = new Map<Address, Map<DescService, unknown>>();

  constructor(options: GrpcTransportOptions = {}) {
    this.#clock = options.clock ?? new NodeClock();
    this.#logger = options.logger ?? silentLogger;
    const limits = { ...defaultLimits, ...options.limits };
    const credential = options.credential ?? (() => openCredential);
    this.#limits = limits;
    this.#frames = new AnswerFrames(limits.reusedBytesMax === 0 ? 0 : limits.reusedAnswerBytesMax);
    this.#credential = credential;
    const { tls } = options;
    this.#tls = tls;
    this.#advertised = options.advertised;
  }

  client<S extends DescService>(address: Address, service: S): Client<S> {
    let clients = this.#clients.get(address);
    if (clients === undefined) {
      clients = new Map();
      this.#clients.set(address, clients);
    }
    let client = clients.get(service) as Client<S> | undefined;
    if (client === undefined) {
      client = this.#makeClient(address, service);
      clients.set(service, client);
    }
    return client;
  }

  async serve(listen: Address, services: readonly ServedService[]): Promise<Listener> {
    // Only here: a command of a person calls and serves nothing, and the server brings health checks with it, which take long to load.
    const { listenGrpc } = await import("./server.ts");
    const context = { clock: this.#clock, logger: this.#logger, limits: this.#limits, credential: this.#credential, tls: this.#tls };
    return listenGrpc({ ...context, advertised: this.#advertised }, listen, services);
  }

  giveBack(held: object): void {
    this.#endTrims ??= sharedInterval(this.#limits.keepAliveEveryMs, () => this.#frames.memory.trim());
    this.#frames.giveBack(held);
  }

  /** Ends the connections to an address as a failing network would, for tests and measurements. */
  disconnect(address: Address): void {
    for (const [key, bus] of this.#buses) if (key.endsWith(` ${address}`)) bus.disconnect();
  }

  async close(): Promise<void> {
    this.#endTrims?.();
    this.#endTrims = undefined;
    for (const bus of this.#buses.values()) bus.close();
    for (const native of this.#natives.values()) native.close();
    this.#buses.clear();
    this.#natives.clear();
    this.#clients.clear();
  }

  #makeClient<S extends DescService>(address: Address, service: S): Client<S> {
    const client: Record<string, unknown> = {};
    for (const method of service.methods) {
      if (method.methodKind === "unary") {
        const name = methodName(service, method);
        const bus = this.#bus(address, laneOf(method));
        const described: BusMethod = { name, field: methodField(name), request: codecOf(method.input), answer: codecOf(method.output) };
        client[method.localName] = (request: object, options: CallOptions) => bus.call(described, request, options);
      } else client[method.localName] = this.#native(address).method(service, method);
    }
    return client as Client<S>;
  }

  #bus(address: Address, lane: Lane): BusClient {
    const key = `${lane} ${address}`;
    let bus = this.#buses.get(key);
    if (bus === undefined) {
      const dial = (at: Address, events: LinkEvents): FrameLink =>
        TcpLink.dial(at, this.#limits, this.#credential, this.#tls, this.#frames.memory, events);
      bus = new BusClient(address, this.#limits, dial, this.#frames);
      this.#buses.set(key, bus);
    }
    return bus;
  }

  #native(address: Address): LaterClient {
    let native = this.#natives.get(address);
    if (native === undefined) {
      native = new LaterClient(async () => {
        const { NativeClient } = await import("./native/native-client.ts");
        return new NativeClient(address, this.#limits, this.#clock, this.#credential, this.#tls?.());
      });
      this.#natives.set(address, native);
    }
    return native;
  }
}
