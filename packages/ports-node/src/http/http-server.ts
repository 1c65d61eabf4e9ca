/**
 * HTTP/1.1 in, for handlers that know nothing of sockets. Bodies flow both ways at the pace of the slower side; whatever a client does
 * (hangs, leaves, sends noise, announces more than it sends) ends its own request and nothing else.
 *
 * A request whose body was not read to its end must not poison its connection: what is left is read and dropped when it is little,
 * otherwise the connection is closed, after the client had time to read the answer (closing at once would reset it).
 *
 * A client that sends or takes less than the least rate, while the server waits for it, loses its connection (@stamp/base, pace.ts).
 *
 * The bytes that a request announced are the request. What follows them on the connection is the next one: when it is no HTTP it gets its
 * own 400, after the answers of those before it were sent.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { FailureError, loggedTarget, type Pace } from "@stamp/base";
import type { HttpBody, HttpHandler, HttpRefusal, HttpResponse, Logger } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import { inWords } from "../process/in-words.ts";
import { type CertificatePair, certificateEndMs, readPair, type TlsFiles, watchPair } from "../secrets/certificates.ts";
import { Acceptors } from "./acceptors.ts";
import { bodyPieces, dispose, takenBy, writeBytesMax } from "./answer-bodies.ts";
import { Exchange, type LastAnswer } from "./http-exchange.ts";
import { defaultHttpLimits, type HttpLimits } from "./http-limits.ts";
import { http } from "./node-http.ts";
import { Paces } from "./paces.ts";
import { endRefused, lastAnswer, refusals, statuses } from "./refused.ts";
import { endInStages, IgnoredRequests } from "./sent-ahead.ts";

export interface HttpServeOptions {
  /** `host:port`; port 0 for any. */
  readonly listen: string;
  readonly limits?: Partial<HttpLimits>;
  /** Files of a certificate, to serve HTTPS instead of HTTP. */
  readonly tls?: TlsFiles | undefined;
  /** How often the files of `tls` are looked at again; for tests. */
  readonly tlsCheckEveryMs?: number;
  readonly logger?: Logger;
}

export interface CertificateInUse {
  /** End of the certificate, in milliseconds since 1970. */
  readonly endsAtMs: number;
  /** True if the files hold something else by now that can't be used. */
  readonly successorUnusable: boolean;
}

export interface HttpListener {
  /** `host:port` with the port that was bound. */
  readonly address: string;
  /** Certificate that is served; undefined for HTTP. */
  readonly certificate: CertificateInUse | undefined;
  /** Takes no more requests; those in progress have `graceMs` to end. Returns how many were cut. */
  close(graceMs?: number): Promise<number>;
}

const contentLength = "content-length";

export class NodeHttpServer {
  readonly #handler: HttpHandler;
  readonly #limits: HttpLimits;
  readonly #logger: Logger;
  readonly #server: Server | SecureServer;
  readonly #acceptors: Acceptors;
  readonly #endWatch: (() => void) | undefined;
  #certificate: CertificateInUse | undefined;
  readonly #paces: Paces;
  readonly #ignored: IgnoredRequests;
  readonly #connections = new WeakMap<Duplex, Connection>();
  #active = 0;
  #closing = false;

  constructor(handler: HttpHandler, options: HttpServeOptions) {
    this.#handler = handler;
    this.#limits = { ...defaultHttpLimits, ...options.limits };
    this.#logger = options.logger ?? silentLogger;
    const limits = this.#limits;
    this.#paces = new Paces(limits);
    this.#ignored = new IgnoredRequests(limits.ignoredMax);
    const serverOptions = {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headerTimeoutMs,
      requestTimeout: 0,
      // Refused here, in the handler's words; Node has an answer of its own.
      requireHostHeader: false,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(10_000, limits.headerTimeoutMs),
      joinDuplicateHeaders: true,
      noDelay: true,
    };
    const { tls } = options;
    if (tls) {
      const first = readPair(tls);
      const server = createSecureServer({
        ...serverOptions,
        ...first,
        minVersion: "TLSv1.2",
        handshakeTimeout: limits.headerTimeoutMs,
      });
      this.#certificate = { endsAtMs: certificateEndMs(first), successorUnusable: false };
      this.#endWatch = watchPair(tls, (pair) => this.#renew(server, pair), this.#logger, options.tlsCheckEveryMs);
      // A failed handshake ends that client's connection, and nothing else.
      server.on("tlsClientError", () => {});
      // Node pauses the parser of a connection that takes no answers, but not TLS, which hands on all records of a read: the parser refuses them
      // as HPE_PAUSED. With a listener for its data the connection is an ordinary stream, which keeps them while it is paused.
      server.on("secureConnection", (socket) => socket.on("data", ignore));
      this.#server = server;
    } else this.#server = http.createServer(serverOptions);
    this.#acceptors = new Acceptors(this.#server, limits);
    this.#server.setTimeout(limits.idleTimeoutMs);
    // Beyond a count Node drops headers without a word, a condition among them: their bytes are bounded, so their count is.
    this.#server.maxHeadersCount = 0;
    this.#server.on("request", (message, response) => this.#serve(message, response, false));
    this.#server.on("checkContinue", (message, response) => this.#serve(message, response, true));
    this.#server.on("checkExpectation", (message, response) => this.#serve(message, response, true, "expectation"));
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => this.#broken(socket, error.code));
    this.#server.on("connect", (_message: IncomingMessage, socket: Duplex) => this.#refuse(socket, "verb"));
  }

