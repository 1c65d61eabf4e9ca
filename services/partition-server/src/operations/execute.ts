/**
 * Operations on objects of one range: runs the plan, decides whether the answer may be given, and says where content lies.
 *
 *     execute            refuses if too many operations wait in this server
 *      └ #executeAtRange   finds the range; follows it to its children if it is split or merged meanwhile (#followReshapes)
 *         └ #executeInTurn   checks that the range holds the key; waits for the turn of its account and partition (#inTurn)
 *            └ #decideAndAnswer   measures; looks at the lease again before it answers
 *               └ #decideRead, #decideWrite   at a snapshot; or under the row locks, committed
 *                  └ #runPlan   the plan of packages/objects over the rows
 *
 * Reads, and whatever was decided without writing (404, 409 and 412 are reads too), are answered only while the lease is held: it is
 * looked at again after the answer was made (rule leaseRecheckedAfterAnswer). A write that was committed happened under the owner epoch,
 * whatever the lease says by now; it is answered as done.
 */
import type { GateFigures, GateOptions } from "@stamp/admission";
import { compareBytes, emptyBytes, type Failed, Histogram, holdersOf, type Outcome, ok, refused } from "@stamp/base";
import {
  type Body,
  type Decision,
  goesOverRanges,
  inlineBytesOf,
  isPipelined,
  isRead,
  type Lease,
  lockKeysOf,
  type MayWrite,
  noPolicy,
  type Operation,
  type OperationResult,
  type Place,
  type PlanContext,
  planOf,
  type Route,
  receiptSecretBytes,
  routeOf,
  type Seals,
  versionOfRow,
} from "@stamp/objects";
import { holdsKey } from "@stamp/partition-map";
import { type Cause, SlowLog, type World } from "@stamp/ports";
import type { ExtentLocation } from "@stamp/wire";
import type { HeldRange, Holdings } from "../ranges/holdings.ts";
import { Admission, accountPrefix, type LeaveAdmission, latin1 } from "./admission.ts";
import type { AskedWith, DataToWrite } from "./asked.ts";
import type { RangeEngine, RowView } from "./engine.ts";
import { runPlan } from "./run-plan.ts";

type HeldEngine = HeldRange & { readonly engine: RangeEngine };

interface Asked extends AskedWith {
  readonly operation: Operation;
}

/** Largest append to the blob data stream, in bytes. */
export const dataBytesMax: number = 4 * 1024 * 1024;

const firstRowVersion = 1;

/** Splits and merges of one range after another that an operation follows before its caller has to look at the map. */
const generationsMax = 4;
/** Extents of which one call renews the pins. */
const pinnedAtOnceMax = 4_096;

export interface ExecutorOptions {
  readonly operationsMax: number;
  /** Admission of operations, and of appends of blob data. */
  readonly admission: GateOptions;
  readonly dataAdmission: GateOptions;
  /** Time for which bytes of blob data pin their extent, in milliseconds. */
  readonly pinTermMs: number;
  /** True if this server's lease is held now. */
  readonly leaseHeld: () => boolean;
  readonly locate: (extentIds: readonly number[], timeoutMs: number) => Promise<ExtentLocation[]>;
  readonly seals: Seals;
  readonly mayWrite: MayWrite;
  /**
   * Runs when bytes for a blob are durable; `account` is what all keys of the blob's account begin with. Returns true if it keeps the bytes, which
   * are not changed any more then.
   */
  readonly onAppended?: (account: string, place: Place, bytes: Uint8Array) => boolean;
}

export class Executor {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #options: ExecutorOptions;
  readonly #admission: Admission;
  readonly #dataAdmission: Admission;
  readonly #slow: SlowLog;
  /** Times of admitted operations with their wait for a turn, and of appends of blob data. */
  readonly took: Readonly<Record<"read" | "write" | "scan" | "data", Histogram>>;
  #active = 0;

