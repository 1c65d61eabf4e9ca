/**
 * A small client of the Blob service over node:http with SharedKey: what drills and benchmarks need, and nothing of the product's server
 * side, so that what they see is what a stranger sees. It never retries: it says what happened, and `unknown` when it can't know.
 */
import { createHmac } from "node:crypto";
import { Agent, type IncomingMessage, request } from "node:http";
import { signRequest } from "@stamp/azure-rest";

export interface BlobAnswer {
  readonly kind: "answer";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The request may have been carried out, now or later. */
export interface BlobUnknown {
  readonly kind: "unknown";
  readonly why: string;
}

/** The connection was never made: it was not carried out. */
export interface BlobUnsent {
  readonly kind: "unsent";
  readonly why: string;
}

export type BlobResult = BlobAnswer | BlobUnknown | BlobUnsent;

export interface BlobClientOptions {
  /** URL with the account in the path: http://127.0.0.1:10000/devstoreaccount1 */
  readonly endpoint: string;
  readonly account: string;
  /** Key of the account, in base64. */
  readonly key: string;
  readonly connectionsMax?: number;
  readonly timeoutMs?: number;
}

const hmacSha256 = (key: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", key).update(message).digest();

export class BlobClient {
  readonly #options: BlobClientOptions;
  readonly #agent: Agent;
  readonly #host: string;
  readonly #port: number;
  readonly #path: string;
  readonly #key: Uint8Array;

  constructor(options: BlobClientOptions) {
    this.#options = options;
    const url = new URL(options.endpoint);
    this.#host = url.hostname;
    this.#port = Number(url.port || "80");
    this.#path = url.pathname.replace(/\/$/, "");
    this.#key = Buffer.from(options.key, "base64");
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connectionsMax ?? 128 });
  }

  static fromConnectionString(text: string, more: { readonly connectionsMax?: number; readonly timeoutMs?: number } = {}): BlobClient {
    const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(text)?.[1] ?? "";
    return new BlobClient({ endpoint: part("BlobEndpoint"), account: part("AccountName"), key: part("AccountKey"), ...more });
  }

  get account(): string {
    return this.#options.account;
  }

  createContainer(container: string): Promise<BlobResult> {
    return this.call("PUT", `/${container}?restype=container`, {});
  }

  deleteContainer(container: string): Promise<BlobResult> {
    return this.call("DELETE", `/${container}?restype=container`, {});
  }

  put(container: string, blob: string, body: Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<BlobResult> {
    return this.call(
      "PUT",
      `/${container}/${blob}`,
      { "x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream", ...headers },
      body,
    );
  }

  get(container: string, blob: string, headers: Readonly<Record<string, string>> = {}): Promise<BlobResult> {
    return this.call("GET", `/${container}/${blob}`, headers);
  }

  /** Calls `target` below the account, with its query. */
  call(method: string, target: string, headers: Readonly<Record<string, string>>, body?: Uint8Array): Promise<BlobResult> {
    const path = this.#path + target;
    const lengthed = body === undefined && method !== "PUT" ? headers : { ...headers, "content-length": String(body?.length ?? 0) };
    const signed = signRequest({ method, target: path, headers: lengthed }, this.#options.account, this.#key, Date.now(), hmacSha256);
    return new Promise((resolve) => {
      let connected = false;
      const req = request({
        agent: this.#agent,
        host: this.#host,
        port: this.#port,
        method,
        path,
        headers: signed,
        timeout: this.#options.timeoutMs ?? 30_000,
      });
      const lost = (error: Error): void => {
        req.destroy();
        resolve({ kind: connected ? "unknown" : "unsent", why: error.message });
      };
      req.on("socket", (socket) => {
        if (socket.connecting) socket.once("connect", () => (connected = true));
        else connected = true;
      });
      req.on("error", lost);
      req.on("timeout", () => lost(new Error("no answer in time")));
      req.on("response", (response) => {
        collect(response).then((bytes) => {
          resolve({ kind: "answer", status: response.statusCode ?? 0, headers: response.headers as Record<string, string>, body: bytes });
        }, lost);
      });
      req.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

async function collect(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  if (!response.complete) throw new Error("the answer broke off");
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}
