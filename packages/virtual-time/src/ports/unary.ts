/** A call with one request and one answer: the caller's side, and what the server does when it arrives. */
import type { Message } from "@bufbuild/protobuf";
import type { Outcome } from "@stamp/base";
import { refused, unknownOutcome } from "@stamp/base";
import type { Address, CallOptions } from "@stamp/ports";
import { callersOf, isCaller, methodsFor, requestCheckOf } from "@stamp/wire";
import type { Connection, ServerEnd } from "./connection.ts";
import type { Method, Network } from "./network.ts";
import { methodKey } from "./network.ts";
import { ServerCall } from "./server-call.ts";
import type { Lane, SimTransport } from "./transport.ts";

export function callUnary(
  transport: SimTransport,
  address: Address,
  lane: Lane,
  method: Method,
  init: unknown,
  options: CallOptions,
): Promise<Outcome<Message>> {
  const { incarnation } = transport;
  const { signal, metadata, timeoutMs } = options;
  if (!incarnation.alive) return new Promise(() => {});
  if (signal?.aborted) return Promise.resolve(refused("cancelled", "cancelled", "cancelled before it was sent"));
  if (!(timeoutMs > 0)) return Promise.resolve(refused("deadlineExceeded", "timeout", "no time was left to send it"));
  const key = methodKey(method);
  const { kind, factory } = incarnation.process;
  // A person, or a judge, has no role.
  if (factory !== undefined && isCaller(kind) && callersOf(key) !== undefined && !methodsFor(kind).has(key))
    return Promise.resolve(transport.forbidden(kind, key));
  const request = transport.message(method.input, init);
  // The name of a process stands for that in its certificate.
  const denied = factory !== undefined && isCaller(kind) ? requestCheckOf(key)?.(request, kind, incarnation.process.name) : undefined;
  if (denied !== undefined) return Promise.resolve(transport.forbidden(kind, denied));
  const connection = transport.connection(address, lane);
  const deadlineUs = incarnation.nowUs + Math.ceil(timeoutMs * 1000);

  return new Promise((resolve) => {
    let open = true;
    const settle = (outcome: Outcome<Message>): void => {
      if (!open) return;
      open = false;
      incarnation.cancel(timer);
      connection.done(call);
      if (signal) signal.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    const call = {
      id: transport.nextCall(),
      lost: (sent: boolean) => settle(sent ? lostAnswer(key, address) : neverSent(key, address)),
    };
    const giveUp = (code: "deadlineExceeded" | "cancelled", reason: "timeout" | "cancelled"): void => {
      if (!open) return;
      if (connection.wasSent(call)) {
        connection.toServer(0, "cancel", (server) => server.calls.get(call.id)?.abort());
        settle(unknownOutcome(code, reason, `${key} at ${address}: ${reason}`));
      } else {
        connection.withdraw(call);
        settle(
          reason === "cancelled" ? refused(code, reason, `${key} at ${address}: cancelled before it was sent`) : neverSent(key, address),
        );
      }
    };
    const onAbort = (): void => giveUp("cancelled", "cancelled");
    const timer = incarnation.schedule(Math.ceil(timeoutMs * 1000) + 1, "timeout", key, () => giveUp("deadlineExceeded", "timeout"));
    signal?.addEventListener("abort", onAbort, { once: true });
    connection.add(call);
    const struck = incarnation.failpoint("send", key);
    if (struck?.kind === "dead") return;
    if (struck?.kind === "error") {
      // The request is lost with the connection that it left on.
      connection.breakAtClient();
      return;
    }
    if (struck?.kind === "delay") connection.holdToServer(struck.delayUs);
    connection.toServer(call.id, key, (server, sentAtUs) =>
      handle(server, connection, call.id, key, request, (deadlineUs - sentAtUs) / 1000, metadata ?? {}, settle),
    );
  });
}

export const lostAnswer = (key: string, address: Address): Outcome<never> =>
  unknownOutcome("unavailable", "connectionLost", `${key}: connection to ${address} lost`);

export const neverSent = (key: string, address: Address): Outcome<never> =>
  refused("unavailable", "connectFailed", `${key}: no connection to ${address}`);

/** Overwrites the payload of a request that its handler gave back, as the next frame in the same memory would. */
function spoil(network: Network, request: Message): void {
  network.payloadsGivenBack += 1;
  const { payload } = request as Message & { readonly payload?: Uint8Array | readonly Uint8Array[] };
  if (payload === undefined) return;
  for (const bytes of payload instanceof Uint8Array ? [payload] : payload) spoilBytes(bytes);
}

/** Stands for the next frame that is read into the same memory: whoever looks at the bytes again, wherever they are in `held`, sees others. */
export function spoilBytes(held: object): void {
  if (held instanceof Uint8Array) held.fill(0xdb);
  else for (const value of Object.values(held)) if (typeof value === "object" && value !== null) spoilBytes(value);
}

/** Runs a handler at the server, in an event of its own; `settle` runs in one of the client's. */
function handle(
  server: ServerEnd,
  connection: Connection,
  id: number,
  key: string,
  request: Message,
  timeoutMs: number,
  metadata: Readonly<Record<string, string>>,
  settle: (outcome: Outcome<Message>) => void,
): void {
  const { listener } = server;
  const transport = listener.incarnation.transport as SimTransport;
  const answer = (outcome: Outcome<Message>): void => {
    const struck = listener.incarnation.failpoint("answer", key);
    if (struck?.kind === "dead") return;
    if (struck?.kind === "error") connection.breakAtServer();
    else if (struck?.kind === "delay") connection.holdToClient(struck.delayUs);
    connection.toClient(`answer ${key}`, () => settle(outcome));
  };
  if (!listener.open) {
    answer(refused("unavailable", "stopping", `${listener.address} is stopping`));
    return;
  }
  const served = listener.methods.get(key);
  if (!served) {
    answer(refused("unimplemented", "unknownMethod", `${listener.address} does not serve ${key}`));
    return;
  }
  const struck = listener.incarnation.failpoint("receive", key);
  if (struck?.kind === "dead") return;
  if (struck?.kind === "error") {
    connection.breakAtServer();
    return;
  }
  if (struck?.kind === "delay") connection.holdToServer(struck.delayUs);
  const call = new ServerCall(listener.incarnation, key, transport.nowMs(), timeoutMs, connection.client.process, metadata);
  let sent: (() => void) | undefined;
  if (transport.network.options.roundTrip) {
    call.giveBackPayload = () => spoil(transport.network, request);
    call.whenSent = (told) => {
      sent = told;
    };
  }
  server.calls.set(id, call);
  const done = (outcome: Outcome<unknown>): void => {
    call.end();
    server.calls.delete(id);
    if (!outcome.ok) {
      answer(outcome);
      return;
    }
    answer({ ok: true, value: transport.message(served.method.output, outcome.value) });
    // The answer was encoded, so it has bytes of its own.
    sent?.();
  };
  const failed = (error: unknown): void => done({ ok: false, failure: transport.failureOf(error, key) });
  let result: Promise<Outcome<unknown>>;
  try {
    result = served.handler(request, call);
  } catch (error) {
    failed(error);
    return;
  }
  result.then(done, failed);
}
