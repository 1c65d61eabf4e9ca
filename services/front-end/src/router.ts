/**
 * Calls to partition servers: finds the range of a key in the cached map, asks its server, and asks again when the map was stale, the
 * server was not there or the range was on its way, until the deadline. What may have happened is repeated only where twice is the same
 * as once: reads, and bytes that nothing refers to yet.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Failed, type Failure, Histogram, type Outcome, ok, refused, unknownOutcome } from "@stamp/base";
import { type BlobPolicy, isRead, type Route, routeOf } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { type CallOptions, jittered, SlowLog, type World } from "@stamp/ports";
import { executeFields, type OperationResult, type OperationSchema, PartitionServer, type Place, toWire } from "@stamp/wire";
import type { MapCache } from "./map-cache.ts";

type OperationInit = MessageInitShape<typeof OperationSchema>;
/** One operation, as its message is made. Names are complete: `routeOf` reads them. */
export type OperationKind = Exclude<NonNullable<OperationInit["kind"]>, { case: undefined }>;
export type ResultKind = Exclude<OperationResult["kind"], { case: undefined }>;
export type ResultValues = { readonly [K in ResultKind as K["case"]]: K["value"] };

export interface CallLimits {
  /** By the monotonic clock. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** Of the account, for operations on its blobs. */
  readonly policy?: BlobPolicy;
}

/**
 * What may be done about an attempt without an answer. `never`: nothing, it is not known whether it happened. `soon`: it is made again. A
 * server that has too much to do would get bytes twice and sooner still: they are sent again when, by the map, another server has their
 * range (`elsewhere`).
 */
type Repeat = "never" | "soon" | "elsewhere";

/** Where bytes were put, and for how long they stay there though nothing refers to them. */
export interface Written {
  readonly places: readonly Place[];
  /** In milliseconds; 0: not said. */
  readonly pinTermMs: number;
}

const backoffStartMs = 10;
const backoffMaxMs = 500;
/** Attempts of a call that are told of when it took long. */
const toldMax = 12;

export class Router {
  readonly #world: World;
  readonly #map: MapCache;
  readonly #readAttemptTimeoutMs: number;
  readonly #slow: SlowLog;
  retries = 0;
  /** Calls, with all their attempts. */
  readonly took: Histogram;

  constructor(world: World, map: MapCache, options: { readonly readAttemptTimeoutMs: number }) {
    this.#world = world;
    this.#map = map;
    this.#readAttemptTimeoutMs = options.readAttemptTimeoutMs;
    this.#slow = new SlowLog(world);
    this.took = new Histogram(world.clock);
  }

  /** The operation at the server of its range. */
  async execute(kind: OperationKind, limits: CallLimits): Promise<Outcome<ResultKind>> {
    const outcome = await this.executeAt(this.routeOf(kind), kind, limits);
    return outcome.ok ? ok(outcome.value.result) : outcome;
  }

  /** At the server of a range that does not follow from the operation: the next one of a list. */
  executeAt(route: Route, kind: OperationKind, limits: CallLimits): Promise<Outcome<{ result: ResultKind; range: Range }>> {
    return this.ask(route, kind, isRead(kind as Parameters<typeof isRead>[0]), limits);
  }