  #renew(server: SecureServer, pair: CertificatePair | undefined): void {
    if (pair !== undefined) server.setSecureContext({ ...pair, minVersion: "TLSv1.2" });
    const endsAtMs = pair === undefined ? (this.#certificate?.endsAtMs ?? 0) : certificateEndMs(pair);
    this.#certificate = { endsAtMs, successorUnusable: pair === undefined };
  }

  async listen(listen: string): Promise<HttpListener> {
    const colon = listen.lastIndexOf(":");
    const host = listen.slice(0, colon).replace(/^\[|\]$/g, "");
    const bounded = await this.#acceptors.listen({ host, port: Number(listen.slice(colon + 1)) }).catch((error: NodeJS.ErrnoException) => {
      const taken = error.code === "EADDRINUSE";
      throw new FailureError({
        code: taken ? "alreadyExists" : "unavailable",
        reason: taken ? "conflict" : "connectFailed",
        message: taken ? `${listen} is taken by another process` : `can't listen at ${listen}: ${inWords(error)}`,
        applied: "no",
      });
    });
    if (!bounded) {
      this.#logger.warn("cannot bound what the system holds for slow clients: set the sysctl net.ipv4.tcp_notsent_lowat to 262144", {
        listen,
        node: process.version,
      });
    }
    this.#server.on("error", (error) => this.#logger.error("the HTTP server reports an error", { error }));
    const { port } = this.#server.address() as AddressInfo;
    let closing: Promise<number> | undefined;
    const certificate = (): CertificateInUse | undefined => this.#certificate;
    return {
      address: `${listen.slice(0, colon)}:${port}`,
      get certificate() {
        return certificate();
      },
      close: (graceMs = 2_000) => {
        closing ??= this.#close(graceMs);
        return closing;
      },
    };
  }

  async #close(graceMs: number): Promise<number> {
    this.#closing = true;
    this.#endWatch?.();
    const closed = this.#acceptors.close();
    this.#server.closeIdleConnections();
    const deadlineMs = performance.now() + graceMs;
    while (this.#active > 0 && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, 10));
    const cut = this.#active;
    this.#server.closeAllConnections();
    this.#acceptors.endAll();
    await closed;
    this.#paces.stop();
    return cut;
  }

  async #serve(message: IncomingMessage, response: ServerResponse, expectsContinue: boolean, refusal?: HttpRefusal): Promise<void> {
    const { socket } = message;
    // Errors of a connection that broke are seen by whoever reads or writes; without a listener they would end the process.
    message.on("error", ignore);
    response.on("error", ignore);
    // RFC 9112, section 9.6: after an answer that closes the connection nothing that follows on it is a request any more.
    const connection = this.#connectionOf(socket);
    if (connection.closes) {
      message.resume();
      this.#ignored.add(socket);
      return;
    }
    const why = refusal ?? this.#refusalOf(message);
    if (why === "pipelined") connection.closes = true;
    this.#active += 1;
    const exchange = new Exchange(message, response, expectsContinue, this.#paces);
    connection.unanswered.add(exchange);
    this.#acceptors.busy(socket);
    response.once("close", () => this.#answered(socket, exchange));
    try {
      if (why === "pipelined") await this.#sendLast(response, this.#refusal(why));
      else await this.#send(exchange, message, response, why === undefined ? await this.#answer(exchange) : this.#refusal(why));
    } catch (error) {
      // The answer can't be completed: the client must see that it is not whole.
      if (!response.destroyed) this.#logger.warn("an answer broke off", { method: exchange.method, error });
      this.#breakOff(socket, exchange, response);
    } finally {
      this.#active -= 1;
    }
  }

  #refusalOf({ socket, headers, httpVersion }: IncomingMessage): HttpRefusal | undefined {
    if (this.#connectionOf(socket).unanswered.size >= this.#limits.pipelinedMax) return "pipelined";
    return headers.host === undefined && httpVersion === "1.1" ? "hostMissing" : undefined;
  }

  /** True if no request of the connection came after this one. */
  #isLastOf(socket: Duplex, exchange: Exchange): boolean {
    return [...this.#connectionOf(socket).unanswered].at(-1) === exchange;
  }

  #connectionOf(socket: Duplex): Connection {
    let connection = this.#connections.get(socket);
    if (!connection) {
      connection = { unanswered: new Set(), broken: new Set(), refusal: undefined, closes: false };
      this.#connections.set(socket, connection);
    }
    return connection;
  }

  /** Ends the connection in this answer's turn: the answers before it are sent whole. */
  #breakOff(socket: Socket, exchange: Exchange, response: ServerResponse): void {
    // Before its turn it has no socket.
    if (response.socket === null) this.#connectionOf(socket).broken.add(exchange);
    else response.destroy();
  }

  #answered(socket: Socket, exchange: Exchange): void {
    const { unanswered, broken, refusal } = this.#connectionOf(socket);
    unanswered.delete(exchange);
    for (const next of unanswered.values().take(1)) if (broken.has(next)) socket.destroySoon();
    if (unanswered.size > 0) return;
    this.#acceptors.idle(socket);
    if (refusal) endRefused(socket, refusal);
  }

  #broken(socket: Duplex, code: string | undefined): void {
    if (code === "ECONNRESET" || !socket.writable) socket.destroy();
    else this.#refuse(socket, refusals[code ?? ""] ?? "malformed");
  }

  #refusal(why: HttpRefusal): HttpResponse & { readonly body?: Uint8Array } {
    return this.#handler.refused?.(why) ?? { status: statuses[why] ?? 400, headers: {} };
  }

  /** Refuses bytes that are no HTTP. The parser reports them again with everything that follows. */
  #refuse(socket: Duplex, why: HttpRefusal): void {
    const connection = this.#connectionOf(socket);
    if (connection.refusal) return;
    connection.refusal = lastAnswer(this.#refusal(why));
    const last = [...connection.unanswered].at(-1);
    if (!last) endRefused(socket, connection.refusal);
    else if (!last.complete) last.breakOff(connection.refusal);
  }

  async #answer(exchange: Exchange): Promise<HttpResponse> {
    try {
      return await this.#handler(exchange);
    } catch (error) {
      this.#logger.error("an HTTP handler failed by a bug", { method: exchange.method, target: loggedTarget(exchange.target), error });
      return { status: 500, headers: {} };
    }
  }

  /** Answers the first request beyond the bound, in its turn, and ends the connection. */
  async #sendLast(response: ServerResponse, answer: HttpResponse & { readonly body?: Uint8Array }): Promise<void> {
    const { status, reason, headers, body } = lastAnswer(answer);
    response.writeHead(status, reason, [...headers]);
    response.write(body);
    await endInStages(response, this.#limits.drainTimeoutMs);
    response.destroy();
  }

  async #send(exchange: Exchange, message: IncomingMessage, response: ServerResponse, answer: HttpResponse): Promise<void> {
    const { body } = answer;
    const bodyless = message.method === "HEAD" || answer.status === 204 || answer.status === 304;
    const left = exchange.bodyLeft(this.#limits.drainBytesMax);
    if (answer.endsConnection === true) this.#breakOff(message.socket, exchange, response);
    if (answer.endsConnection === true || response.destroyed || response.headersSent) {
      await dispose(body);
      return;
    }
    const headers: string[] = [];
    let announced: number | undefined;
    for (const name in answer.headers) {
      const value = answer.headers[name] as string | readonly string[];
      if (typeof value !== "string") for (const one of value) headers.push(name, one);
      else {
        headers.push(name, value);
        if (name.length === contentLength.length && name.toLowerCase() === contentLength) announced = Number(value);
      }
    }
    if (announced === undefined && !bodyless && (body === undefined || body instanceof Uint8Array)) {
      announced = body?.length ?? 0;
      headers.push("Content-Length", String(announced));
    }
    // Answers while the door closes end their connection, or a busy client would keep the door open with one request after another.
    if (left === "close" || (this.#closing && this.#isLastOf(message.socket, exchange))) {
      this.#connectionOf(message.socket).closes = true;
      headers.push("Connection", "close");
    }
    response.writeHead(answer.status, answer.reason, headers);
    // Told by node when the last write of the answer has been done.
    if (answer.sent !== undefined) response.once("finish", answer.sent);

    if (bodyless || body === undefined) await dispose(body);
    else if (body instanceof Uint8Array) {
      if (left !== "close") {
        if (announced !== body.length) throw new Error(`a body of ${body.length} bytes was announced as ${announced}`);
        if (body.length <= writeBytesMax) this.#end(response, body);
        else {
          await this.#sendStream(response, bodyPieces(body), announced);
          this.#end(response);
        }
        if (left === "drain") await this.#drain(message);
        return;
      }
      await this.#sendStream(response, bodyPieces(body), undefined);
    } else await this.#sendStream(response, body, announced);

    if (left === "close") {
      response.flushHeaders();
      await this.#drain(message);
    }
    this.#end(response);
    if (left === "drain") await this.#drain(message);
  }

  async #sendStream(response: ServerResponse, body: HttpBody | Iterable<Uint8Array>, announced: number | undefined): Promise<void> {
    const taken = takenBy(body);
    let sent = 0;
    let pace: Pace | undefined;
    for await (const chunk of body) {
      if (response.destroyed) return;
      sent += chunk.length;
      if (announced !== undefined && sent > announced) throw new Error(`a body is longer than the announced ${announced} bytes`);
      if (chunk.length > 0 && !response.write(chunk, taken?.(chunk))) {
        pace ??= this.#paces.of("answer");
        await this.#writable(response, pace, chunk.length);
      }
      if (response.destroyed) return;
    }
    if (announced !== undefined && sent !== announced) throw new Error(`a body of ${sent} bytes was announced as ${announced}`);
  }

  /** Resolves when more may be written, or nobody is there any more; ends the connection of a client that takes too little. */
  #writable(response: ServerResponse, pace: Pace, bytes: number): Promise<void> {
    if (response.destroyed || !response.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        this.#paces.rest(pace, bytes);
        response.off("drain", done);
        response.off("close", done);
        resolve();
      };
      response.on("drain", done);
      response.on("close", done);
      this.#waitFor(response, pace);
    });
  }

  /** Ends an answer; its last bytes, too, have to be taken at the least rate. */
  #end(response: ServerResponse, body?: Uint8Array): void {
    if (body) response.end(body);
    else response.end();
    if (response.writableFinished || response.destroyed) return;
    // The system has taken all of it.
    if (response.socket?.writableLength === 0) return;
    const pace = this.#paces.of("answer");
    this.#waitFor(response, pace);
    response.once("close", () => this.#paces.rest(pace, 0));
  }

  #waitFor(response: ServerResponse, pace: Pace): void {
    // The answer to a request that was sent ahead: the client may have taken all that there is to take, the server is not done before it.
    if (response.socket === null) return;
    this.#paces.wait(pace, () => {
      this.#logger.debug("a client takes its answer more slowly than the least rate", { address: response.socket?.remoteAddress });
      response.destroy();
    });
  }

  /** Reads and drops what is left of a request, within bounds; beyond them the connection is destroyed. */
  #drain(message: IncomingMessage): Promise<void> {
    if (message.complete || message.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      let dropped = 0;
      const done = (): void => {
        clearTimeout(timer);
        message.off("data", onData);
        resolve();
      };
      const giveUp = (): void => {
        done();
        message.destroy();
      };
      const onData = (chunk: Buffer): void => {
        dropped += chunk.length;
        if (dropped > this.#limits.drainBytesMax) giveUp();
      };
      const timer = setTimeout(giveUp, this.#limits.drainTimeoutMs);
      message.on("data", onData);
      message.once("end", done);
      message.once("close", done);
      message.resume();
    });
  }
}

const ignore = (): void => {};

/** The requests of a connection whose answers were not sent yet, in order, and what is answered to the noise after them. */
interface Connection {
  readonly unanswered: Set<Exchange>;
  /** Requests among the unanswered whose answer ends the connection. */
  readonly broken: Set<Exchange>;
  refusal: LastAnswer | undefined;
  /** True once an answer that ends the connection was sent, or is due. */
  closes: boolean;
}

export function serveHttp(handler: HttpHandler, options: HttpServeOptions): Promise<HttpListener> {
  return new NodeHttpServer(handler, options).listen(options.listen);
}
