/**
 * Calls to partition servers: finds the range of a key in the cached map, asks its server, and asks again when the map was stale, the
 * server was not there or the range was on its way, until the deadline. What may have happened is repeated only where twice is the same
 * as once: reads, and bytes that nothing refers to yet. A call to a server that the map no longer names for the key is given up: a paused
 * server would hold it until the deadline.
 *
 *     execute, executeAt, writeData, pinData, …   one for each method of a partition server
 *      └ #call   measures; logs a call that took long, with its attempts
 *         └ #untilAnswered   attempt after attempt, each with the newest map
 *            └ #untilServedElsewhere   one attempt; given up when the map names another server for the key
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RoomBeside } from "@stamp/admission";
import { compareBytes, type Failed, type Failure, Histogram, type Outcome, ok, present, refused, unknownOutcome } from "@stamp/base";
import { type BlobPolicy, hasBytes, isRead, type Route, routeOf } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { type CallOptions, type Cause, causedBy, jittered, SlowLog, type World } from "@stamp/ports";
import {
  type DivergedContent,
  type DivergedPlace,
  executeFields,
  type OperationResult,
  type OperationSchema,
  PartitionServer,
  type Place,
  type ScannedPart,
  type Shipment,
  type ShippedVersion,
  toWire,
} from "@stamp/wire";
import type { MapCache } from "./map-cache.ts";
import { endOfSmall, smallnessOf } from "./small-operations.ts";

type OperationInit = MessageInitShape<typeof OperationSchema>;
/** Operation in the form that makes its message. Names are complete: `routeOf` reads them. */
export type OperationKind = Exclude<NonNullable<OperationInit["kind"]>, { case: undefined }>;
type BlobNameInit = NonNullable<Extract<OperationKind, { case: "deleteBlob" }>["value"]["name"]>;
export type ResultKind = Exclude<OperationResult["kind"], { case: undefined }>;
export type ResultValues = { readonly [K in ResultKind as K["case"]]: K["value"] };

export interface CallLimits {
  /** Time by the monotonic clock. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** Policy of the account, for operations on its blobs. */
  readonly policy?: BlobPolicy;
  /** The client's request; undefined: the work is the front-end's own. */
  readonly cause?: Cause | undefined;
}

/**
 * Says when an attempt without an answer is made again. `never`: it may have happened, and a second time is not the same as once. `soon`:
 * after a short timeout of its own. `elsewhere`: only when the map names another server, because a server with too much to do would get the
 * same bytes twice.
 */
type Repeat = "never" | "soon" | "elsewhere";

/** Places of bytes that were put, and the time for which they stay without a reference. */
export interface WrittenBytes {
  readonly places: readonly Place[];
  /** Term in milliseconds; 0: not said. */
  readonly pinTermMs: number;
  /** Vouches for the bytes; empty: a server of an older release. */
  readonly mac: Uint8Array;
}

/** Tells if this host reaches others; without it, it does. */
export interface HostReach {
  /** True if no other host of the stamp answers. */
  readonly cutOff: boolean;
  /** True if the address is on this host. */
  isHere(address: string): boolean;
}

export interface RouterOptions {
  readonly readAttemptTimeoutMs: number;
  /** Told how long small operations take; undefined: nobody asks. */
  readonly room?: RoomBeside | undefined;
}

/**
 * How long an attempt goes on after the map names another server for its key, in ms. A range that moves is closed first, so its answers are
 * on their way by then. A write that is not waited for is unknown to the client, so its answer gets time to arrive.
 */
const graceMs: Readonly<Record<Repeat, number>> = { never: 1_000, soon: 0, elsewhere: 0 };
const backoffStartMs = 10;
const backoffMaxMs = 500;
/** Number of attempts of a slow call that its log line names. */
const toldMax = 12;

/** Answer of a partition server. */
export interface RoutedAnswer {
  readonly result: ResultKind;
  readonly range: Range;
  /** Gives the memory of the answer back (`Transport.giveBack`). Nobody may look at the result afterwards. */
  readonly giveBack: () => void;
}

export class Router {
  readonly #world: World;
  readonly #map: MapCache;
  readonly #readAttemptTimeoutMs: number;
  readonly #reach: HostReach | undefined;
  readonly #room: RoomBeside | undefined;
  readonly #slow: SlowLog;
  retries = 0;
  /** Times of calls, with all their attempts. */
  readonly took: Histogram;

  constructor(world: World, map: MapCache, options: RouterOptions, reach?: HostReach) {
    this.#world = world;
    this.#reach = reach;
    this.#map = map;
    this.#readAttemptTimeoutMs = options.readAttemptTimeoutMs;
    this.#room = options.room;
    this.#slow = new SlowLog(world);
    this.took = new Histogram(world.clock);
  }

  /** Executes an operation at the server of its range. */
  async execute(kind: OperationKind, limits: CallLimits): Promise<Outcome<ResultKind>> {
    const { clock } = this.#world;
    const small = smallnessOf(kind);
    const counted = small && this.#room?.began(small.access, small.isSure, clock.monotonicMs());
    const outcome = await this.executeAt(this.routeOf(kind), kind, limits);
    if (counted) this.#room?.ended(counted, endOfSmall(outcome), clock.monotonicMs());
    return outcome.ok ? ok(outcome.value.result) : outcome;
  }

