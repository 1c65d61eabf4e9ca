/**
 * Faults on purpose, for applications under test (docs/guides/faults.md): between the door, which has let a request in, and the operation that
 * serves it. Without rules a request asks one number here; with the setting off there is no object to ask.
 *
 * Invariants:
 * - A request that was refused for another reason, by its signature for example, meets no rule.
 * - Rules are asked in the order in which they were added. Every delay that fits is waited for; of the others the first that fits decides.
 * - `count` and `share` count requests on which the rule acts: a rule of an error after the commit does not count what failed by itself, a
 *   cut none whose answer is not longer.
 * - All delays of a request together are below the time after which a connection without a byte is closed.
 * - The number of rules is bounded.
 */
import { parseRfc1123, type RestError, restError, type ServiceName, serviceStatisticsXml, timestampOfEtag } from "@stamp/azure-rest";
import { type Outcome, ok, refused, utf8 } from "@stamp/base";
import { type Clock, type HttpResponse, sleep } from "@stamp/ports";
import { type Answer, respond } from "../http/exchange.ts";
import { busyError } from "../objects/failures.ts";
import { cutAfter, dropBody, isCutBy } from "./cut-answer.ts";
import { delayMaxMs, type FaultName, type FaultRule, parseFaultRule } from "./fault-rule.ts";

export const faultRulesMax = 100;

/** A request that was let in. */
export interface FaultedRequest {
  readonly account: string;
  readonly service: ServiceName;
  /** Name in the REST reference, in one word. */
  readonly operation: string;
  readonly headers: Readonly<Record<string, string>>;
  /** True if the request names the account's secondary location. */
  readonly secondary: boolean;
  readonly signal: AbortSignal;
}

export interface FaultRuleState {
  readonly rule: FaultRule & { readonly id: string };
  /** Requests on which the rule has acted. */
  readonly hits: number;
  /** True if the rule acts no more: its count or time is used up. */
  readonly over: boolean;
}

interface Held {
  readonly rule: FaultRuleState["rule"];
  readonly headerName: string;
  /** Value that the header must have; undefined: any. */
  readonly headerValue: string | undefined;
  readonly addedMs: number;
  /** Aborted when the rule is removed: a request that it delays is served on. */
  readonly removed: AbortController;
  hits: number;
  /** Sum of the shares since the last hit, from 0 to 1. */
  shared: number;
  /** Tokens of a throttle: requests that may pass now, at most a second's. */
  tokens: number;
  filledMs: number;
}

