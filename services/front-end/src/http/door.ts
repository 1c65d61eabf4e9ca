/**
 * A service over HTTP: every request is parsed, authorized, recognized, served and answered here, and whatever goes wrong is an answer
 * of the service. Requests in progress are bounded.
 */
import {
  type CorsRule,
  corsHeaders,
  formatRfc1123,
  type HttpHeaders,
  isVersion,
  newestVersion,
  type Parsed,
  parsed,
  parseTarget,
  parseTimeout,
  parseVersion,
  preflightHeaders,
  type Query,
  queryValue,
  type RestError,
  restError,
} from "@stamp/azure-rest";
import { FailureError, utf8 } from "@stamp/base";
import { type HttpRequest, type HttpResponse, uuid, type World } from "@stamp/ports";
import type { Accounts } from "../accounts.ts";
import type { FrontEndConfig } from "../config.ts";
import { restErrorOf } from "../failures.ts";
import type { Objects } from "../objects.ts";
import type { CallLimits } from "../router.ts";
import { authenticate, authorize, findAccount, type Judges } from "./authorize.ts";
import type { BearerTokens } from "./bearer.ts";
import { type Access, type Answer, type Exchange, respond } from "./exchange.ts";
import type { RestService } from "./service.ts";

const clientRequestIdCharactersMax = 1024;

export interface DoorCounters {
  requests: number;
  inProgress: number;
  refusedBusy: number;
  clientErrors: number;
  serverErrors: number;
  byOperation: Record<string, number>;
}

export interface DoorParts {
  readonly world: World;
  readonly config: FrontEndConfig;
  readonly service: RestService;
  readonly objects: Objects;
  readonly accounts: Accounts;
  readonly tokens: BearerTokens | undefined;
}

export class HttpDoor {
  readonly counters: DoorCounters = { requests: 0, inProgress: 0, refusedBusy: 0, clientErrors: 0, serverErrors: 0, byOperation: {} };
  readonly #parts: DoorParts;
  readonly #judges: Judges;

