/**
 * Calls inside one process: the handler is called directly, messages go by reference. Same order, deadlines, cancellation and failures
 * as over gRPC; used by embedded mode. A handler is started in a microtask of its own, never inside its caller's stack, in the order
 * of the calls.
 */
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { Failure, Outcome } from "@stamp/base";
import { FailureError } from "@stamp/base";
import type { Address, CallContext, CallOptions, Client, Clock, Listener, Logger, ServedService, Transport } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import { NodeClock } from "./clock.ts";
import { CallState } from "./grpc/call-state.ts";
import { cancelledFailure, stoppingFailure, timeoutFailure, unknownMethodFailure } from "./grpc/failures.ts";
import { failureOfThrown, methodName } from "./grpc/methods.ts";
import { untilAborted } from "./grpc/until-aborted.ts";

const graceDefaultMs = 1_000;

type Handle = (request: unknown, context: CallContext) => unknown;

/** One call in progress: it ends once, by its answer, its deadline, its caller or its server. */
class Run {
  readonly name: string;
  readonly state: CallState;
  readonly #server: Server;
  readonly #sent: Set<Run>;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  /** Failure with which the call was ended from outside. */
  failure: Failure | undefined;
  onFailure: ((failure: Failure) => void) | undefined;

  /** `sent`: calls in progress of the caller's transport. */
  constructor(server: Server, sent: Set<Run>, name: string, peer: string, clock: Clock, options: CallOptions) {
    this.name = name;
    this.#server = server;
    this.#sent = sent;
    this.state = new CallState(clock.monotonicMs() + options.timeoutMs, peer, options.metadata ?? {});
    this.#timer = setTimeout(() => this.fail(timeoutFailure("unknown", name)), Math.min(Math.ceil(options.timeoutMs), 0x7fff_ffff));
    this.#signal = options.signal;
    this.#onAbort = () => this.fail(cancelledFailure("unknown", name));
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    server.running.add(this);
    sent.add(this);
  }

  fail(failure: Failure): void {
    if (!this.server.running.has(this)) return;
    this.failure = failure;
    this.finish();
    this.state.abort();
    this.onFailure?.(failure);
  }

  finish(): void {
    if (!this.#server.running.delete(this)) return;
    this.#sent.delete(this);
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }

  get server(): Server {
    return this.#server;
  }
}

interface Server {
  readonly handlers: ReadonlyMap<DescMethod, Handle>;
  readonly logger: Logger;
  readonly running: Set<Run>;
}

/** Network that the transports of one process share: the servers by address. */
export class InProcessNetwork {
  readonly #servers = new Map<Address, Server>();
  #nextPort = 1;

  transport(name: string, options: { clock?: Clock; logger?: Logger } = {}): Transport {
    return new InProcessTransport(this, name, options.clock ?? new NodeClock(), options.logger ?? silentLogger);
  }

  find(address: Address): Server | undefined {
    return this.#servers.get(address);
  }

  add(listen: Address, server: Server): Address {
    const address = listen.endsWith(":0") ? `${listen.slice(0, -1)}in-process-${this.#nextPort++}` : listen;
    if (this.#servers.has(address)) {
      throw new FailureError({ code: "alreadyExists", reason: "conflict", message: `${address} is taken in this process`, applied: "no" });
    }
    this.#servers.set(address, server);
    return address;
  }

  remove(address: Address): void {
    this.#servers.delete(address);
  }
}

class InProcessTransport implements Transport {
  readonly sharesMessages = true;
  readonly #network: InProcessNetwork;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #sent = new Set<Run>();
  #closed = false;

  constructor(network: InProcessNetwork, name: string, clock: Clock, logger: Logger) {
    this.#network = network;
    this.#name = name;
    this.#clock = clock;
    this.#logger = logger;
  }

  client<S extends DescService>(address: Address, service: S): Client<S> {
    const client: Record<string, unknown> = {};
    for (const method of service.methods) client[method.localName] = this.#method(address, service, method);
    return client as Client<S>;
  }

