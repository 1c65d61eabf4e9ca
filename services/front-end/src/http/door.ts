/**
 * A service over HTTP: every request is parsed, authorized, recognized, served and answered here, and whatever goes wrong is an answer
 * of the service. Requests in progress are bounded.
 */
import {
  accountOfHost,
  corsHeaders,
  formatRfc1123,
  hasSas,
  newestVersion,
  type OtherService,
  otherSuffixes,
  type Parsed,
  parsed,
  parseTarget,
  parseTimeout,
  preflightHeaders,
  type RestError,
  refuseOtherService,
  rejected,
  restError,
  type Target,
  withoutEmptyValues,
} from "@stamp/azure-rest";
import { clientAddress, FailureError, loggedTarget, utf8 } from "@stamp/base";
import {
  type Cause,
  ClientTraces,
  type HttpHandler,
  type HttpRefusal,
  type HttpRequest,
  type HttpResponse,
  uuid,
  type World,
} from "@stamp/ports";
import type { Accounts } from "../accounts/accounts.ts";
import { policyOf } from "../accounts/blob-policy.ts";
import type { FrontEndConfig } from "../config.ts";
import type { DoorGate } from "../door-gate.ts";
import type { FaultRules } from "../faults/fault-rules.ts";
import { changesSomething, refuseAt, refuseOperation, unacknowledged } from "../geo/account-here.ts";
import { busyError, restErrorOf } from "../objects/failures.ts";
import type { Objects } from "../objects/objects.ts";
import { takesWellKnownKey, type WellKnownKeyRules } from "../peers/well-known-key.ts";
import type { CallLimits } from "../routing/router.ts";
import { CountedBody, noBody, piecesOf } from "./answer-bodies.ts";
import { authenticate, authorize, findAccount, type Judges } from "./authorize.ts";
import type { BearerTokens } from "./bearer.ts";
import { countAnswer, type DoorCounters, noCounts, unrecognized } from "./classes.ts";
import { type Access, type Answer, type Exchange, type InnerRequest, respond } from "./exchange.ts";
import { innerRequest, type OuterRequest } from "./inner-request.ts";
import { lacksLength, noRequest, refusalOf } from "./refusals.ts";
import { type RequestTrace, runLeave, type SeenRequest } from "./request-trace.ts";
import type { RecognizedOperation, RestService } from "./service.ts";
import { RequestVersions } from "./versions.ts";

const clientRequestIdCharactersMax = 1024;
/** Smaller answers are not counted: the bound on requests in progress is enough for them. */
const countedAnswerBytesMin = 64 * 1024;

export interface DoorParts {
  readonly world: World;
  readonly config: FrontEndConfig;
  readonly service: RestService;
  readonly objects: Objects;
  readonly accounts: Accounts;
  readonly tokens: BearerTokens | undefined;
  /** Gate that all doors of this process share. */
  readonly gate: DoorGate;
  /** Faults on purpose; undefined: there are none. */
  readonly faults: FaultRules | undefined;
  readonly wellKnownKey: WellKnownKeyRules;
  /** Trace that all doors of this process share. */
  readonly trace: RequestTrace;
  /** Called for each request whose date and signature by a key fit. */
  readonly signedRequest: () => void;
}

export class HttpDoor {
  readonly counters: DoorCounters = noCounts();
  readonly #parts: DoorParts;
  readonly #judges: Judges;
  readonly #versions: RequestVersions;
  readonly #clientTraces: ClientTraces;
  /** Suffixes of the hosts of services that Stamp does not have. */
  readonly #others: readonly (readonly [OtherService, readonly string[]])[];

