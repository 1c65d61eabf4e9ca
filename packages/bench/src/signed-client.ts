/**
 * A lean client of one service: SharedKeyLite over plain sockets that stay open, one request at a time on each. It does no more than a
 * benchmark needs, so that what is measured is the cluster and not the client.
 */
import { createHmac } from "node:crypto";
import { createConnection, type Socket } from "node:net";

export interface SignedAnswer {
  readonly status: number;
  readonly body: Buffer;
}

const answerTimeoutMs = 60_000;
const version = "2021-12-02";

export class SignedClient {
  readonly #account: string;
  readonly #key: Buffer;
  readonly #isTable: boolean;
  readonly #idle: Connection[] = [];
  #date = "";
  #dateMs = 0;
  readonly host: string;
  readonly port: number;
  /** Path of the account, before every target. */
  readonly path: string;

  constructor(connectionString: string, service: "queue" | "table") {
    const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`, "i").exec(connectionString)?.[1] ?? "";
    const endpoint = new URL(part(`${service}Endpoint`));
    this.#account = part("AccountName");
    this.#key = Buffer.from(part("AccountKey"), "base64");
    this.#isTable = service === "table";
    this.host = endpoint.hostname;
    this.port = Number(endpoint.port || "80");
    this.path = endpoint.pathname.replace(/\/$/, "");
  }

  /** Calls `target` below the account, with its query, of which no parameter is signed. Header names are in lower case. */
  async call(method: string, target: string, headers: Readonly<Record<string, string>>, body?: Buffer): Promise<SignedAnswer> {
    const path = this.path + target;
    const date = this.#now();
    const signature = createHmac("sha256", this.#key)
      .update(this.#textOf(method, path, headers, date))
      .digest("base64");
    let head =
      `${method} ${path} HTTP/1.1\r\nhost: ${this.host}:${this.port}\r\nx-ms-date: ${date}\r\nx-ms-version: ${version}\r\n` +
      `authorization: SharedKeyLite ${this.#account}:${signature}\r\n`;
    for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`;
    if (body !== undefined || !["GET", "HEAD", "DELETE"].includes(method)) head += `content-length: ${body?.length ?? 0}\r\n`;
    let connection = this.#idle.pop();
    while (connection?.open === false) connection = this.#idle.pop();
    connection ??= new Connection(this.host, this.port);
    const answer = await connection.ask(`${head}\r\n`, body);
    if (connection.open) this.#idle.push(connection);
    return answer;
  }

  close(): void {
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #textOf(method: string, path: string, headers: Readonly<Record<string, string>>, date: string): string {
    const questionMark = path.indexOf("?");
    const resource = `/${this.#account}${questionMark < 0 ? path : path.slice(0, questionMark)}`;
    if (this.#isTable) return `${date}\n${resource}`;
    return `${method}\n\n${headers["content-type"] ?? ""}\n\nx-ms-date:${date}\nx-ms-version:${version}\n${resource}`;
  }

  /** Returns the date of this second. */
  #now(): string {
    const nowMs = Date.now();
    if (nowMs - this.#dateMs >= 1_000) {
      this.#dateMs = nowMs;
      this.#date = new Date(nowMs).toUTCString();
    }
    return this.#date;
  }
}

interface Waiting {
  resolve(answer: SignedAnswer): void;
  reject(error: Error): void;
}

class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #waiting: Waiting | undefined;

  constructor(host: string, port: number) {
    this.#socket = createConnection({ host, port, noDelay: true });
    this.#socket.setTimeout(answerTimeoutMs, () => this.#socket.destroy(new Error("no answer in time")));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => this.#fail(new Error("the connection was closed")));
    this.#socket.on("data", (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#take();
    });
  }

  get open(): boolean {
    return !this.#socket.destroyed;
  }

  ask(head: string, body: Buffer | undefined): Promise<SignedAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.cork();
      this.#socket.write(head, "latin1");
      if (body !== undefined) this.#socket.write(body);
      this.#socket.uncork();
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  #take(): void {
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    const after = this.#received.subarray(headEnd + 4);
    const body =
      length === undefined ? wholeBody(head, after) : after.length < Number(length) ? undefined : after.subarray(0, Number(length));
    if (body === undefined) return;
    // One request at a time: nothing follows.
    this.#received = Buffer.alloc(0);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({ status: Number(head.slice(9, 12)), body });
  }
}

/** Returns the body of an answer without a length; undefined while there is more to come. */
function wholeBody(head: string, bytes: Buffer): Buffer | undefined {
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return Buffer.alloc(0);
  const pieces: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    if (bytes.length < lineEnd + 2 + size + 2) return undefined;
    if (size === 0) return Buffer.concat(pieces);
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