export class FaultRules {
  readonly #clock: Clock;
  #held: Held[] = [];
  #made = 0;
  #hits = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of rules that act, and of requests on which rules acted. */
  get figures(): { readonly rules: number; readonly hits: number } {
    const nowMs = this.#clock.monotonicMs();
    return { rules: this.#held.filter((held) => !isOver(held, nowMs)).length, hits: this.#hits };
  }

  get any(): boolean {
    return this.#held.length > 0;
  }

  /** Adds a rule behind the others. Returns its id. */
  add(value: unknown): Outcome<string> {
    const parsed = parseFaultRule(value);
    if ("problem" in parsed) return refused("invalidArgument", "badRequest", `the fault rule is not right: ${parsed.problem}`);
    if (this.#held.length >= faultRulesMax)
      return refused("resourceExhausted", "overloaded", `there are ${faultRulesMax} fault rules, which is the most: remove one first`);
    const id = parsed.rule.id ?? this.#freeName();
    if (this.#held.some(({ rule }) => rule.id === id)) return refused("alreadyExists", "conflict", `there is a fault rule ${id}`);
    const colon = parsed.rule.header?.indexOf(":") ?? -1;
    const header = parsed.rule.header ?? "";
    const nowMs = this.#clock.monotonicMs();
    this.#held.push({
      rule: { ...parsed.rule, id },
      headerName: (colon < 0 ? header : header.slice(0, colon)).toLowerCase(),
      headerValue: colon < 0 ? undefined : header.slice(colon + 1).trim(),
      addedMs: nowMs,
      removed: new AbortController(),
      hits: 0,
      shared: 0,
      tokens: parsed.rule.perSecond ?? 0,
      filledMs: nowMs,
    });
    return ok(id);
  }

  list(): FaultRuleState[] {
    const nowMs = this.#clock.monotonicMs();
    return this.#held.map((held) => ({ rule: held.rule, hits: held.hits, over: isOver(held, nowMs) }));
  }

  /**
   * Removes the rule, or without a name all of them: when the process stops, too. Requests that wait because of it go on. Returns how many were
   * removed.
   */
  remove(id?: string): number {
    const [stay, go] = [[] as Held[], [] as Held[]];
    for (const held of this.#held) (id === undefined || held.rule.id === id ? go : stay).push(held);
    this.#held = stay;
    for (const { removed } of go) removed.abort();
    return go.length;
  }

  /** True if a rule of a stale secondary gives this account one. */
  servesSecondary(account: string, service: FaultedRequest["service"]): boolean {
    const nowMs = this.#clock.monotonicMs();
    return this.#held.some(
      (held) =>
        held.rule.fault === "stale-secondary" &&
        isOpen(held, nowMs) &&
        fitsIn(held.rule.account, account) &&
        fitsIn(held.rule.service, service),
    );
  }

  /** Serves the request under the rules. */
  async around(request: FaultedRequest, serve: () => Promise<Answer>): Promise<Answer> {
    const instead = await this.#before(request);
    return instead ?? this.#after(request, await serve());
  }

  async #before(request: FaultedRequest): Promise<Answer | undefined> {
    let leftMs = delayMaxMs;
    for (const held of [...this.#held]) {
      const { rule } = held;
      if (held.removed.signal.aborted || !this.#fits(held, request)) continue;
      if (rule.fault === "delay" && this.#takes(held)) {
        const delayMs = Math.min(rule.delayMs ?? 0, leftMs);
        leftMs -= delayMs;
        await this.#delay(held, delayMs, request.signal);
        if (request.signal.aborted) return gone;
      } else if (rule.fault === "busy" && this.#takes(held)) return failed(busyBy(rule, "The server is busy."));
      else if (rule.fault === "throttle" && !this.#passes(held) && this.#takes(held))
        return failed(busyBy(rule, "Operations per second is over the account limit."));
      else if (rule.fault === "error-before" && this.#takes(held)) return failed(internal(rule, "Nothing was done."));
      else if (rule.fault === "stale-secondary" && request.operation.endsWith("ServiceStats") && this.#takes(held))
        return respond(200, { "Content-Type": "application/xml" }, utf8(serviceStatisticsXml("live", this.#copiedUntilMs(rule))));
    }
    return undefined;
  }

  /** Waits, at most until the client goes away or the rule is removed. */
  async #delay({ removed }: Held, delayMs: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const end = (): void => over.abort();
    const ends = [signal, removed.signal];
    for (const each of ends) each.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await sleep(this.#clock, delayMs, over.signal);
    for (const each of ends) each.removeEventListener("abort", end);
  }

  async #after(request: FaultedRequest, answer: Answer): Promise<Answer> {
    if (!answer.ok) return answer;
    for (const held of this.#held) {
      const { rule } = held;
      if (!after.has(rule.fault) || !this.#fits(held, request)) continue;
      if (rule.fault === "cut") {
        if (!isCutBy(answer.value, rule.afterBytes ?? 0) || !this.#takes(held)) continue;
        return { ok: true, value: cutAfter(answer.value, rule.afterBytes ?? 0, request.signal) };
      }
      const isStale = rule.fault === "stale-secondary" && (writtenMs(answer.value) ?? 0) > this.#copiedUntilMs(rule);
      if ((rule.fault !== "error-after" && !isStale) || !this.#takes(held)) continue;
      await dropBody(answer.value);
      return failed(isStale ? restError(missing(request)) : internal(rule, "The operation was done."));
    }
    return answer;
  }

  /** Returns the wall time up to which a stale secondary has everything, in milliseconds since 1970. */
  #copiedUntilMs({ behindMs = 0 }: FaultRule): number {
    return this.#clock.wallMs() - behindMs;
  }

  #fits(held: Held, { account, service, operation, headers, secondary }: FaultedRequest): boolean {
    const { rule, headerName, headerValue } = held;
    if (!isOpen(held, this.#clock.monotonicMs())) return false;
    if (rule.fault === "stale-secondary" && !secondary) return false;
    if (!fitsIn(rule.account, account) || !fitsIn(rule.service, service) || !fitsIn(rule.operation, operation)) return false;
    if (headerName === "") return true;
    const given = headers[headerName];
    return given !== undefined && (headerValue === undefined || given === headerValue);
  }

  /** Counts a request that fits. Returns true if the rule acts on it. */
  #takes(held: Held): boolean {
    held.shared += held.rule.share ?? 1;
    // A tenth added ten times is a little less than 1.
    if (held.shared < 1 - 1e-9) return false;
    held.shared = Math.max(0, held.shared - 1);
    held.hits++;
    this.#hits++;
    return true;
  }

  /** True if a throttle lets the request through. */
  #passes(held: Held): boolean {
    const nowMs = this.#clock.monotonicMs();
    const perSecond = held.rule.perSecond ?? 1;
    held.tokens = Math.min(perSecond, held.tokens + ((nowMs - held.filledMs) / 1_000) * perSecond);
    held.filledMs = nowMs;
    if (held.tokens < 1) return false;
    held.tokens--;
    return true;
  }

  #freeName(): string {
    for (;;) {
      const id = `rule-${++this.#made}`;
      if (!this.#held.some(({ rule }) => rule.id === id)) return id;
    }
  }
}

/** Faults that act on the answer. */
const after: ReadonlySet<FaultName> = new Set(["error-after", "cut", "stale-secondary"]);

const failed = (error: RestError): Answer => ({ ok: false, error });
const gone: Answer = failed(restError("InvalidInput", { Reason: "The client went away." }));
const fitsIn = (wanted: string | undefined, given: string): boolean => wanted === undefined || wanted === given;

const isOver = ({ rule, hits, addedMs }: Held, nowMs: number): boolean =>
  (rule.count !== undefined && hits >= rule.count) || (rule.endsAfterMs !== undefined && nowMs - addedMs >= rule.endsAfterMs);
const isOpen = (held: Held, nowMs: number): boolean => !isOver(held, nowMs) && nowMs - held.addedMs >= (held.rule.startsAfterMs ?? 0);

/** Returns the answer of a busy front-end, with the Retry-After of the rule. */
function busyBy({ id, retryAfterSeconds = 1 }: FaultRuleState["rule"], text: string): RestError {
  return { ...busyError(`${text} (fault rule ${id})`), headers: { "Retry-After": String(retryAfterSeconds) } };
}

function internal({ id }: FaultRuleState["rule"], done: string): RestError {
  const error = restError("InternalError");
  return { ...error, message: `${error.message} ${done} (fault rule ${id})` };
}

/** Returns when the object of an answer was written last, in milliseconds since 1970; undefined if the answer does not say. */
function writtenMs({ headers }: HttpResponse): number | undefined {
  const ticks = timestampOfEtag(String(headers.ETag ?? ""));
  if (ticks !== undefined) return Number(ticks / 10_000n);
  const lastModified = headers["Last-Modified"];
  // Told in whole seconds: the write may be later by almost one.
  const atMs = typeof lastModified === "string" ? parseRfc1123(lastModified) : undefined;
  return atMs === undefined ? undefined : atMs + 999;
}

function missing({ service, operation }: FaultedRequest): "BlobNotFound" | "ContainerNotFound" | "QueueNotFound" | "ResourceNotFound" {
  if (service === "table") return "ResourceNotFound";
  if (service === "queue") return "QueueNotFound";
  return operation.includes("Container") ? "ContainerNotFound" : "BlobNotFound";
}