  async serve(listen: Address, services: readonly ServedService[]): Promise<Listener> {
    const handlers = new Map<DescMethod, Handle>();
    for (const { service, handlers: given } of services) {
      for (const method of service.methods) {
        const handle = (given as Record<string, Handle | undefined>)[method.localName];
        if (handle !== undefined) handlers.set(method, handle.bind(given));
      }
    }
    const server: Server = { handlers, logger: this.#logger, running: new Set() };
    const address = this.#network.add(listen, server);
    let closing: Promise<number> | undefined;
    const close = async (graceMs: number): Promise<number> => {
      this.#network.remove(address);
      const deadlineMs = this.#clock.monotonicMs() + graceMs;
      while (server.running.size > 0 && this.#clock.monotonicMs() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, 5));
      const lost: Failure = { code: "unavailable", reason: "connectionLost", message: `${address} stopped`, applied: "unknown" };
      const cut = [...server.running];
      for (const run of cut) run.fail(lost);
      return cut.length;
    };
    return {
      address,
      close: (graceMs = graceDefaultMs) => {
        closing ??= close(graceMs);
        return closing;
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const run of [...this.#sent]) run.fail({ ...stoppingFailure, applied: "unknown" });
  }

  #method(address: Address, service: DescService, method: DescMethod): unknown {
    const name = methodName(service, method);
    switch (method.methodKind) {
      case "unary":
        return (request: object, options: CallOptions) =>
          this.#call(address, name, method, () => create(method.input, request as never), options);
      case "client_streaming":
        return (requests: AsyncIterable<object>, options: CallOptions) =>
          this.#call(address, name, method, (run) => received(requests, method, run), options);
      case "server_streaming":
        return (request: object, options: CallOptions) =>
          this.#stream(address, name, method, () => create(method.input, request as never), options);
      case "bidi_streaming":
        return (requests: AsyncIterable<object>, options: CallOptions) =>
          this.#stream(address, name, method, (run) => received(requests, method, run), options);
    }
  }

  /** Begins a call, or returns a failure: then it was certainly not applied. */
  #begin(address: Address, name: string, method: DescMethod, options: CallOptions): { run: Run; handle: Handle } | Failure {
    if (this.#closed) return stoppingFailure;
    if (options.signal?.aborted) return cancelledFailure("no", name);
    if (!(options.timeoutMs > 0)) return timeoutFailure("no", name);
    const server = this.#network.find(address);
    if (server === undefined)
      return { code: "unavailable", reason: "connectFailed", message: `nobody serves at ${address}`, applied: "no" };
    const handle = server.handlers.get(method);
    if (handle === undefined) return unknownMethodFailure(name);
    return { run: new Run(server, this.#sent, name, this.#name, this.#clock, options), handle };
  }

  #call(address: Address, name: string, method: DescMethod, input: (run: Run) => unknown, options: CallOptions): Promise<Outcome<object>> {
    const begun = this.#begin(address, name, method, options);
    if (!("run" in begun)) return Promise.resolve({ ok: false, failure: begun });
    const { run, handle } = begun;
    return new Promise((resolve) => {
      run.onFailure = (failure) => resolve({ ok: false, failure });
      const failed = (error: unknown): void => {
        if (run.failure) return;
        run.finish();
        resolve({ ok: false, failure: failureOfThrown(error, name, run.server.logger) });
      };
      queueMicrotask(() => {
        if (run.failure) return;
        try {
          (handle(input(run), run.state) as Promise<Outcome<object>>).then((outcome) => {
            if (run.failure) return;
            run.finish();
            resolve(outcome.ok ? { ok: true, value: create(method.output, outcome.value as never) } : outcome);
          }, failed);
        } catch (error) {
          failed(error);
        }
      });
    });
  }

  async *#stream(
    address: Address,
    name: string,
    method: DescMethod,
    input: (run: Run) => unknown,
    options: CallOptions,
  ): AsyncIterable<object> {
    const begun = this.#begin(address, name, method, options);
    if (!("run" in begun)) throw new FailureError(begun);
    const { run, handle } = begun;
    try {
      for await (const answer of untilAborted(handle(input(run), run.state) as AsyncIterable<object>, run.state.signal)) {
        yield create(method.output, answer as never);
      }
    } catch (error) {
      throw new FailureError(run.failure ?? failureOfThrown(error, name, run.server.logger));
    } finally {
      run.finish();
      // Also when its reader left early: the handler is to see it.
      run.state.abort();
    }
    if (run.failure) throw new FailureError(run.failure);
  }
}

/** Returns a stream of requests as its handler gets it; ends with a failure when the call was ended from outside. */
async function* received(requests: AsyncIterable<object>, method: DescMethod, run: Run): AsyncIterable<Message> {
  for await (const request of untilAborted(requests, run.state.signal)) yield create(method.input, request as never);
  if (run.failure) throw new FailureError(run.failure);
}
