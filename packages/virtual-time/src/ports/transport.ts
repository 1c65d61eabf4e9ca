/**
 * The Transport port of one incarnation. Per address there are three connections, one a lane: small calls, calls that carry a
 * `payload`, and streams. Messages are made with `create` and passed by reference, or encoded and decoded (`roundTrip`).
 */
import type { DescMessage, DescService, Message } from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Failure, Outcome } from "@stamp/base";
import { FailureError, refused, unknownOutcome } from "@stamp/base";
import type { Address, CallOptions, Client, Listener, ServedService, Transport } from "@stamp/ports";
import type { Incarnation } from "../kernel/process.ts";
import { Connection } from "./connection.ts";
import type { Method, Network, ServedMethod, SimListener } from "./network.ts";
import { methodKey } from "./network.ts";
import { callClientStream, callServerStream } from "./streams.ts";
import { callUnary, spoilBytes } from "./unary.ts";

export type OnBug = (error: unknown, where: string) => void;
export type Lane = "calls" | "bulk" | "streams";

export class SimTransport implements Transport {
  readonly incarnation: Incarnation;
  readonly network: Network;
  readonly nowMs: () => number;
  readonly #onBug: OnBug;
  readonly #connections = new Map<string, Connection>();
  readonly #clients = new Map<DescService, Map<Address, unknown>>();
  #callNext = 1;

  constructor(incarnation: Incarnation, network: Network, nowMs: () => number, onBug: OnBug) {
    this.incarnation = incarnation;
    this.network = network;
    this.nowMs = nowMs;
    this.#onBug = onBug;
    incarnation.transport = this;
  }

  client<S extends DescService>(address: Address, service: S): Client<S> {
    let byAddress = this.#clients.get(service);
    if (!byAddress) {
      byAddress = new Map();
      this.#clients.set(service, byAddress);
    }
    let client = byAddress.get(address);
    if (!client) {
      client = this.#makeClient(address, service);
      byAddress.set(address, client);
    }
    return client as Client<S>;
  }

  serve(listen: Address, services: readonly ServedService[]): Promise<Listener> {
    const address = listen.endsWith(":0") ? `${listen.slice(0, -1)}${this.network.nextPort()}` : listen;
    return this.incarnation.later(50, "listen", address, () => {
      const current = this.network.listeners.get(address);
      if (current?.open && current.incarnation.alive) {
        const message = `${address} is taken by another process (${current.incarnation.name})`;
        throw new FailureError({ code: "alreadyExists", reason: "conflict", message, applied: "no" });
      }
      const methods = new Map<string, ServedMethod>();
      for (const { service, handlers } of services) {
        for (const method of service.methods) {
          const handler = handlers[method.localName];
          if (handler) methods.set(methodKey(method), { method, handler: handler.bind(handlers) });
        }
      }
      const listener: SimListener = { address, incarnation: this.incarnation, methods, open: true };
      this.network.listen(listener);
      return { address, close: (graceMs = 0) => this.#closeListener(listener, graceMs) };
    });
  }

  get sharesMessages(): boolean {
    return !this.network.options.roundTrip;
  }

  giveBack(held: object): void {
    if (this.network.options.roundTrip) spoilBytes(held);
  }

  close(): Promise<void> {
    for (const connection of [...this.#connections.values()]) connection.breakAtClient();
    return this.incarnation.later(0, "close", "transport", () => {});
  }

  /** Returns the open or opening connection of a lane. */
  connection(address: Address, lane: Lane): Connection {
    const key = `${lane} ${address}`;
    const known = this.#connections.get(key);
    if (known && !known.broken) return known;
    const made: Connection = new Connection(this.network, this.incarnation, address, () => {
      if (this.#connections.get(key) === made) this.#connections.delete(key);
    });
    this.#connections.set(key, made);
    return made;
  }

  nextCall(): number {
    return this.#callNext++;
  }

  message(schema: DescMessage, init: unknown): Message {
    const message = create(schema, init as never) as Message;
    return this.network.options.roundTrip ? fromBinary(schema, toBinary(schema, message)) : message;
  }

  /** Returns the failure that a caller sees for a handler's error. */
  failureOf(error: unknown, where: string): Failure {
    if (error instanceof FailureError) return error.failure;
    this.#onBug(error, where);
    return unknownOutcome("internal", "bug", `bug in ${where}: ${String(error)}`).failure;
  }

  /** Refuses a call that the table of callers (packages/wire/src/callers.ts) does not give the role: a bug of either. */
  forbidden(caller: string, method: string): Outcome<never> {
    const message = `a process with the role ${caller} may not call ${method}`;
    this.#onBug(new Error(message), method);
    return refused("permissionDenied", "unauthorized", message);
  }

  #makeClient(address: Address, service: DescService): Record<string, unknown> {
    const client: Record<string, unknown> = {};
    for (const method of service.methods) {
      switch (method.methodKind) {
        case "unary": {
          const lane = carriesPayload(method) ? "bulk" : "calls";
          client[method.localName] = (request: unknown, options: CallOptions) => callUnary(this, address, lane, method, request, options);
          break;
        }
        case "client_streaming":
          client[method.localName] = (requests: AsyncIterable<unknown>, options: CallOptions) =>
            callClientStream(this, address, method, requests, options);
          break;
        case "server_streaming":
        case "bidi_streaming":
          client[method.localName] = (request: unknown, options: CallOptions) => callServerStream(this, address, method, request, options);
          break;
      }
    }
    return client;
  }

  async #closeListener(listener: SimListener, graceMs: number): Promise<number> {
    if (!listener.open) return 0;
    listener.open = false;
    const connections = (): Connection[] => [...this.incarnation.accepted].filter((connection) => connection.server?.listener === listener);
    const endMs = this.nowMs() + graceMs;
    while (this.nowMs() < endMs && connections().some((connection) => (connection.server?.calls.size ?? 0) > 0)) {
      await this.incarnation.later(1000, "close", listener.address, () => {});
    }
    const cut = connections().reduce((sum, connection) => sum + (connection.server?.calls.size ?? 0), 0);
    for (const connection of connections()) connection.breakAtServer();
    if (this.network.listeners.get(listener.address) === listener) this.network.listeners.delete(listener.address);
    await this.incarnation.later(0, "close", listener.address, () => {});
    return cut;
  }
}

const carriesPayload = (method: Method): boolean =>
  method.input.fields.some((field) => field.name === "payload") || method.output.fields.some((field) => field.name === "payload");
