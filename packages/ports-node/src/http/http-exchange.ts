/** One request of an HTTP/1.1 connection (http-server.ts) as its handler sees it, and how its body is read. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { TLSSocket } from "node:tls";
import { type AbsoluteForm, FailureError, type Pace, parseAbsoluteForm, refused } from "@stamp/base";
import type { HttpRequest } from "@stamp/ports";
import type { Paces } from "./paces.ts";

/** Longest body that is taken whole; longer ones are read piece by piece. */
const wholeBytesMax = 64 * 1024;

/** The last answer on a connection. */
export interface LastAnswer {
  readonly status: number;
  /** Text behind the status in the first line. */
  readonly reason: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
}

/** One request being served. */
export class Exchange implements HttpRequest {
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #paces: Paces;
  /** The request line's target in two parts, if it is in absolute form; the handler sees the origin form and its host. */
  readonly #absolute: AbsoluteForm | undefined;
  #continuePending: boolean;
  #readBytes = 0;
  #bodyTaken = false;
  #tooSlow = false;
  #headers: Record<string, string> | undefined;
  #controller: AbortController | undefined;
  #left = false;

  constructor(message: IncomingMessage, response: ServerResponse, expectsContinue: boolean, paces: Paces) {
    this.#message = message;
    this.#response = response;
    this.#paces = paces;
    this.#absolute = parseAbsoluteForm(message.url ?? "");
    this.#continuePending = expectsContinue;
    response.on("close", () => {
      if (response.writableFinished) return;
      this.#left = true;
      this.#controller?.abort();
    });
  }

  get method(): string {
    return this.#message.method ?? "";
  }

  get target(): string {
    return this.#absolute?.originForm ?? this.#message.url ?? "";
  }

  get headers(): Readonly<Record<string, string>> {
    if (this.#headers === undefined) {
      const headers: Record<string, string> = {};
      const { headers: sent } = this.#message;
      for (const name in sent) {
        const value = sent[name];
        if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
      }
      if (this.#absolute) headers.host = this.#absolute.authority;
      this.#headers = headers;
    }
    return this.#headers;
  }

  get rawHeaders(): readonly string[] {
    return this.#message.rawHeaders;
  }

  get remoteAddress(): string {
    return this.#message.socket.remoteAddress ?? "";
  }

  get secure(): boolean {
    return this.#message.socket instanceof TLSSocket;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#left) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  async smallBody(): Promise<Uint8Array | undefined> {
    const message = this.#message;
    if (this.#bodyTaken || this.#continuePending || !(Number(message.headers["content-length"]) <= wholeBytesMax)) return undefined;
    // The parser tells of the head before it goes on with what came behind it in the same read.
    if (!message.complete) await new Promise(setImmediate);
    if (!message.complete || message.destroyed || message.errored) return undefined;
    this.#bodyTaken = true;
    // Each read gives one buffer of those that came, and the one after the last ends the stream.
    const pieces: Buffer[] = [];
    for (let piece = message.read() as Buffer | null; piece !== null; piece = message.read() as Buffer | null) pieces.push(piece);
    const [only = Buffer.alloc(0)] = pieces;
    const buffer = pieces.length > 1 ? Buffer.concat(pieces) : only;
    this.#readBytes = buffer.length;
    return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
  }

  get body(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => this.#read() };
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    if (this.#bodyTaken) throw new Error("the body was read before");
    this.#bodyTaken = true;
    if (this.#continuePending) {
      this.#continuePending = false;
      if (!this.#response.headersSent) this.#response.writeContinue();
    }
    try {
      for await (const buffer of chunksOf(this.#message, this.#paces)) {
        this.#readBytes += buffer.length;
        yield new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
      }
    } catch (error) {
      if (error instanceof FailureError) {
        this.#tooSlow = true;
        throw error;
      }
      throw clientLeft(`the body ended early: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (!this.#message.complete) throw clientLeft("the body ended early");
  }

  /** Ends the request because its body can't be parsed further: the client is told, unless it has an answer already. */
  breakOff({ status, reason, headers, body }: LastAnswer): void {
    if (this.#response.headersSent) this.#response.end();
    else this.#response.writeHead(status, reason, [...headers]).end(body);
    this.#response.once("close", () => this.#message.destroy());
  }

  get complete(): boolean {
    return this.#message.complete;
  }

  /** Returns how the connection goes on after the answer: nothing is left, what is left gets dropped, or it has to be closed. */
  bodyLeft(drainBytesMax: number): "nothing" | "drain" | "close" {
    if (this.#message.complete) return "nothing";
    const { "content-length": length, "transfer-encoding": encoding } = this.#message.headers;
    if (length === undefined && encoding === undefined) return "nothing";
    if (this.#tooSlow) return "close";
    // A client that waits for 100 may or may not send its body now: what follows can't be told apart.
    if (this.#continuePending) return "close";
    if (length === undefined) return "close";
    return Number(length) - this.#readBytes <= drainBytesMax ? "drain" : "close";
  }
}

const events = ["readable", "end", "close", "error"] as const;

/**
 * Yields the chunks of a body. `message.iterator({ destroyOnReturn: false })` would cost a small request 10 µs: it
 * waits for `close` as well. Throws FailureError if the client sends too slowly.
 */
async function* chunksOf(message: IncomingMessage, paces: Paces): AsyncGenerator<Buffer> {
  let changed = (): void => {};
  let pace: Pace | undefined;
  let tooSlow = false;
  const onTooSlow = (): void => {
    tooSlow = true;
    changed();
  };
  const onChange = (): void => changed();
  try {
    for (;;) {
      const chunk = message.read() as Buffer | null;
      if (chunk !== null) {
        pace?.moved(chunk.length);
        yield chunk;
      } else if (message.errored) throw message.errored;
      // A small body has mostly come with its head: then nobody waits, and nothing has to be listened to.
      else if (message.complete || message.readableEnded || message.destroyed) return;
      else if (tooSlow) throw sendsTooSlowly;
      else {
        if (pace === undefined) for (const event of events) message.on(event, onChange);
        pace ??= paces.of("body");
        paces.wait(pace, onTooSlow);
        await new Promise<void>((resolve) => {
          changed = resolve;
        });
        paces.rest(pace, 0);
      }
    }
  } finally {
    if (pace) {
      paces.rest(pace, 0);
      for (const event of events) message.off(event, onChange);
    }
  }
}

/** Nothing is made of a body that did not come. */
const sendsTooSlowly = new FailureError(
  refused("deadlineExceeded", "timeout", "the body comes more slowly than the least rate", { slow: "client" }).failure,
);

const clientLeft = (message: string): FailureError =>
  new FailureError({ code: "cancelled", reason: "connectionLost", message, applied: "unknown" });
