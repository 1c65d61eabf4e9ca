/**
 * Requests of the front-end to its own handlers, signed with a key of the account: so what an init file makes is checked, admitted and stored
 * as what a client makes. Answers that mean "later" are asked for again until a deadline.
 */
import { signRequest, toBase64 } from "@stamp/azure-rest";
import { concatBytes } from "@stamp/base";
import { type HttpHandler, type HttpResponse, jitteredPause, type World } from "@stamp/ports";
import type { Accounts } from "../accounts/accounts.ts";
import { InitError } from "./load-init.ts";

/** Services that an init file speaks of. */
export type InitService = "blob" | "queue" | "table";

export interface OwnRequest {
  readonly method: string;
  /** Path behind the account's name, with a slash first. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Instead of `body`: read anew by each try. */
  readonly stream?: { readonly bytes: number; read(): AsyncIterable<Uint8Array> };
  /** True: an answer 500, which leaves open whether it was done, is not asked for again. */
  readonly once?: boolean;
}

export interface OwnAnswer {
  readonly status: number;
  /** Headers, by names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** How long one request may be asked for again, and how long one try may take, in milliseconds. */
const retryForMs = 60_000;
const tryForMs = 600_000;
const pauseMs = 200;
const chunkBytes = 256 * 1024;

export class OwnRequests {
  readonly #world: World;
  readonly #accounts: Accounts;
  readonly #handlers: Readonly<Record<InitService, HttpHandler>>;
  readonly #signal: AbortSignal;

  /** `signal`: aborted when the front-end stops. */
  constructor(world: World, accounts: Accounts, handlers: Readonly<Record<InitService, HttpHandler>>, signal: AbortSignal) {
    this.#world = world;
    this.#accounts = accounts;
    this.#handlers = handlers;
    this.#signal = signal;
  }

  /** Returns an answer whose status is in `expected`. Throws InitError with what the service said otherwise. */
  async ask(service: InitService, account: string, request: OwnRequest, expected: readonly number[]): Promise<OwnAnswer> {
    const { clock, random } = this.#world;
    const endMs = clock.monotonicMs() + retryForMs;
    for (;;) {
      const answer = await this.#try(service, account, request);
      if (expected.includes(answer.status)) return answer;
      const isLater = answer.status === 503 || (answer.status === 500 && request.once !== true);
      if (!isLater || clock.monotonicMs() > endMs || this.#signal.aborted) throw refused(service, account, request, answer);
      await jitteredPause({ clock, random }, pauseMs, this.#signal);
    }
  }

  /** Returns the MD5 of some bytes, in base64. */
  async md5Of(pieces: AsyncIterable<Uint8Array>): Promise<string> {
    const md5 = this.#world.digest.md5();
    for await (const piece of pieces) md5.update(piece);
    return toBase64(md5.digest());
  }

  async #try(service: InitService, account: string, request: OwnRequest): Promise<OwnAnswer> {
    const { clock, digest } = this.#world;
    const { method, body, stream } = request;
    const target = `/${account}${request.path}`;
    const length = String(stream?.bytes ?? body?.length ?? 0);
    const unsigned = { host: "127.0.0.1", "content-length": length, ...request.headers };
    const key = await this.#keyOf(account);
    const headers = signRequest({ service, method, target, headers: unsigned }, account, key, clock.wallMs(), (secret, text) =>
      digest.hmacSha256(secret, text),
    );
    const pieces = stream?.read() ?? chunks(body);
    const asked = { method, target, headers, body: pieces, remoteAddress: "127.0.0.1", secure: true, signal: this.#signal };
    return collected(await this.#handlers[service](asked));
  }

  async #keyOf(account: string): Promise<Uint8Array> {
    const { clock } = this.#world;
    const found = await this.#accounts.find(account, { deadlineMs: clock.monotonicMs() + tryForMs });
    if (found?.ok !== true) throw new InitError(`account ${account} can't be read: ${found?.failure.message ?? "no answer in time"}`);
    const [key] = found.value.kind === "known" ? [...found.value.keys, ...found.value.wellKnownKeys] : [];
    if (key !== undefined) return key;
    throw new InitError(
      found.value.kind === "known"
        ? `account ${account} has only the key that everybody knows, and is not served here (allowDevelopmentAccount, docs/guides/access.md)`
        : `account ${account} is not there`,
    );
  }
}

function refused(service: InitService, account: string, { method, path }: OwnRequest, { status, headers, body }: OwnAnswer): InitError {
  const said = new TextDecoder().decode(body);
  const message = /<Message>([^<\n]*)|"value":\s*"([^"\\]*)/.exec(said);
  const why = [headers["x-ms-error-code"] ?? "", message?.[1] ?? message?.[2] ?? ""].filter((each) => each !== "").join(": ");
  return new InitError(`${service} of ${account}: ${method} ${path}: ${status} ${why}`.trim());
}

async function* chunks(body: Uint8Array | undefined): AsyncGenerator<Uint8Array> {
  for (let at = 0; body !== undefined && at < body.length; at += chunkBytes) yield body.subarray(at, at + chunkBytes);
}

async function collected({ status, headers: given, body }: HttpResponse): Promise<OwnAnswer> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) headers[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ");
  if (body === undefined || body instanceof Uint8Array) return { status, headers, body: body ?? new Uint8Array(0) };
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part.slice());
  return { status, headers, body: concatBytes(parts) };
}
