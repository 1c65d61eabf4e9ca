/** Blobs of an account at one of two stamps, over the HTTP handlers of that stamp's front-end. */
import assert from "node:assert/strict";
import { unwrap, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { HttpClient, type Received } from "../workloads/clients/http-client.ts";
import { account, type OneStamp } from "./two-stamps.ts";

const version = "2023-11-03";

export interface BlobClientOptions {
  /** True if it reads at the `-secondary` name. */
  readonly secondary?: boolean;
}

export class BlobsAt {
  readonly stamp: OneStamp;
  readonly #http: HttpClient;

  private constructor(stamp: OneStamp, http: HttpClient) {
    this.stamp = stamp;
    this.#http = http;
  }

  static async of(sim: Simulation, stamp: OneStamp, { secondary = false }: BlobClientOptions = {}): Promise<BlobsAt> {
    const { keys } = unwrap(await stamp.accounts.get({ account }, { timeoutMs: 3_000 }));
    const accountKey = Uint8Array.from(Buffer.from(keys[0] ?? "", "base64"));
    assert.ok(accountKey.length > 0, "the account has a key");
    const name = `client-${stamp.name}`;
    const door = { account, accountKey, frontEnd: stamp.process("front-end", 1), ...(secondary && { pathName: `${account}-secondary` }) };
    return new BlobsAt(stamp, new HttpClient(sim, sim.world(name), name, door, "blob", 20_000));
  }

  /** Asks over HTTP. `path` begins with a slash. */
  async ask(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: Uint8Array): Promise<Received> {
    const received = await this.#http.request(method, path, { "x-ms-version": version, ...headers }, body);
    assert.ok(received, `${method} ${path} is not answered`);
    return received;
  }

  /** Repeats a request while the stamp is busy. */
  async done(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: Uint8Array): Promise<Received> {
    for (let attempt = 0; ; attempt++) {
      const received = await this.#http.request(method, path, { "x-ms-version": version, ...headers }, body);
      if (received !== undefined && received.status < 300) return received;
      assert.ok(attempt < 50 && (received === undefined || received.status >= 500), `${method} ${path}: ${textOf(received)}`);
      await sleep(this.stamp.world.clock, 200);
    }
  }

  /** Returns bytes and headers of a blob as a client sees them; undefined: it is not there. */
  async seen(path: string): Promise<string | undefined> {
    const found = await this.done("GET", path).catch((error: unknown) => {
      if (/BlobNotFound|ContainerNotFound/.test(String(error))) return undefined;
      throw error;
    });
    if (found === undefined) return undefined;
    const { status, headers, body, short } = found;
    const told = Object.entries(headers).filter(([name]) => !perRequest.has(name));
    return `${status} ${short} ${sumOf(body)} ${JSON.stringify(told.sort())}`;
  }

  /** Returns every blob of a container with its snapshots, metadata, tags, uncommitted and deleted ones, as the list tells them. */
  async list(container: string): Promise<string> {
    const include = "snapshots,metadata,tags,uncommittedblobs,deleted,versions,copy";
    const listed = await this.done("GET", `/${container}?restype=container&comp=list&include=${include}`);
    return new TextDecoder().decode(listed.body).replace(/ServiceEndpoint="[^"]*"/, "");
  }
}

const perRequest = new Set(["x-ms-request-id", "date", "x-ms-client-request-id"]);

const textOf = (received: Received | undefined): string =>
  received === undefined ? "no answer" : `${received.status} ${new TextDecoder().decode(received.body)}`;

function sumOf(body: Uint8Array): string {
  let sum = 0;
  for (const byte of body) sum = (Math.imul(sum, 31) + byte) | 0;
  return `${body.length} bytes ${sum}`;
}

/** Returns the bytes that no other name and number has. */
export function bytesOf(name: string, lengthBytes: number): Uint8Array {
  const seed = utf8(name);
  return Uint8Array.from({ length: lengthBytes }, (_, i) => ((seed[i % seed.length] ?? 0) + i * 13 + (i >>> 8)) & 0xff);
}