  constructor(world: World, holdings: Holdings, options: ExecutorOptions) {
    this.#world = world;
    this.#holdings = holdings;
    this.#options = options;
    this.#admission = new Admission(world.clock, options.admission);
    this.#dataAdmission = new Admission(world.clock, options.dataAdmission);
    this.#slow = new SlowLog(world);
    const { clock } = world;
    this.took = { read: new Histogram(clock), write: new Histogram(clock), scan: new Histogram(clock), data: new Histogram(clock) };
  }

  get admission(): GateFigures {
    return this.#admission.figures;
  }

  /** Figures of appends of blob data. */
  get dataAdmission(): GateFigures {
    return this.#dataAdmission.figures;
  }

  get active(): number {
    return this.#active;
  }

  /** `deadlineMs` by the monotonic clock. */
  execute(
    rangeId: string,
    rangeVersion: number,
    operation: Operation,
    deadlineMs: number,
    asked: AskedWith = {},
  ): Promise<Outcome<OperationResult>> {
    return this.#bounded(() => this.#executeAtRange(rangeId, rangeVersion, { ...asked, operation }, deadlineMs));
  }

  async #executeAtRange(rangeId: string, rangeVersion: number, asked: Asked, deadlineMs: number): Promise<Outcome<OperationResult>> {
    // A list goes on behind the end of the range that its caller knows: it needs the new map.
    const childRoute = () => (goesOverRanges(asked.operation) ? undefined : routeOf(this.#world.rules, asked.operation));
    return this.#followReshapes(rangeId, rangeVersion, childRoute, deadlineMs, (held) => this.#executeInTurn(held, asked, deadlineMs));
  }

  writeData(rangeId: string, rangeVersion: number, data: DataToWrite, deadlineMs: number): Promise<Outcome<Place[]>> {
    return this.#bounded(async () => {
      const { key, payload } = data;
      if (payload.length < 1 || payload.length > dataBytesMax) {
        return refused("invalidArgument", "badRequest", `1 to ${dataBytesMax} bytes at a time, not ${payload.length}`);
      }
      // Whoever does not say what blob it is for finds out when the map is new.
      const childRoute = (): Route | undefined => (key.length === 0 ? undefined : { table: "Blob", key });
      let attempts = 0;
      return this.#followReshapes(rangeId, rangeVersion, childRoute, deadlineMs, (held) => {
        // A child is asked after the parent, whose append may still be under way.
        return this.#writeData(held, attempts++ === 0 ? data : { ...data, free: undefined }, deadlineMs);
      });
    });
  }

  /** Renews the pins on extents that an upload for `key` has bytes in; returns those that are gone. */
  pinData(
    rangeId: string,
    rangeVersion: number,
    key: Uint8Array,
    extentIds: readonly number[],
    deadlineMs: number,
  ): Promise<Outcome<readonly number[]>> {
    return this.#bounded(async () => {
      if (extentIds.length > pinnedAtOnceMax) {
        return refused("invalidArgument", "badRequest", `at most ${pinnedAtOnceMax} extents at a time, not ${extentIds.length}`);
      }
      const route = (): Route => ({ table: "Blob", key });
      return this.#followReshapes(rangeId, rangeVersion, route, deadlineMs, async (held) => {
        const gone = held.engine.pinData(extentIds);
        // A pin at a server that lost the range holds nothing back at the one that has it.
        const answered = this.mayAnswer(held);
        return answered.ok ? gone : answered;
      });
    });
  }

  get pinTermMs(): number {
    return this.#options.pinTermMs;
  }

  /**
   * An operation whose range is being split or merged waits until that is over, and is done at the child that holds the
   * key.
   */
  async #followReshapes<T>(
    rangeId: string,
    rangeVersion: number,
    childRoute: () => Route | undefined,
    deadlineMs: number,
    work: (held: HeldEngine) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const found = this.#holdings.serving(rangeId, rangeVersion);
    let done = found.ok ? await work(found.value) : found;
    if (done.ok || !isMoving(done)) return done;
    const route = childRoute();
    if (route === undefined) {
      await this.#holdings.untilReshaped(rangeId, rangeVersion, this.#left(deadlineMs));
      return done;
    }
    const sinceMs = this.#world.clock.monotonicMs();
    let at = { rangeId, rangeVersion };
    // The child may be split or merged in its turn.
    for (let generation = 0; generation < generationsMax && !done.ok && isMoving(done); generation++) {
      const next = await this.#holdings.childOf(at.rangeId, at.rangeVersion, route.table, route.key, this.#left(deadlineMs));
      if (next === undefined) break;
      this.#slow.ended("an operation waited long for a split or merge", sinceMs, () => ({ from: rangeId, to: next.range.rangeId }));
      done = await work(next);
      at = next.range;
    }
    return done;
  }

  /** Appends bytes in the turn of their account and blob; without a key the owner is not known, and they share a turn. */
  async #writeData(held: HeldEngine, data: DataToWrite, deadlineMs: number): Promise<Outcome<Place[]>> {
    if (held.range.streams.blobData === "") return refused("invalidArgument", "badRequest", `${held.range.rangeId} has no blob data`);
    const asked = { account: accountPrefix(data.key), partition: latin1(data.key), kind: "write" } as const;
    return this.#inTurn(held, this.#dataAdmission.enter(asked), deadlineMs, () => this.#appendData(held, asked.account, data, deadlineMs));
  }

  /** Holders of the payload are the append, and whoever keeps the bytes of it. */
  async #appendData(
    held: HeldEngine,
    account: string,
    { payload, free, cause }: DataToWrite,
    deadlineMs: number,
  ): Promise<Outcome<Place[]>> {
    const holders = holdersOf(2, free);
    const sinceMs = this.#world.clock.monotonicMs();
    const place = await held.engine.appendData(payload, { timeoutMs: this.#left(deadlineMs), whenFree: () => holders?.end(), cause });
    this.took.data.since(sinceMs);
    held.load.moved(payload.length, 0);
    // Nothing refers to what was appended, and who has no room is not asked again.
    if (!place.ok) return place.failure.reason === "noPlacement" ? { ok: false, failure: { ...place.failure, applied: "no" } } : place;
    if (this.#options.onAppended?.(account, place.value, payload) !== true) holders?.end();
    return ok([place.value]);
  }

  /** Returns the locations of these places' extents, without unknown ones. */
  async locate(places: readonly Place[], deadlineMs: number): Promise<ExtentLocation[]> {
    const extentIds = [...new Set(places.map((place) => place.extentId))];
    if (extentIds.length === 0) return [];
    return this.#options.locate(extentIds, this.#left(deadlineMs));
  }

  async #bounded<T>(work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    if (this.#active >= this.#options.operationsMax) {
      return refused("resourceExhausted", "throttled", `${this.#active} operations wait in this server`);
    }
    this.#active++;
    try {
      return await work();
    } finally {
      this.#active--;
    }
  }

  async #executeInTurn(held: HeldEngine, asked: Asked, deadlineMs: number): Promise<Outcome<OperationResult>> {
    const { operation } = asked;
    const route = routeOf(this.#world.rules, operation);
    const misplaced = this.#misplaced(held, operation, route);
    if (misplaced) return misplaced;
    const sinceMs = this.#world.clock.monotonicMs();
    const entering = this.#enter(operation, route);
    return this.#inTurn(held, entering, deadlineMs, () => this.#decideAndAnswer(held, asked, route, { sinceMs, deadlineMs }));
  }

  async #inTurn<T>(
    held: HeldEngine,
    entering: Outcome<LeaveAdmission> | Promise<Outcome<LeaveAdmission>>,
    deadlineMs: number,
    work: () => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const entered = entering instanceof Promise ? await entering : entering;
    if (!entered.ok) {
      held.load.throttled();
      return entered;
    }
    try {
      const late = entering instanceof Promise ? this.#tooLate(held, deadlineMs) : undefined;
      return late ?? (await work());
    } finally {
      entered.value();
    }
  }

  /** Lets an operation begin. Reads of accounts always may: without them nobody is let in anywhere. */
  #enter(operation: Operation, { table, key }: Route): Outcome<LeaveAdmission> | Promise<Outcome<LeaveAdmission>> {
    if (table === "Account") return ok(() => {});
    return this.#admission.enter({ account: accountPrefix(key), partition: latin1(key), kind: isRead(operation) ? "read" : "write" });
  }

  /** True if, while the operation waited, its deadline may have passed or its range gone. */
  #tooLate(held: HeldEngine, deadlineMs: number): Failed | undefined {
    if (this.#left(deadlineMs) <= 0) return refused("deadlineExceeded", "timeout", "no time is left after waiting for its turn");
    return this.#holdings.current(held) ? undefined : leaseLost();
  }

  async #decideAndAnswer(
    held: HeldEngine,
    asked: Asked,
    route: Route,
    { sinceMs, deadlineMs }: { readonly sinceMs: number; readonly deadlineMs: number },
  ): Promise<Outcome<OperationResult>> {
    const { operation } = asked;
    const kind = isRead(operation) ? "read" : "write";
    const over = held.load.begin(kind, route.key, sinceMs);
    const took = this.took[goesOverRanges(operation) ? "scan" : kind];
    const ended = (): void => {
      over();
      const endMs = this.#world.clock.monotonicMs();
      took.since(sinceMs, endMs);
      const facts = { requestId: asked.cause?.["request-id"], operation: operation.case, rangeId: held.range.rangeId };
      this.#world.logger.debug("operation", { ...facts, tookMs: endMs - sinceMs });
    };
    const decided = await (isRead(operation) ? this.#decideRead(held, asked) : this.#decideWrite(held, asked, deadlineMs)).finally(ended);
    if (!decided.ok) return tooLong(operation, decided);
    const { result, writes, refusal } = decided.value;
    if (writes.length > 0) return ok(result);
    if (!this.#mayAnswer(held)) return leaseLost();
    if (refusal) return refused("failedPrecondition", refusal.reason, refusal.message);
    return ok(result);
  }

  /** Refuses if the lease may have ended; asked after the range was read. */
  mayAnswer(held: HeldRange): Outcome<void> {
    return this.#mayAnswer(held) ? ok() : leaseLost();
  }

  /** Looks at the lease, once: after the answer was made, so that no pause in between can make it old. */
  #mayAnswer(held: HeldRange): boolean {
    if (!this.#world.rules.on("leaseRecheckedAfterAnswer")) return true;
    return this.#options.leaseHeld() && this.#holdings.current(held);
  }

  /** Refuses an operation whose place differs between the front-end and this server. */
  #misplaced(held: HeldEngine, operation: Operation, route: Route): Failed | undefined {
    const { range } = held;
    if (route.table !== range.table) {
      return refused("failedPrecondition", "wrongPartition", `${range.rangeId} is of table ${range.table}, not ${route.table}`);
    }
    // An operation that continues from an earlier range starts at this one's low key.
    if (holdsKey(range, route.key) || (goesOverRanges(operation) && compareBytes(route.key, range.low) < 0)) return undefined;
    return refused("failedPrecondition", "wrongPartition", `${range.rangeId} does not hold this key`);
  }

  #decideRead(held: HeldEngine, asked: Asked): Promise<Outcome<Decision>> {
    return held.engine.read((view) => this.#runPlan(held, asked, view, 0));
  }

  async #decideWrite(held: HeldEngine, { operation: asked, policy, cause }: Asked, deadlineMs: number): Promise<Outcome<Decision>> {
    const spilled = await this.#spill(held, asked, deadlineMs, cause);
    if (!spilled.ok) return spilled;
    const operation = spilled.value;
    if (this.#left(deadlineMs) <= 0) return refused("deadlineExceeded", "timeout", "no time is left to write");
    const decide = async (view: RowView, sequence: number): Promise<Outcome<Decision>> => {
      const decided = await this.#runPlan(held, { operation, ...(policy && { policy }) }, view, sequence);
      const recorded = decided.ok ? await this.#recordVersions(held, decided.value) : decided;
      return recorded.ok ? decided : recorded;
    };
    const options = { timeoutMs: this.#left(deadlineMs), pipelined: isPipelined(operation), cause };
    return held.engine.transact(lockKeysOf(this.#world.rules, operation), decide, options);
  }

  /** Records the versions of rows in the range's state before the first such row is written (docs/formats/versions.md). */
  async #recordVersions({ engine }: HeldEngine, { writes }: Decision): Promise<Outcome<void>> {
    const version = writes.reduce(
      (most, write) => (write.kind === "put" ? Math.max(most, versionOfRow(write.value)) : most),
      firstRowVersion,
    );
    return version === firstRowVersion ? ok() : engine.needRows(version);
  }

  /** Puts bytes that do not belong into a row into the blob data stream, wherever the caller put them. */
  async #spill(held: HeldEngine, operation: Operation, deadlineMs: number, cause: Cause | undefined): Promise<Outcome<Operation>> {
    const inlineBytesMax = inlineBytesOf(operation);
    if (inlineBytesMax === undefined) return ok(operation);
    const spilled = operation as Extract<Operation, { value: { body: Body } }>;
    const { inline } = spilled.value.body;
    if (inline.length <= inlineBytesMax) return ok(operation);
    const places: Place[] = [];
    for (let at = 0; at < inline.length; at += dataBytesMax) {
      const piece = inline.subarray(at, Math.min(at + dataBytesMax, inline.length));
      const place = await held.engine.appendData(piece, { timeoutMs: this.#left(deadlineMs), cause });
      held.load.moved(piece.length, 0);
      // Nothing refers to what was appended: the operation itself did not happen.
      if (!place.ok) return { ok: false, failure: { ...place.failure, applied: "no" } };
      places.push(place.value);
    }
    const body: Body = { inline: emptyBytes, places };
    return ok({ case: operation.case, value: { ...operation.value, body } } as Operation);
  }

  async #runPlan(
    held: HeldEngine,
    { operation, policy = noPolicy, pageMemory }: Asked,
    view: RowView,
    sequence: number,
  ): Promise<Outcome<Decision>> {
    const { clock, rules } = this.#world;
    const nowMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    const context: PlanContext = {
      rules,
      wallMs,
      sequence,
      range: held.range,
      mayReferTo: (place) => held.engine.mayReferTo(place),
      policy,
      leases: { nowMs, endsMs: (lease: Lease) => held.leases.endsMs(lease) },
      queueMs: (name, clockMs) => held.queueClocks.actingMs(name, { wallMs, monotonicMs: nowMs }, clockMs),
      receiptSecret: () => this.#world.random.bytes(receiptSecretBytes),
      seals: this.#options.seals,
      mayWrite: this.#options.mayWrite,
      pageMemory,
    };
    const decided = await runPlan(clock, planOf(operation, context), view, (bytes) => held.load.moved(0, bytes));
    if (!decided.ok) return decided;
    for (const write of decided.value.writes) held.load.moved(write.kind === "put" ? write.value.length : 0, 0);
    // In row order: whoever decides next about this row sees the lease as it is from now on.
    const { timer } = decided.value;
    if (timer) held.leases.set(timer, timer.endsMs, nowMs);
    return decided;
  }

  #left(deadlineMs: number): number {
    return Math.max(0, deadlineMs - this.#world.clock.monotonicMs());
  }
}

/** Reasons that mean: nothing happened, because the range is not served here as it was. */
const moving: ReadonlySet<string> = new Set(["wrongPartition", "partitionLoading", "leaseLost", "stopping"]);
const isMoving = ({ failure }: Failed): boolean => failure.applied === "no" && moving.has(failure.reason);

/** Returns the refusal of an operation that does not fit into one commit: its client can shorten it, and nothing happened. */
function tooLong(operation: Operation, failed: Failed): Outcome<OperationResult> {
  if (failed.failure.reason !== "messageTooLarge") return failed;
  const details = { reason: failed.failure.message };
  if (operation.case === "putBlockList") return ok({ case: "error", value: { code: "BlockListTooLong", details } });
  if (operation.case === "table") return ok({ case: "error", value: { code: "ContentLengthExceeded", details } });
  return failed;
}

const leaseLost = (): Failed => refused("unavailable", "leaseLost", "this server may no longer answer for the range");