  constructor(parts: DoorParts) {
    const { world, accounts, service, objects, tokens } = parts;
    this.#parts = parts;
    this.#judges = {
      world,
      accounts,
      service,
      tokens,
      policies: (account, resource, limits) => service.storedPolicies(objects, account, resource, limits),
    };
  }

  async handle(request: HttpRequest): Promise<HttpResponse> {
    const { clock, random } = this.#parts.world;
    const seen: Seen = { requestId: uuid(random), startMs: clock.monotonicMs(), version: newestVersion, operation: undefined, cors: [] };
    this.counters.requests++;
    if (this.counters.inProgress >= this.#parts.config.requestsMax) {
      this.counters.refusedBusy++;
      return this.#finish(request, seen, { ok: false, error: restError("ServerBusy") }, false);
    }
    this.counters.inProgress++;
    try {
      return this.#finish(request, seen, await this.#serve(request, seen), true);
    } catch (error) {
      return this.#finish(request, seen, { ok: false, error: this.#unexpected(request, seen, error) }, true);
    }
  }

  async #serve(request: HttpRequest, seen: Seen): Promise<Answer> {
    const { headers, method } = request;
    const { accounts, service, config, objects, tokens } = this.#parts;
    const target = parseTarget(request.target, headers.host ?? "", service);
    if (!target.ok) return target;
    const timeout = parseTimeout(target.value.query);
    if (!timeout.ok) return timeout;
    const limits = (): CallLimits => ({
      deadlineMs: this.#parts.world.clock.monotonicMs() + (timeout.value ?? config.requestTimeoutMs),
      signal: request.signal,
    });
    const account = await findAccount(accounts, target.value.account, limits());
    if (!account.ok) return account;
    const properties = account.value.serviceProperties[service.name];
    seen.cors = properties.cors;
    if (method === "OPTIONS") return this.#preflight(headers, seen);
    const version = versionOf(headers, target.value.query, properties.defaultServiceVersion);
    if (!version.ok) return version;
    seen.version = version.value;
    const { remoteAddress, secure } = request;
    const asking = { method, headers, target: target.value, version: version.value, remoteAddress, secure };
    const asker = await authenticate(this.#judges, account.value, asking, limits());
    if (!asker.ok) return asker;
    const operation = service.recognize(method, target.value, headers);
    if (!operation.ok) return operation;
    seen.operation = operation.value.name;
    const access = authorize(asker.value, operation.value.name, operation.value.authorization, tokens);
    if (!access.ok) return access;
    const exchange: Exchange = {
      objects,
      request,
      headers,
      target: target.value,
      version: version.value,
      access: access.value,
      anonymous: access.value.by === "anonymous",
      account: account.value,
      accounts,
      serviceProperties: properties,
      limits,
    };
    const answer = await operation.value.serve(exchange);
    return answer.ok ? overridden(answer.value, method, access.value) : answer;
  }

  #preflight(headers: HttpHeaders, seen: Seen): Answer {
    seen.operation = "Preflight";
    const allowed = preflightHeaders(seen.cors, headers);
    seen.cors = [];
    return allowed.ok ? respond(200, allowed.value) : allowed;
  }

  #unexpected(request: HttpRequest, seen: Seen, error: unknown): RestError {
    // Bodies throw when the client went away or did not send what it announced: nothing was made of it.
    if (error instanceof FailureError) {
      if (error.failure.reason !== "connectionLost" && error.failure.code !== "cancelled") return restErrorOf(error.failure);
      return restError("InvalidInput", { Reason: "The body ended early." });
    }
    if (request.signal.aborted) return restError("InvalidInput", { Reason: "The client went away." });
    this.#parts.world.logger.error("a request failed by a bug", { requestId: seen.requestId, operation: seen.operation, error });
    return restError("InternalError");
  }

  #finish(request: HttpRequest, seen: Seen, answer: Answer, counted: boolean): HttpResponse {
    const { clock } = this.#parts.world;
    const nowMs = clock.wallMs();
    const common: Record<string, string> = {
      Server: this.#parts.service.serverName,
      "x-ms-request-id": seen.requestId,
      "x-ms-version": seen.version,
      Date: formatRfc1123(nowMs),
    };
    const clientId = request.headers["x-ms-client-request-id"];
    if (clientId !== undefined && clientId.length <= clientRequestIdCharactersMax) common["x-ms-client-request-id"] = clientId;
    const response = answer.ok ? answer.value : this.#errorResponse(request, seen, answer.error, nowMs);
    const { status } = response;
    if (status >= 500) this.counters.serverErrors++;
    else if (status >= 400) this.counters.clientErrors++;
    const name = seen.operation ?? "unrecognized";
    this.counters.byOperation[name] = (this.counters.byOperation[name] ?? 0) + 1;
    this.#parts.world.logger.debug("request", {
      requestId: seen.requestId,
      operation: name,
      method: request.method,
      target: request.target,
      status,
      code: answer.ok ? undefined : answer.error.code,
      tookMs: clock.monotonicMs() - seen.startMs,
    });
    const headers = { ...common, ...corsHeaders(seen.cors, request.method, request.headers.origin), ...response.headers };
    const { body } = response;
    if (body === undefined || body instanceof Uint8Array) {
      if (counted) this.counters.inProgress--;
      return body === undefined ? { status, headers } : { status, headers, body };
    }
    return { status, headers, body: new CountedBody(body, () => this.counters.inProgress--) };
  }

  #errorResponse(request: HttpRequest, seen: Seen, error: RestError, nowMs: number): HttpResponse {
    const headers = { ...error.headers, "x-ms-error-code": error.code };
    if (request.method === "HEAD" || error.status === 304) return { status: error.status, headers };
    const { contentType, text } = this.#parts.service.errorBody(error, { requestId: seen.requestId, nowMs, headers: request.headers });
    return { status: error.status, headers: { ...headers, "Content-Type": contentType }, body: utf8(text) };
  }
}

/** What is known of a request while it goes through. */
interface Seen {
  readonly requestId: string;
  readonly startMs: number;
  version: string;
  operation: string | undefined;
  /** The rules of the account, as soon as it is known. */
  cors: readonly CorsRule[];
}

/** The header, or else `api-version` or `sv` of a SAS, or else what the account says. */
function versionOf(headers: HttpHeaders, query: Query, fallback: string | undefined): Parsed<string> {
  const ofQuery = [queryValue(query, "api-version"), queryValue(query, "sv")].find((one) => one !== undefined && isVersion(one));
  return parseVersion(headers["x-ms-version"], ofQuery ?? fallback);
}

/** What a SAS says of the headers of a read replaces what is stored. */
function overridden(response: HttpResponse, method: string, { overrides }: Access): Answer {
  const reads = (method === "GET" || method === "HEAD") && response.status < 300;
  return parsed(overrides && reads ? { ...response, headers: { ...response.headers, ...overrides } } : response);
}

/** A body whose request is in progress until it was sent or dropped. */
class CountedBody implements AsyncIterableIterator<Uint8Array> {
  readonly #inner: AsyncIterator<Uint8Array>;
  #ended: (() => void) | undefined;

  constructor(body: AsyncIterable<Uint8Array>, ended: () => void) {
    this.#inner = body[Symbol.asyncIterator]();
    this.#ended = ended;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    try {
      const step = await this.#inner.next();
      if (!step.done) return step;
    } catch (error) {
      await this.return();
      throw error;
    }
    return this.return();
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#ended?.();
    this.#ended = undefined;
    await this.#inner.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
