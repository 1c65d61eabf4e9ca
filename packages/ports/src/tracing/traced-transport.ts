/**
 * A transport whose handlers have a span around each call that a traced request caused. What they call carries their own span. Calls that
 * no request caused, and streams, have none.
 */
import type { Outcome } from "@stamp/base";
import type { CallContext, Handlers, ServedService, Transport } from "../transport.ts";
import { type Cause, causeOf } from "./cause.ts";
import type { Tracer, TraceSpan } from "./tracer.ts";

type Handler = (request: unknown, context: CallContext) => Promise<Outcome<unknown>>;

/** The call as its transport has it, caused by the span. */
class TracedCall implements CallContext {
  readonly metadata: CallContext["metadata"];
  readonly #call: CallContext;

  constructor(call: CallContext, cause: Cause, { traceparent }: TraceSpan) {
    this.#call = call;
    this.metadata = { ...call.metadata, ...cause, traceparent };
  }

  get deadlineMs() {
    return this.#call.deadlineMs;
  }
  get signal() {
    return this.#call.signal;
  }
  get aborted() {
    return this.#call.aborted;
  }
  get peer() {
    return this.#call.peer;
  }
  get caller() {
    return this.#call.caller;
  }
  get callerName() {
    return this.#call.callerName;
  }
  get giveBackPayload() {
    const { giveBackPayload } = this.#call;
    return giveBackPayload && (() => this.#call.giveBackPayload?.());
  }
  get whenSent() {
    const { whenSent } = this.#call;
    return whenSent && ((sent: () => void) => this.#call.whenSent?.(sent));
  }
  authorized(): void {
    this.#call.authorized?.();
  }
}

function tracedHandler(name: string, handler: Handler, tracer: Tracer): Handler {
  return (request, context) => {
    const cause = causeOf(context.metadata);
    if (cause?.traceparent === undefined) return handler(request, context);
    const span = tracer.begin(name, cause.traceparent, { "stamp.request_id": cause["request-id"], "rpc.system": "grpc" });
    const done = handler(request, new TracedCall(context, cause, span));
    void done.then(
      (outcome) => span.end({}, outcome.ok ? undefined : outcome.failure.reason),
      () => span.end({}, "bug"),
    );
    return done;
  };
}

function tracedService({ service, handlers, ...rest }: ServedService, tracer: Tracer): ServedService {
  const traced = Object.entries(service.method).flatMap(([key, method]) => {
    const handler = (handlers as Readonly<Record<string, Handler | undefined>>)[key];
    const name = `${service.name}/${method.name}`;
    return handler === undefined || method.methodKind !== "unary" ? [] : [[key, tracedHandler(name, handler.bind(handlers), tracer)]];
  });
  // biome-ignore lint/suspicious/noExplicitAny: handlers of any service, as in `ServedService`.
  return { service, handlers: { ...handlers, ...Object.fromEntries(traced) } as Handlers<any>, ...rest };
}

/** Returns the transport with spans around what it serves. */
export function tracedTransport(transport: Transport, tracer: Tracer): Transport {
  return {
    client: (address, service) => transport.client(address, service),
    serve: (listen, services) =>
      transport.serve(
        listen,
        services.map((each) => tracedService(each, tracer)),
      ),
    ...(transport.sharesMessages === undefined ? {} : { sharesMessages: transport.sharesMessages }),
    giveBack: transport.giveBack && ((held) => transport.giveBack?.(held)),
    close: () => transport.close(),
  };
}
