/**
 * Calls with many requests or many answers. Each direction has a window of messages; the receiver gives one back for each that its
 * reader took, so that a slow reader slows its writer down.
 */
import type { Message } from "@bufbuild/protobuf";
import type { Failure, Outcome } from "@stamp/base";
import { FailureError, refused, unknownOutcome } from "@stamp/base";
import type { Address, CallOptions } from "@stamp/ports";
import type { Connection, ServerEnd } from "./connection.ts";
import type { Method } from "./network.ts";
import { methodKey } from "./network.ts";
import { ServerCall } from "./server-call.ts";
import type { SimTransport } from "./transport.ts";
import { lostAnswer, neverSent } from "./unary.ts";

const windowMessages = 4;

/** Where one side's messages arrive. */
class Inbox implements AsyncIterable<Message> {
  readonly #queue: Message[] = [];
  readonly #onTaken: () => void;
  readonly #onLeft: () => void;
  #ended = false;
  #failure: Failure | undefined;
  #wake: (() => void) | undefined;

  constructor(onTaken: () => void, onLeft: () => void) {
    this.#onTaken = onTaken;
    this.#onLeft = onLeft;
  }

  push(message: Message): void {
    if (this.#ended) return;
    this.#queue.push(message);
    this.#wake?.();
  }

  end(failure?: Failure): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    let finished = false;
    try {
      for (;;) {
        const message = this.#queue.shift();
        if (message !== undefined) {
          this.#onTaken();
          yield message;
        } else if (this.#ended) {
          finished = true;
          if (this.#failure) throw new FailureError(this.#failure);
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      if (!finished) this.#onLeft();
    }
  }
}

/** Sends what an iterable gives, within the window. */
class Outbox {
  #left = windowMessages;
  #wake: (() => void) | undefined;
  #closed = false;

  credit(): void {
    this.#left += 1;
    this.#wake?.();
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  /** Sends the items of `source`; false if the stream was closed before their end. */
  async pump(source: AsyncIterable<unknown>, send: (message: unknown) => void): Promise<boolean> {
    for await (const message of source) {
      while (this.#left === 0 && !this.#closed) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      if (this.#closed) return false;
      this.#left -= 1;
      send(message);
    }
    return !this.#closed;
  }
}

/** The caller's side of one streaming call. */
class StreamCall {
  readonly id: number;
  readonly outbox: Outbox = new Outbox();
  readonly #transport: SimTransport;
  readonly #connection: Connection;
  readonly #address: Address;
  readonly #method: Method;
  readonly #key: string;
  readonly #onEnd: (outcome: Outcome<Message | undefined>) => void;
  readonly #cancelTimer: () => void;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#giveUp("cancelled", "cancelled");
  #open = true;

  constructor(
    transport: SimTransport,
    address: Address,
    method: Method,
    options: CallOptions,
    inbox: Inbox | undefined,
    onEnd: (outcome: Outcome<Message | undefined>) => void,
  ) {
    const { incarnation } = transport;
    this.#transport = transport;
    this.#address = address;
    this.#method = method;
    this.#key = methodKey(method);
    this.#onEnd = onEnd;
    this.#signal = options.signal;
    this.id = transport.nextCall();
    this.#connection = transport.connection(address, "streams");
    const deadlineUs = incarnation.nowUs + Math.ceil(options.timeoutMs * 1000);
    const timer = incarnation.schedule(Math.ceil(options.timeoutMs * 1000) + 1, "timeout", this.#key, () =>
      this.#giveUp("deadlineExceeded", "timeout"),
    );
    this.#cancelTimer = () => incarnation.cancel(timer);
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#connection.add(this);
    this.#connection.toServer(this.id, this.#key, (server, sentAtUs) => {
      const toCaller: ToCaller = {
        data: (message) => this.#connection.toClient(`data ${this.#key}`, () => this.#open && inbox?.push(message)),
        end: (outcome) => this.#connection.toClient(`end ${this.#key}`, () => this.#finish(outcome)),
        credit: () => this.#connection.toClient("credit", () => this.outbox.credit()),
      };
      serveStream(server, this.#connection, this.id, method, (deadlineUs - sentAtUs) / 1000, options.metadata ?? {}, toCaller);
    });
  }

  send(init: unknown): void {
    const struck = this.#transport.incarnation.failpoint("send", this.#key);
    if (struck?.kind === "dead") return;
    if (struck?.kind === "error") {
      this.#connection.breakAtClient();
      return;
    }
    if (struck?.kind === "delay") this.#connection.holdToServer(struck.delayUs);
    const message = this.#transport.message(this.#method.input, init);
    this.#connection.toServer(this.id, `data ${this.#key}`, (server) => {
      const stream = served(server, this.id);
      const arrived = stream && server.listener.incarnation.failpoint("receive", this.#key);
      if (arrived?.kind === "dead") return;
      if (arrived?.kind === "error") this.#connection.breakAtServer();
      else if (arrived?.kind === "delay") this.#connection.holdToServer(arrived.delayUs);
      stream?.inbox.push(message);
    });
  }

  halfClose(): void {
    this.#connection.toServer(this.id, "half-close", (server) => served(server, this.id)?.inbox.end());
  }

  credit(): void {
    this.#connection.toServer(this.id, "credit", (server) => served(server, this.id)?.outbox.credit());
  }

  cancel(): void {
    this.#giveUp("cancelled", "cancelled");
  }

  lost(sent: boolean): void {
    this.#finish(sent ? lostAnswer(this.#key, this.#address) : neverSent(this.#key, this.#address));
  }

  #giveUp(code: "deadlineExceeded" | "cancelled", reason: "timeout" | "cancelled"): void {
    if (!this.#open) return;
    if (this.#connection.wasSent(this)) {
      this.#connection.toServer(0, "cancel", (server) => server.calls.get(this.id)?.abort());
      this.#finish(unknownOutcome(code, reason, `${this.#key} at ${this.#address}: ${reason}`));
    } else {
      this.#connection.withdraw(this);
      this.#finish(reason === "cancelled" ? refused(code, reason, "cancelled before it was sent") : neverSent(this.#key, this.#address));
    }
  }

  #finish(outcome: Outcome<Message | undefined>): void {
    if (!this.#open) return;
    this.#open = false;
    this.#cancelTimer();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#connection.done(this);
    this.outbox.close();
    this.#onEnd(outcome);
  }
}

export function callClientStream(
  transport: SimTransport,
  address: Address,
  method: Method,
  requests: AsyncIterable<unknown>,
  options: CallOptions,
): Promise<Outcome<Message>> {
  if (!transport.incarnation.alive) return new Promise(() => {});
  if (options.signal?.aborted) return Promise.resolve(refused("cancelled", "cancelled", "cancelled before it was sent"));
  return new Promise((resolve, reject) => {
    const call = new StreamCall(transport, address, method, options, undefined, (outcome) => resolve(outcome as Outcome<Message>));
    sendAll(call, requests).catch((error: unknown) => {
      call.cancel();
      reject(error);
    });
  });
}

/** Calls a method with server streaming (one request), or with streams both ways. */
export function callServerStream(
  transport: SimTransport,
  address: Address,
  method: Method,
  request: unknown,
  options: CallOptions,
): AsyncIterable<Message> {
  return {
    [Symbol.asyncIterator]: () => {
      const inbox: Inbox = new Inbox(
        () => call?.credit(),
        () => call?.cancel(),
      );
      let call: StreamCall | undefined;
      if (options.signal?.aborted) {
        inbox.end(refused("cancelled", "cancelled", "cancelled before it was sent").failure);
      } else if (transport.incarnation.alive) {
        const made = new StreamCall(transport, address, method, options, inbox, (outcome) =>
          inbox.end(outcome.ok ? undefined : outcome.failure),
        );
        call = made;
        if (method.methodKind === "server_streaming") {
          made.send(request);
          made.halfClose();
        } else {
          sendAll(made, request as AsyncIterable<unknown>).catch(() => made.cancel());
        }
      }
      return inbox[Symbol.asyncIterator]();
    },
  };
}

async function sendAll(call: StreamCall, requests: AsyncIterable<unknown>): Promise<void> {
  if (await call.outbox.pump(requests, (message) => call.send(message))) call.halfClose();
}

interface ToCaller {
  data(message: Message): void;
  /** Ends the call; with the answer of a client-streaming call. */
  end(outcome: Outcome<Message | undefined>): void;
  credit(): void;
}

interface ServedStream {
  readonly inbox: Inbox;
  readonly outbox: Outbox;
}

const servedStreams = new WeakMap<ServerCall, ServedStream>();

function served(server: ServerEnd, id: number): ServedStream | undefined {
  const call = server.calls.get(id);
  return call && servedStreams.get(call);
}

/** Runs at the server when the call arrives. */
function serveStream(
  server: ServerEnd,
  connection: Connection,
  id: number,
  method: Method,
  timeoutMs: number,
  metadata: Readonly<Record<string, string>>,
  toCaller: ToCaller,
): void {
  const { listener } = server;
  const key = methodKey(method);
  const transport = listener.incarnation.transport as SimTransport;
  if (!listener.open) {
    toCaller.end(refused("unavailable", "stopping", `${listener.address} is stopping`));
    return;
  }
  const found = listener.methods.get(key);
  if (!found) {
    toCaller.end(refused("unimplemented", "unknownMethod", `${listener.address} does not serve ${key}`));
    return;
  }
  const call = new ServerCall(listener.incarnation, key, transport.nowMs(), timeoutMs, connection.client.process, metadata);
  const inbox = new Inbox(toCaller.credit, () => {});
  const outbox = new Outbox();
  servedStreams.set(call, { inbox, outbox });
  server.calls.set(id, call);
  call.onAbort = () => {
    inbox.end(unknownOutcome("cancelled", "cancelled", `${key}: the caller went away`).failure);
    outbox.close();
  };
  // Aborts at the deadline, also when no handler looks.
  void call.signal;
  const end = (outcome: Outcome<Message | undefined>): void => {
    call.end();
    server.calls.delete(id);
    toCaller.end(outcome);
  };
  const failed = (error: unknown): void => end({ ok: false, failure: transport.failureOf(error, key) });
  void run(transport, method, found.handler, call, inbox, outbox, toCaller).then(end, failed);
}

async function run(
  transport: SimTransport,
  method: Method,
  handler: (...args: unknown[]) => unknown,
  call: ServerCall,
  inbox: Inbox,
  outbox: Outbox,
  toCaller: ToCaller,
): Promise<Outcome<Message | undefined>> {
  if (method.methodKind === "client_streaming") {
    const outcome = await (handler(inbox, call) as Promise<Outcome<unknown>>);
    return outcome.ok ? { ok: true, value: transport.message(method.output, outcome.value) } : outcome;
  }
  let request: unknown = inbox;
  if (method.methodKind === "server_streaming") {
    for await (const message of inbox) {
      request = message;
      break;
    }
  }
  const answers = handler(request, call) as AsyncIterable<unknown>;
  await outbox.pump(answers, (message) => toCaller.data(transport.message(method.output, message)));
  return { ok: true, value: undefined };
}