  constructor(parts: DoorParts) {
    const { world, accounts, service, objects, tokens, signedRequest } = parts;
    this.#parts = parts;
    this.#clientTraces = new ClientTraces(world.clock);
    this.#versions = new RequestVersions({ service: service.name, strict: parts.config.strictVersions, logger: world.logger });
    this.#others = (["dfs", "file"] as const).map((other) => [other, otherSuffixes(service.hostSuffixes, other)]);
    this.#judges = {
      world,
      accounts,
      service,
      tokens,
      signedRequest,
      policies: (account, resource, limits) => service.storedPolicies(objects, account, resource, limits),
    };
  }

  get handler(): HttpHandler {
    return Object.assign((request: HttpRequest) => this.#handle(request), { refused: (why: HttpRefusal) => this.#refused(why) });
  }

  handle(request: HttpRequest): Promise<HttpResponse> {
    return this.#handle(request);
  }

  /** Answers bytes that never became a request: there is no account, no version and no caller. */
  #refused(why: HttpRefusal): ReturnType<NonNullable<HttpHandler["refused"]>> {
    this.counters.requests++;
    const seen = this.#seen();
    const { body, ...rest } = this.#finish({ ...noRequest, body: noBody }, seen, { ok: false, error: refusalOf(why) });
    return body instanceof Uint8Array ? { ...rest, body } : rest;
  }

  /**
   * Serves a request with the rights of the owner, but only the operations in `only`: for content that is public by
   * another way than its container.
   */
  handleAsOwner(request: HttpRequest, only: ReadonlySet<string>): Promise<HttpResponse> {
    return this.#handle(request, { version: newestVersion, only, wellKnown: false, asker: { by: "key" } });
  }

  async #handle(request: HttpRequest, how?: OuterRequest): Promise<HttpResponse> {
    const { world, service } = this.#parts;
    const { tracer } = world;
    const span = tracer?.begin(`${service.name} request`, this.#clientTraces.parentOf(request), { "http.request.method": request.method });
    const seen: SeenRequest = { ...this.#seen(span?.traceparent), span };
    this.counters.requests++;
    if (this.counters.inProgress >= this.#parts.config.requestsMax) {
      this.counters.refusedBusy++;
      return this.#finish(request, seen, { ok: false, error: busyError("Too many requests are in progress in this front-end.") });
    }
    this.counters.inProgress++;
    seen.leave.push(() => this.counters.inProgress--);
    try {
      return this.#finish(request, seen, await this.#serve(request, seen, how, true));
    } catch (error) {
      return this.#finish(request, seen, { ok: false, error: this.#unexpected(request, seen, error) });
    }
  }

  /** Serves a request; `gated`: it came by itself, and not inside of another one. */
  async #serve(request: HttpRequest, seen: SeenRequest, outer?: OuterRequest, gated = false): Promise<Answer> {
    const elsewhere = outer ? undefined : this.#ofOtherService(request);
    if (elsewhere) return { ok: false, error: elsewhere };
    if (request.method === "OPTIONS" && !outer) return this.#preflight(request, seen);
    if (!outer && lacksLength(request)) return rejected("MissingContentLengthHeader");
    const admitted = await this.#admit(request, seen, outer);
    if (!admitted.ok) return admitted;
    const { operation, exchange } = admitted.value;
    if (gated) {
      const refused = await this.#enter(exchange.target.account, clientAddress(request.remoteAddress), seen);
      if (refused) return refused;
    }
    const serve = () => this.#served(operation, exchange, gated ? seen : undefined);
    const { faults, service } = this.#parts;
    if (!gated || faults?.any !== true) return serve();
    const { headers, signal } = request;
    const { account, secondary = false } = exchange.target;
    return faults.around({ account, service: service.name, operation: operation.name, headers, secondary, signal }, serve);
  }

  /** Serves an operation; `gated`: facts of a request that came by itself. */
  async #served(operation: RecognizedOperation, exchange: Exchange, gated: SeenRequest | undefined): Promise<Answer> {
    const { request, target, access } = exchange;
    const served = await operation.serve(exchange);
    if (served.ok && changesSomething(operation.name)) {
      const error = await unacknowledged(this.#parts.accounts, target.account, exchange.limits());
      if (error) return { ok: false, error };
    }
    const answer = served.ok ? overridden(served.value, request.method, access) : served;
    return gated && answer.ok ? this.#counted(request, target.account, answer.value, gated) : answer;
  }

  /** Refuses what is sent to a host of a service that Stamp does not have, before its signature, which that service may make otherwise. */
  #ofOtherService({ method, target, headers }: HttpRequest): RestError | undefined {
    if (accountOfHost(headers.host ?? "", this.#parts.service.hostSuffixes) !== undefined) return undefined;
    for (const [other, hostSuffixes] of this.#others) {
      if (accountOfHost(headers.host ?? "", hostSuffixes) === undefined) continue;
      const parsedTarget = parseTarget(target, headers.host ?? "", { hostSuffixes });
      return parsedTarget.ok ? refuseOtherService(method, parsedTarget.value, headers, other) : parsedTarget.error;
    }
    return undefined;
  }

  /** Counts an answer that was made whole (a list, a query) in the budget of downloads until it was sent. */
  async #counted(request: HttpRequest, account: string, response: HttpResponse, seen: SeenRequest): Promise<Answer> {
    const { body, headers } = response;
    if (!(body instanceof Uint8Array) || body.length < countedAnswerBytesMin) return parsed(response);
    const share = this.#parts.objects.parts.downloads.of({ account, address: request.remoteAddress }, request.signal);
    const taken = await share.take(body.length);
    if (!taken.ok) return { ok: false, error: restErrorOf(taken.failure) };
    seen.leave.push(() => share.give(body.length));
    return parsed({ ...response, headers: { ...headers, "Content-Length": String(body.length) }, body: piecesOf(body) });
  }

  /** Waits for a turn among all accounts before the body is read, or refuses. */
  async #enter(account: string, address: string, seen: SeenRequest): Promise<Extract<Answer, { ok: false }> | undefined> {
    const { gate } = this.#parts;
    const entering = gate.enter(account, address);
    const refusal = entering instanceof Promise ? await entering : entering;
    if (!refusal) {
      seen.leave.push(() => gate.leave(account, address));
      return undefined;
    }
    this.counters.refusedBusy++;
    return {
      ok: false,
      error: busyError("This front-end has more to do than it can, and much of it is of this account.", refusal.retryAfterMs),
    };
  }

  async #inner(outer: HttpRequest, above: Cause, inner: InnerRequest, how: OuterRequest): Promise<HttpResponse> {
    const request = innerRequest(outer, inner);
    const seen = this.#seen(above.traceparent);
    const failed = (error: unknown): Answer => ({ ok: false, error: this.#unexpected(request, seen, error) });
    const answer = await this.#serve(request, seen, how).catch(failed);
    // The account has sent one request: the outer one.
    return this.#finish(request, { ...seen, counts: undefined }, answer);
  }

  /** `traceparent`: span above all that is done for the request. */
  #seen(traceparent?: string): SeenRequest {
    const { clock, random } = this.#parts.world;
    const requestId = uuid(random);
    const cause = { "request-id": requestId, ...(traceparent && { traceparent }) };
    const own = { requestId, cause, startMs: clock.monotonicMs(), version: newestVersion };
    return { ...own, account: "", counts: undefined, operation: undefined, cors: [], leave: [], span: undefined };
  }

  /** Finds the account of the request, with its properties. */
  async #accountOf(target: Target, limits: CallLimits, seen: SeenRequest) {
    seen.account = target.account;
    const account = await findAccount(this.#parts.accounts, target, limits);
    if (!account.ok) return account;
    seen.counts = this.#parts.trace.countsOf(target.account);
    const elsewhere = refuseAt(target, account.value.role, account.value.keys.length > 0);
    const isStandIn = target.secondary && this.#parts.faults?.servesSecondary(target.account, this.#parts.service.name);
    if (elsewhere && isStandIn !== true) return { ok: false as const, error: elsewhere };
    return parsed({ account: account.value, properties: account.value.serviceProperties[this.#parts.service.name] });
  }

  async #admit(
    request: HttpRequest,
    seen: SeenRequest,
    outer?: OuterRequest,
  ): Promise<Parsed<{ readonly operation: RecognizedOperation; readonly exchange: Exchange }>> {
    const { headers, method } = request;
    const { accounts, service, objects, tokens } = this.#parts;
    const asked = parseTarget(request.target, headers.host ?? "", service);
    if (!asked.ok) return asked;
    const other = service.refuse?.(method, asked.value, headers);
    if (other) return { ok: false, error: other };
    const timeout = parseTimeout(asked.value.query);
    if (!timeout.ok) return timeout;
    const limits = this.#limits(request, timeout.value, seen);
    const found = await this.#accountOf(asked.value, limits(), seen);
    if (!found.ok) return found;
    const signed = outer?.asker !== undefined || headers.authorization !== undefined || hasSas(asked.value.query);
    const target = (await service.named?.(objects, asked.value, signed, limits())) ?? asked;
    if (!target.ok) return target;
    const { account, properties } = found.value;
    const policy = policyOf(service.name, account.serviceProperties);
    seen.cors = outer ? [] : properties.cors;
    const version = outer ? parsed(outer.version) : this.#versions.of(headers, target.value.query, properties.defaultServiceVersion);
    if (!version.ok) return version;
    seen.version = version.value;
    const { remoteAddress, secure } = request;
    const wellKnown = outer?.wellKnown ?? takesWellKnownKey(this.#parts.wellKnownKey, request);
    const asking = { method, headers, target: target.value, asked: asked.value, version: version.value, remoteAddress, secure, wellKnown };
    const asker = outer?.asker ? parsed(outer.asker) : await authenticate(this.#judges, account, asking, limits());
    if (!asker.ok) return asker;
    const said = withoutEmptyValues(target.value, headers);
    if (!said.ok) return said;
    const operation = service.recognize(method, said.value.target, said.value.headers);
    if (!operation.ok) return operation;
    seen.operation = operation.value.name;
    if (outer && !outer.only.has(operation.value.name)) {
      return rejected("InvalidInput", { Reason: `${operation.value.name} does not go inside of another request.` });
    }
    const asks = { asker: asker.value, service: service.name, account, tokens };
    const access = authorize(asks, operation.value.name, operation.value.authorization);
    if (!access.ok) return access;
    const notHere = refuseOperation(asked.value, account.role, operation.value.name, accounts.copyServes(asked.value.account));
    if (notHere) return { ok: false, error: notHere };
    const exchange: Exchange = {
      cause: seen.cause,
      objects,
      request,
      ...said.value,
      version: version.value,
      access: access.value,
      anonymous: access.value.by === "anonymous",
      account,
      accounts,
      serviceProperties: properties,
      hostSuffixes: service.hostSuffixes,
      admit: async (inner, only) => {
        const admitted = await this.#admit(innerRequest(request, inner), this.#seen(seen.cause.traceparent), {
          version: version.value,
          only,
          wellKnown,
        });
        return admitted.ok ? parsed(admitted.value.exchange) : admitted;
      },
      inner: (inner, only) => this.#inner(request, seen.cause, inner, { version: version.value, only, wellKnown }),
      limits: () => ({ ...limits(), ...policy }),
    };
    return parsed({ operation: operation.value, exchange });
  }

  #limits({ signal }: HttpRequest, timeoutMs: number | undefined, { cause }: SeenRequest): () => CallLimits {
    const { world, config } = this.#parts;
    return () => ({ deadlineMs: world.clock.monotonicMs() + (timeoutMs ?? config.requestTimeoutMs), signal, cause });
  }

  /** Answers a CORS preflight, which needs no authorization. */
  async #preflight(request: HttpRequest, seen: SeenRequest): Promise<Answer> {
    const { headers } = request;
    const target = parseTarget(request.target, headers.host ?? "", this.#parts.service);
    if (!target.ok) return target;
    const timeout = parseTimeout(target.value.query);
    if (!timeout.ok) return timeout;
    const found = await this.#accountOf(target.value, this.#limits(request, timeout.value, seen)(), seen);
    if (!found.ok) return found;
    seen.operation = "Preflight";
    seen.cors = found.value.properties.cors;
    const allowed = preflightHeaders(seen.cors, headers);
    seen.cors = [];
    return allowed.ok ? respond(200, allowed.value) : allowed;
  }

  #unexpected(request: HttpRequest, seen: SeenRequest, error: unknown): RestError {
    // Bodies throw when the client went away or did not send what it announced: nothing was made of it.
    if (error instanceof FailureError) {
      if (error.failure.details?.slow === "client") {
        return restError("OperationTimedOut", { Reason: error.failure.message }, { status: 408 });
      }
      if (error.failure.reason !== "connectionLost" && error.failure.code !== "cancelled") return restErrorOf(error.failure);
      return restError("InvalidInput", { Reason: "The body ended early." });
    }
    if (request.signal.aborted) return restError("InvalidInput", { Reason: "The client went away." });
    this.#parts.world.logger.error("a request failed by a bug", { requestId: seen.requestId, operation: seen.operation, error });
    return restError("InternalError");
  }

  #finish(request: HttpRequest, seen: SeenRequest, answer: Answer): HttpResponse {
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
    const endMs = clock.monotonicMs();
    countAnswer(this.counters, clock, seen.operation, status).since(seen.startMs, endMs);
    const name = seen.operation ?? unrecognized;
    const errorCode = answer.ok ? "" : answer.error.code;
    this.#parts.trace.end(request, {
      ...seen,
      service: this.#parts.service.name,
      status,
      errorCode,
      endedMs: nowMs,
      tookMs: endMs - seen.startMs,
    });
    const facts = { "http.response.status_code": status, "stamp.operation": name, "stamp.account": seen.account };
    seen.span?.end({ ...facts, "stamp.request_id": seen.requestId }, status >= 500 ? errorCode : undefined);
    this.#parts.world.logger.debug("request", {
      requestId: seen.requestId,
      operation: name,
      method: request.method,
      target: loggedTarget(request.target),
      status,
      code: errorCode === "" ? undefined : errorCode,
      tookMs: endMs - seen.startMs,
    });
    const own = { ...common, ...response.headers };
    const cors = seen.cors.length === 0 ? undefined : corsHeaders(seen.cors, request.method, request.headers.origin, Object.keys(own));
    const headers = cors === undefined ? own : { ...own, ...cors, ...response.headers };
    const { body, sent, reason, endsConnection } = response;
    const head = {
      status,
      headers,
      ...(reason === undefined ? {} : { reason }),
      ...(endsConnection === undefined ? {} : { endsConnection }),
    };
    if (body === undefined || body instanceof Uint8Array) {
      runLeave(seen);
      return body === undefined ? head : { ...head, body, sent };
    }
    return { ...head, body: new CountedBody(body, () => runLeave(seen)), sent };
  }

  #errorResponse(request: HttpRequest, seen: SeenRequest, error: RestError, nowMs: number): HttpResponse {
    const headers = { ...error.headers, "x-ms-error-code": error.code };
    const reason = this.#parts.service.reasonPhrase?.(error);
    const head = { status: error.status, ...(reason === undefined ? {} : { reason }) };
    if (request.method === "HEAD" || error.status === 304) return { ...head, headers };
    const { contentType, text } = this.#parts.service.errorBody(error, { requestId: seen.requestId, nowMs, headers: request.headers });
    return { ...head, headers: { ...headers, "Content-Type": contentType }, body: utf8(text) };
  }
}

/** Replaces stored headers of a read by those that a SAS overrides. */
function overridden(response: HttpResponse, method: string, { overrides }: Access): Answer {
  const reads = (method === "GET" || method === "HEAD") && response.status < 300;
  return parsed(overrides && reads ? { ...response, headers: { ...response.headers, ...overrides } } : response);
}
