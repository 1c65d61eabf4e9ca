/**
 * Signed requests to the front-end's own HTTP handlers, over a network that delays and cuts. Each request is a connection of its own; one
 * that is not answered in time is unknown.
 */
import { type ServiceName, signRequest } from "@stamp/azure-rest";
import { concatBytes } from "@stamp/base";
import type { FrontEndRole } from "@stamp/front-end";
import type { HttpResponse, World } from "@stamp/ports";
import { sleep, within } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** True if the body broke off. */
  readonly short: boolean;
}

/** Account behind a front-end. */
export interface HttpAccount {
  /** Name of the front-end's process. */
  readonly frontEnd: string;
  readonly account: string;
  readonly accountKey: Uint8Array;
  /** Name in paths; the account's own name when absent. */
  readonly pathName?: string;
}

const timeoutMsDefault = 5_000;
const chunkBytes = 64 * 1024;

export class HttpClient {
  readonly #sim: Simulation;
  readonly #world: World;
  readonly #name: string;
  readonly #door: HttpAccount;
  readonly #service: ServiceName;
  readonly #timeoutMs: number;

  constructor(sim: Simulation, world: World, name: string, door: HttpAccount, service: ServiceName, timeoutMs: number = timeoutMsDefault) {
    this.#sim = sim;
    this.#world = world;
    this.#name = name;
    this.#door = door;
    this.#service = service;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns undefined if no answer in time. `path` begins behind the account. `pauseMs`: before each piece of the body. */
  async request(
    method: string,
    path: string,
    given: Readonly<Record<string, string>>,
    body?: Uint8Array,
    pauseMs = 0,
  ): Promise<Received | undefined> {
    const { account, accountKey, frontEnd, pathName = account } = this.#door;
    const { clock, digest } = this.#world;
    const target = `/${pathName}${path}`;
    const unsigned = { host: "127.0.0.1:10000", "content-length": String(body?.length ?? 0), ...given };
    const headers = signRequest(
      { service: this.#service, method, target, headers: unsigned },
      account,
      accountKey,
      clock.wallMs(),
      (key, message) => digest.hmacSha256(key, message),
    );
    const stop = new AbortController();
    const received = await within(
      clock,
      this.#timeoutMs,
      this.#sim.ask(this.#name, frontEnd, async () => {
        const role = this.#sim.role(frontEnd) as FrontEndRole;
        return collected(
          await role[this.#service]({
            method,
            target,
            headers,
            body: this.#chunks(body, pauseMs),
            remoteAddress: "127.0.0.1",
            secure: false,
            signal: stop.signal,
          }),
        );
      }),
    );
    if (received === undefined) stop.abort();
    return received;
  }

  async *#chunks(body: Uint8Array | undefined, pauseMs: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; body && at < body.length; at += chunkBytes) {
      if (pauseMs > 0) await sleep(this.#world.clock, pauseMs);
      yield body.subarray(at, at + chunkBytes);
    }
  }
}

async function collected(response: HttpResponse): Promise<Received> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers))
    headers[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ");
  const { body, status } = response;
  if (body === undefined || body instanceof Uint8Array) return { status, headers, body: body ?? new Uint8Array(0), short: false };
  const parts: Uint8Array[] = [];
  try {
    for await (const part of body) parts.push(part);
    return { status, headers, body: concatBytes(parts), short: false };
  } catch {
    return { status, headers, body: concatBytes(parts), short: true };
  }
}