  /** As it is, for what does not say by its message where it belongs. `repeatable`: twice is the same as once. */
  ask(route: Route, kind: OperationKind, repeatable: boolean, limits: CallLimits): Promise<Outcome<{ result: ResultKind; range: Range }>> {
    const fields = executeFields(messageOf(kind, limits.policy));
    return this.#atRange(kind.case, route, repeatable ? "soon" : "never", limits, async (range, options) => {
      const answer = await this.#world.transport
        .client(range.serverAddress, PartitionServer)
        .execute({ rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), ...fields }, options);
      if (!answer.ok) return answer;
      const result = answer.value.result?.kind;
      if (result?.case === undefined) return unknownOutcome("internal", "bug", "a partition server answered without a result");
      return ok({ result, range });
    });
  }

  /** Puts bytes into the blob data stream of the range. Repeated freely: bytes that nothing refers to are collected. */
  writeData(route: Route, payload: Uint8Array, limits: CallLimits): Promise<Outcome<Written>> {
    return this.#atRange("writeData", route, "elsewhere", limits, async (range, options) => {
      const answer = await this.#world.transport
        .client(range.serverAddress, PartitionServer)
        .writeData({ rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), key: route.key, payload }, options);
      return answer.ok ? ok(answer.value) : answer;
    });
  }

  /** Renews the pins on extents of an upload in progress; returns those that are gone. */
  pinData(route: Route, extentIds: readonly bigint[], limits: CallLimits): Promise<Outcome<readonly bigint[]>> {
    return this.#atRange("pinData", route, "soon", limits, async (range, options) => {
      const request = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), key: route.key, extentIds: [...extentIds] };
      const answer = await this.#world.transport.client(range.serverAddress, PartitionServer).pinData(request, options);
      return answer.ok ? ok(answer.value.goneExtentIds) : answer;
    });
  }

  routeOf(kind: OperationKind): Route {
    return routeOf(this.#world.rules, kind as Parameters<typeof routeOf>[1]);
  }

  async #atRange<T>(
    what: string,
    route: Route,
    repeat: Repeat,
    limits: CallLimits,
    attempt: (range: Range, options: CallOptions) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { clock } = this.#world;
    const sinceMs = clock.monotonicMs();
    /** What was tried, when, and what came of it. */
    const told: string[] = [];
    const tell = (text: string): void => {
      if (told.length < toldMax) told.push(`${Math.round(clock.monotonicMs() - sinceMs)} ms: ${text}`);
    };
    const outcome = await this.#untilAnswered(route, repeat, limits, tell, attempt);
    this.took.since(sinceMs);
    this.#slow.ended("a call to a partition server took long", sinceMs, () => ({
      what,
      attempts: told.join("; "),
      outcome: outcome.ok ? "done" : outcome.failure.reason,
    }));
    return outcome;
  }

  async #untilAnswered<T>(
    route: Route,
    repeat: Repeat,
    limits: CallLimits,
    tell: (text: string) => void,
    attempt: (range: Range, options: CallOptions) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { clock, random } = this.#world;
    let last: Failed = refused("unavailable", "notReady", "the partition map is not known yet");
    let backoffMs = backoffStartMs;
    for (;;) {
      if (limits.signal?.aborted) return refused("cancelled", "cancelled", "the client went away");
      const map = this.#map.current;
      const range = map?.find(route.table, route.key);
      const leftMs = limits.deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) return last;
      if (range && range.serverAddress !== "") {
        const timeoutMs = repeat === "soon" ? Math.min(leftMs, this.#readAttemptTimeoutMs) : leftMs;
        const options = limits.signal ? { timeoutMs, signal: limits.signal } : { timeoutMs };
        const outcome = await (repeat === "elsewhere" ? this.#whileItServes(route, range, options, attempt) : attempt(range, options));
        if (outcome.ok || !mayAskAgain(outcome.failure, repeat !== "never")) return outcome;
        last = outcome;
        this.retries++;
        tell(`${range.rangeId} at ${range.server}: ${outcome.failure.reason}`);
      } else if (map) {
        last = refused("unavailable", "partitionLoading", `nobody serves the ${route.table} range of this key now`);
        tell("nobody serves it");
      }
      if (last.failure.reason === "wrongPartition" && backoffMs >= backoffMaxMs) this.#map.doubt();
      const pauseMs = jittered(random, backoffMs);
      backoffMs = Math.min(backoffMs * 2, backoffMaxMs);
      if (clock.monotonicMs() + pauseMs >= limits.deadlineMs) return last;
      await this.#map.newerThan(map?.version ?? 0, pauseMs);
    }
  }

  /** The attempt, given up when by the map another server has the key. */
  #whileItServes<T>(
    route: Route,
    range: Range,
    { timeoutMs, signal }: CallOptions,
    attempt: (range: Range, options: CallOptions) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const givenUp = new AbortController();
    const giveUp = (): void => givenUp.abort();
    signal?.addEventListener("abort", giveUp, { once: true });
    return new Promise((resolve, reject) => {
      const unwatch = this.#map.watch(() => {
        const address = this.#map.current?.find(route.table, route.key)?.serverAddress ?? "";
        if (address === "" || address === range.serverAddress) return;
        unwatch();
        giveUp();
        resolve(
          unknownOutcome("unavailable", "wrongPartition", `${range.rangeId} is served elsewhere by now, ${range.server} did not answer`),
        );
      });
      const ended = (): void => {
        unwatch();
        signal?.removeEventListener("abort", giveUp);
      };
      attempt(range, { timeoutMs, signal: givenUp.signal }).then(resolve, reject).finally(ended);
    });
  }
}

const messageOf = (kind: OperationKind, policy: BlobPolicy | undefined): OperationInit =>
  (policy ? { kind, policy } : { kind }) as OperationInit;

/** Whether the same question may be answered differently soon. Overload is not: it is passed on, so that clients back off. */
function mayAskAgain(failure: Failure, repeatable: boolean): boolean {
  if (failure.applied === "unknown") return repeatable && failure.code !== "cancelled" && failure.code !== "dataLoss";
  if (failure.code === "unavailable") return true;
  switch (failure.reason) {
    case "wrongPartition":
    case "partitionLoading":
    case "leaseLost":
    case "connectFailed":
    case "notReady":
    case "stopping":
    case "staleOwnerEpoch":
    // A process of another role has the address that the map names, since a restart with other ports.
    case "unknownMethod":
    // Of an attempt: its time may be shorter than the caller's.
    case "timeout":
      return true;
    default:
      // A process of another stamp at that address refuses the front-end as unauthenticated.
      return failure.code === "unauthenticated" || (failure.code === "aborted" && failure.reason !== "badPlace");
  }
}
