/**
 * HTTP out, by node:http. Names are looked up here and the connection is made to the very addresses that were looked at, so that a name
 * can't stand for one address when it is checked and for another when it is connected to. Connections are kept for the next request; each
 * was checked when it was made, under the same host and port. No proxy, no redirect, no decoding of bodies.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import type { ClientRequest, Agent as HttpAgent, IncomingMessage, RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { FailureError, type Outcome, ok, refused } from "@stamp/base";
import type { HttpClient, IncomingAnswer, OutgoingOptions, OutgoingRequest } from "@stamp/ports";
import { http } from "./node-http.ts";

const connectionsMax = 256;
const connectionsPerHostMax = 64;
const idleConnectionsMax = 16;
const headerBytesMax = 32 * 1024;
const keepAliveMs = 15_000;

export interface NodeHttpClientOptions {
  /** Returns how names are looked up; for tests. */
  readonly lookup?: (hostname: string) => Promise<LookupAddress[]>;
  /** Further certificate authorities, in PEM. */
  readonly ca?: string;
}

class NotAllowed extends Error {}

export class NodeHttpClient implements HttpClient {
  readonly #lookup: (hostname: string) => Promise<LookupAddress[]>;
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;

  constructor(options: NodeHttpClientOptions = {}) {
    this.#lookup = options.lookup ?? ((hostname) => lookup(hostname, { all: true }));
    const agent = {
      keepAlive: true,
      maxSockets: connectionsPerHostMax,
      maxTotalSockets: connectionsMax,
      maxFreeSockets: idleConnectionsMax,
      timeout: keepAliveMs,
    };
    this.#http = new http.Agent(agent);
    this.#https = new HttpsAgent({ ...agent, minVersion: "TLSv1.2", ...(options.ca === undefined ? {} : { ca: options.ca }) });
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  request(request: OutgoingRequest, options: OutgoingOptions): Promise<Outcome<IncomingAnswer>> {
    const { hostname, secure, headers, method, port, target } = request;
    // An address needs no lookup, so the lookup below never sees it.
    if (isIP(hostname) !== 0 && !options.mayConnectTo(hostname)) return Promise.resolve(notAllowed(hostname));
    const wanted: RequestOptions = {
      agent: secure ? this.#https : this.#http,
      method,
      hostname,
      port,
      path: target,
      headers: { ...headers },
      lookup: this.#lookupAllowed(options.mayConnectTo),
      maxHeaderSize: headerBytesMax,
    };
    return new Promise((resolve) => {
      const end = (outcome: Outcome<IncomingAnswer>): void => {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", onAbort);
        resolve(outcome);
      };
      const fail = (error: Error): void => end(failedOf(hostname, error));
      let sent: ClientRequest;
      try {
        sent = secure ? httpsRequest(wanted) : http.request(wanted);
      } catch (error) {
        return resolve(refused("invalidArgument", "badRequest", error instanceof Error ? error.message : String(error)));
      }
      const onAbort = (): void => {
        end(refused("cancelled", "cancelled", "the request was given up"));
        sent.destroy();
      };
      const timer = setTimeout(() => {
        end(refused("deadlineExceeded", "timeout", `${hostname} did not answer within ${options.timeoutMs} ms`));
        sent.destroy();
      }, options.timeoutMs);
      options.signal?.addEventListener("abort", onAbort, { once: true });
      sent.on("error", fail);
      if (options.signal?.aborted) return onAbort();
      sent.on("socket", (socket) => {
        checkPeer(socket, options.mayConnectTo);
      });
      sent.on("response", (message) => {
        const { statusCode: status = 0, rawHeaders } = message;
        end(ok({ status, headers: headersOf(message), rawHeaders, body: new Body(message, hostname, options) }));
      });
      sent.end();
    });
  }

  /** Looks a name up, and returns only addresses that may be connected to. */
  #lookupAllowed(mayConnectTo: (address: string) => boolean): LookupFunction {
    return (hostname, options, callback) => {
      this.#lookup(hostname).then(
        (found) => {
          const family = options.family === 4 || options.family === 6 ? options.family : undefined;
          const allowed = found.filter((each) => mayConnectTo(each.address) && (family === undefined || each.family === family));
          const [first] = allowed;
          if (!first) callback(new NotAllowed(hostname), []);
          else if (options.all) callback(null, allowed);
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
    };
  }
}

/** Ends a connection to any other address before a byte of the request is written to it. */
function checkPeer(socket: Socket, mayConnectTo: (address: string) => boolean): void {
  const check = (): void => {
    const { remoteAddress } = socket;
    if (remoteAddress !== undefined && !mayConnectTo(remoteAddress)) socket.destroy(new NotAllowed(remoteAddress));
  };
  if (socket.connecting) socket.prependOnceListener("connect", check);
  else check();
}

function headersOf(message: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}

const notAllowed = (host: string): Outcome<never> =>
  refused("permissionDenied", "unauthorized", `${host} has no address that may be connected to`);

function failedOf(hostname: string, error: Error & { readonly code?: string }): Outcome<never> {
  if (error instanceof NotAllowed) return notAllowed(hostname);
  const reason = error.code === "ECONNRESET" || error.code === "EPIPE" ? "connectionLost" : "connectFailed";
  return refused("unavailable", reason, `${hostname} can't be reached: ${error.code ?? error.message}`);
}

/** Body that ends its connection if it is too late or nobody wants its rest. */
class Body implements AsyncIterableIterator<Uint8Array> {
  readonly #message: IncomingMessage;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #hostname: string;
  readonly #idleTimeoutMs: number;
  readonly #deadline: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  #late: string | undefined;

  constructor(message: IncomingMessage, hostname: string, options: OutgoingOptions) {
    this.#message = message;
    this.#hostname = hostname;
    this.#idleTimeoutMs = options.idleTimeoutMs;
    this.#signal = options.signal;
    this.#chunks = message.iterator({ destroyOnReturn: true })[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    // An error of a body that nobody reads any more is of no interest.
    message.on("error", () => {});
    this.#deadline = setTimeout(() => this.#giveUp(`its body was not there after ${options.bodyTimeoutMs} ms`), options.bodyTimeoutMs);
    this.#deadline.unref();
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (this.#signal?.aborted) this.#onAbort();
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const idle = setTimeout(() => this.#giveUp(`nothing came for ${this.#idleTimeoutMs} ms`), this.#idleTimeoutMs);
    try {
      const step = await this.#chunks.next();
      if (step.done && (this.#late !== undefined || !this.#message.complete)) throw new Error("its end is missing");
      if (!step.done) return { done: false, value: step.value };
      this.#end();
      return { done: true, value: undefined };
    } catch (error) {
      this.#end();
      const why = this.#late ?? (error as NodeJS.ErrnoException).code ?? String(error);
      const { failure } = refused("unavailable", "connectionLost", `the answer of ${this.#hostname} broke off: ${why}`);
      throw new FailureError(failure);
    } finally {
      clearTimeout(idle);
    }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#end();
    if (!this.#message.complete) this.#message.destroy();
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #onAbort = (): void => this.#giveUp("the request was given up");

  #giveUp(why: string): void {
    this.#late ??= why;
    this.#message.destroy(new Error(why));
  }

  #end(): void {
    clearTimeout(this.#deadline);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}