  /** Executes the operation at the server of a range that does not follow from the operation: the next one of a list. */
  executeAt(route: Route, kind: OperationKind, limits: CallLimits): Promise<Outcome<{ result: ResultKind; range: Range }>> {
    return this.ask(route, kind, isRead(kind as Parameters<typeof isRead>[0]), limits);
  }

  /** Sends an operation by a given route. `repeatable`: twice is the same as once. */
  ask(route: Route, kind: OperationKind, repeatable: boolean, limits: CallLimits): Promise<Outcome<RoutedAnswer>> {
    const fields = executeFields(messageOf(kind, limits.policy));
    return this.#call(kind.case, route, repeatable ? "soon" : "never", limits, async (range, options) => {
      const answer = await this.#world.transport
        .client(range.serverAddress, PartitionServer)
        .execute({ rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), ...fields }, options);
      if (!answer.ok) return answer;
      const result = answer.value.result?.kind;
      if (result?.case === undefined) return unknownOutcome("internal", "bug", "a partition server answered without a result");
      return ok({ result, range, giveBack: () => this.#world.transport.giveBack?.(answer.value) });
    });
  }

  /** Puts bytes into the blob data stream of the range. Repeated freely: bytes that nothing refers to are collected. */
  /**
   * `free`: called if nobody looks at the payload any more when the call is over. After a second attempt the connection of the first one may
   * still send it.
   */
  async writeData(route: Route, payload: Uint8Array, limits: CallLimits, free?: () => void): Promise<Outcome<WrittenBytes>> {
    const { transport } = this.#world;
    let attempts = 0;
    const written = await this.#call("writeData", route, "elsewhere", limits, async (range, options) => {
      attempts++;
      const answer = await transport
        .client(range.serverAddress, PartitionServer)
        .writeData({ rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), key: route.key, payload }, options);
      return answer.ok ? ok(answer.value) : answer;
    });
    if (written.ok && attempts === 1 && transport.sharesMessages !== true) free?.();
    return written;
  }

  /** Renews the pins on extents of an upload in progress; returns those that are gone. */
  pinData(route: Route, extentIds: readonly bigint[], limits: CallLimits): Promise<Outcome<readonly bigint[]>> {
    return this.#call("pinData", route, "soon", limits, async (range, options) => {
      const request = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), key: route.key, extentIds: [...extentIds] };
      const answer = await this.#world.transport.client(range.serverAddress, PartitionServer).pinData(request, options);
      return answer.ok ? ok(answer.value.goneExtentIds) : answer;
    });
  }

  /** Sends shipped commits to the range of their PartitionName. Twice is the same as once. */
  applyShipped(
    route: Route,
    shipment: Shipment,
    limits: CallLimits,
  ): Promise<Outcome<{ readonly applied: number; readonly held?: ShippedVersion | undefined }>> {
    return this.#call("applyShipped", route, "elsewhere", limits, async (range, options) => {
      const at = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion) };
      const request = hasBytes(route.table) ? { ...at, placed: shipment } : { ...at, shipment };
      return this.#world.transport.client(range.serverAddress, PartitionServer).applyShipped(request, options);
    });
  }

  /**
   * Writes rows that another stamp has scanned, at the range of the key. `partOf`: the part that ends with the range. Twice is as once. Returns
   * the end of the range; empty: it is the last one of its table. `held`: version because of which a part was left out.
   */
  applyScanned(
    route: Route,
    partOf: (rangeHigh: Uint8Array) => ScannedPart,
    limits: CallLimits,
  ): Promise<Outcome<{ readonly rangeHigh: Uint8Array; readonly held?: ShippedVersion | undefined }>> {
    return this.#call("applyScanned", route, "elsewhere", limits, async (range, options) => {
      const at = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion) };
      const part = partOf(range.high);
      const request = hasBytes(route.table) ? { ...at, placed: part } : { ...at, part };
      const applied = await this.#world.transport.client(range.serverAddress, PartitionServer).applyScanned(request, options);
      return applied.ok ? ok({ rangeHigh: range.high, held: applied.value.held }) : applied;
    });
  }

  /**
   * Asks what was shipped here of PartitionNames, in key order. Answers for those that the range of the first one has: the caller asks again
   * for the rest.
   */
  shippedVersions(table: string, names: readonly Uint8Array[], limits: CallLimits): Promise<Outcome<readonly ShippedVersion[]>> {
    const key = present(names[0], "a PartitionName");
    return this.#call("getShippedVersions", { table, key } as Route, "soon", limits, async (range, options) => {
      const own = names.filter((name) => range.high.length === 0 || compareBytes(name, range.high) < 0);
      const request = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), names: own };
      const told = await this.#world.transport.client(range.serverAddress, PartitionServer).getShippedVersions(request, options);
      return told.ok ? ok(told.value.versions) : told;
    });
  }

  /** Returns where the bytes lie from `startBytes` to `endBytes` of a blob that the report of a deposed primary names. */
  divergedContent(place: DivergedPlace, startBytes: bigint, endBytes: bigint, limits: CallLimits): Promise<Outcome<DivergedContent>> {
    return this.#call("readDivergedBlob", { table: "Blob", key: place.key }, "soon", limits, (range, options) => {
      const at = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion) };
      const client = this.#world.transport.client(range.serverAddress, PartitionServer);
      return client.readDivergedBlob({ ...at, place, startBytes, endBytes }, options);
    });
  }

  /** Returns the route of every operation on this blob. */
  routeOfBlob(name: BlobNameInit): Route {
    return this.routeOf({ case: "deleteBlob", value: { name } });
  }

  routeOf(kind: OperationKind): Route {
    return routeOf(this.#world.rules, kind as Parameters<typeof routeOf>[1]);
  }

  /** `what`: method or operation, for the log. */
  async #call<T>(
    what: string,
    route: Route,
    repeat: Repeat,
    limits: CallLimits,
    attempt: (range: Range, options: CallOptions) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { clock } = this.#world;
    const sinceMs = clock.monotonicMs();
    /** Attempts with their times and results, for the log. */
    const told: string[] = [];
    const tell = (text: string): void => {
      if (told.length < toldMax) told.push(`${Math.round(clock.monotonicMs() - sinceMs)} ms: ${text}`);
    };
    const outcome = await this.#untilAnswered(route, repeat, limits, tell, attempt);
    this.took.since(sinceMs);
    this.#slow.ended("a call to a partition server took long", sinceMs, () => ({
      what,
      requestId: limits.cause?.["request-id"],
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
    for (let attempts = 0; ; attempts++) {
      if (limits.signal?.aborted) return refused("cancelled", "cancelled", "the client went away");
      const map = this.#map.current;
      const range = map?.find(route.table, route.key);
      const leftMs = limits.deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) return last;
      if (this.#isCutOff(range, attempts)) return refused("unavailable", "connectFailed", "no other host of the stamp answers this one");
      if (range && range.serverAddress !== "") {
        const timeoutMs = repeat === "soon" ? Math.min(leftMs, this.#readAttemptTimeoutMs) : leftMs;
        const options = {
          timeoutMs,
          graceMs: graceMs[repeat],
          ...(limits.signal ? { signal: limits.signal } : {}),
          ...causedBy(limits.cause),
        };
        const outcome = await this.#untilServedElsewhere(route, range, options, attempt);
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

  /**
   * The client should ask the front-end of another host: this one reaches nobody, and a request would wait for its whole time. A partition server
   * on this host serves until its lease ends, so it is asked once.
   */
  #isCutOff(range: Range | undefined, attempts: number): boolean {
    if (this.#reach?.cutOff !== true) return false;
    return attempts > 0 || range === undefined || !this.#reach.isHere(range.serverAddress);
  }

  /**
   * Makes the attempt, and stops waiting for its answer when the map has named another server for the key for `graceMs` on end: the server
   * that was asked is paused or cut off. Whether it did what it was asked is not known, and a later answer changes nothing.
   */
  #untilServedElsewhere<T>(
    route: Route,
    range: Range,
    { signal, graceMs, ...options }: CallOptions & { readonly graceMs: number },
    attempt: (range: Range, options: CallOptions) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const givenUp = new AbortController();
    const cancel = (): void => givenUp.abort();
    signal?.addEventListener("abort", cancel, { once: true });
    return new Promise((resolve, reject) => {
      let grace: { cancel(): void } | undefined;
      const servedElsewhere = (): boolean => {
        const address = this.#map.current?.find(route.table, route.key)?.serverAddress ?? "";
        return address !== "" && address !== range.serverAddress;
      };
      const ended = (): void => {
        unwatch();
        grace?.cancel();
        signal?.removeEventListener("abort", cancel);
      };
      const giveUp = (): void => {
        ended();
        cancel();
        const why = `${range.rangeId} is served elsewhere by now, ${range.server} did not answer`;
        resolve(unknownOutcome("unavailable", "wrongPartition", why));
      };
      const unwatch = this.#map.watch(() => {
        const elsewhere = servedElsewhere();
        if (elsewhere && graceMs === 0) giveUp();
        else if (elsewhere) grace ??= this.#world.clock.after(graceMs, giveUp);
        else {
          grace?.cancel();
          grace = undefined;
        }
      });
      attempt(range, { ...options, signal: givenUp.signal })
        .then(resolve, reject)
        .finally(ended);
    });
  }
}

const messageOf = (kind: OperationKind, policy: BlobPolicy | undefined): OperationInit =>
  (policy ? { kind, policy } : { kind }) as OperationInit;

/** True if the same question may soon be answered differently. Overload is not: it is passed on, so that clients back off. */
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
    // An attempt's time may be shorter than the caller's.
    case "timeout":
      return true;
    default:
      // A process of another stamp at that address refuses the front-end as unauthenticated.
      return failure.code === "unauthenticated" || (failure.code === "aborted" && failure.reason !== "badPlace");
  }
}
