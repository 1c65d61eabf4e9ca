/**
 * Calls to the lock services of a stamp. Over etcd there are several, of which one is active; the address is then a list, separated by commas.
 * A call goes to the process that answered last. A standby refuses it and names the active one; a process that does not answer is left for
 * the next one.
 *
 *     call ──► current ──answer within 250 ms──────────────────────────► answer
 *                 └─silent─► another one ──names a third, or answers──► goes on there
 *                                  └──names current, or is away──► current again for 250 ms, then the next one
 *
 * Invariants:
 *   - A call that is not idempotent is sent again only after a refusal: nothing was done.
 *   - With one address nothing is tried again: the caller knows what to do.
 *   - A slow process is not left while the others name it as the active one: its answer may need an etcd whose disk is slow.
 */
import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { type Failed, type Failure, type Outcome, unknownOutcome } from "@stamp/base";
import { type Address, type CallOptions, type Client, sleep, type World, within } from "@stamp/ports";

/** Longest time of one attempt of an idempotent call, in milliseconds; then another process is asked. */
const attemptMs = 1_000;
/** Pause after each process was asked once. */
const pauseMs = 100;
/** Time without an answer of a process after which others are asked for the active one, in milliseconds. */
const doubtAfterMs = 250;
/** Time after a process did not answer in which it is doubted sooner, in milliseconds. */
const silentForMs = 5_000;
const doubtSilentAfterMs = 50;
/** Calls that must not be made twice. Every other call has the same result when it is repeated. */
const notIdempotent: ReadonlySet<string> = new Set(["acquireLease", "transact"]);

type Callable = (request: object, options: CallOptions) => Promise<Outcome<object>>;

/** Addresses of a list; one for a single lock service. */
export const lockServiceAddresses = (list: Address): Address[] => list.split(",").map((address) => address.trim());

/**
 * Returns how long one of the lock services may hold a question until there is news, in milliseconds. If there are several, none holds a
 * question: a process without an answer is doubted soon, and a held question would look like that.
 */
export const heldQuestionMs = (list: Address, wantedMs = 0): number => (lockServiceAddresses(list).length === 1 ? wantedMs : 0);

/** Returns a client of a unary service of the lock services: of LockService or MetadataStore. */
export function lockServices<S extends DescService>(world: Pick<World, "clock" | "transport">, list: Address, service: S): Client<S> {
  const addresses = lockServiceAddresses(list);
  if (addresses.length === 1) return world.transport.client(list, service);
  const found = foundOf(world, list, addresses);
  return Object.fromEntries(
    (service.methods as readonly DescMethodUnary[]).map(({ localName }) => {
      const at = (address: Address): Callable =>
        (world.transport.client(address, service) as Record<string, Callable>)[localName] as Callable;
      const idempotent = !notIdempotent.has(localName);
      return [localName, (request: object, options: CallOptions) => call(world, found, at, request, options, idempotent)];
    }),
  ) as Client<S>;
}

/** Knowledge of the clients of one process, by its transport and the list: a call that must not be repeated goes where renewals succeed. */
const learned = new WeakMap<object, Map<string, Found>>();

function foundOf({ transport }: Pick<World, "transport">, list: Address, addresses: readonly Address[]): Found {
  const lists = learned.get(transport) ?? new Map<string, Found>();
  learned.set(transport, lists);
  const found = lists.get(list) ?? new Found(addresses);
  lists.set(list, found);
  return found;
}

class Found {
  readonly #addresses: readonly Address[];
  /** Time at which a process did not answer, by the monotonic clock. */
  readonly #silentSinceMs = new Map<Address, number>();
  current: Address;

  constructor(addresses: readonly Address[]) {
    this.#addresses = addresses;
    this.current = addresses[0] as Address;
  }

  get count(): number {
    return this.#addresses.length;
  }

  /** Returns the time after which others are asked about a process. One that was silent just now may be back, or may still be away. */
  doubtAfterMs(address: Address, nowMs: number): number {
    return this.#isSilent(address, nowMs) ? doubtSilentAfterMs : doubtAfterMs;
  }

  /** Returns the others, those first that answered when they were asked last. */
  others(address: Address, nowMs: number): Address[] {
    const at = this.#addresses.indexOf(address);
    const others = [...this.#addresses.slice(at + 1), ...this.#addresses.slice(0, at)];
    return others.toSorted((a, b) => Number(this.#isSilent(a, nowMs)) - Number(this.#isSilent(b, nowMs)));
  }

  /** Notes that the active one answers, or is named by another process. */
  answers(address: Address): void {
    if (!this.#addresses.includes(address)) return;
    this.#silentSinceMs.delete(address);
    this.current = address;
  }

  silent(address: Address, nowMs: number): void {
    this.#silentSinceMs.set(address, nowMs);
  }

  /** Leaves a process that is not the active one, for the one that it names, or one that does not answer, for the next. */
  leave(address: Address, { reason, details, applied }: Failure, nowMs: number): void {
    if (applied === "unknown" || reason === "connectFailed") this.silent(address, nowMs);
    else this.#silentSinceMs.delete(address);
    if (this.current !== address) return;
    const named = reason === "notLeader" ? details?.leaderAddress : undefined;
    const others = this.others(address, nowMs);
    this.current = others.find((other) => other === named) ?? (others[0] as Address);
  }

  #isSilent(address: Address, nowMs: number): boolean {
    return nowMs - (this.#silentSinceMs.get(address) ?? Number.NEGATIVE_INFINITY) < silentForMs;
  }
}

/** Sends the call to a process; it ends after this many milliseconds, or with the caller's deadline. */
type Sending = (address: Address, mostMs: number) => Promise<Outcome<object>>;

async function call(
  world: Pick<World, "clock">,
  found: Found,
  at: (address: Address) => Callable,
  request: object,
  options: CallOptions,
  idempotent: boolean,
): Promise<Outcome<object>> {
  const { clock } = world;
  const deadlineMs = clock.monotonicMs() + options.timeoutMs;
  const send: Sending = (address, mostMs) =>
    at(address)(request, { ...options, timeoutMs: Math.max(Math.min(deadlineMs - clock.monotonicMs(), mostMs), 1) });
  let last: Failed | undefined;
  let anyUnknown = false;
  for (let tries = 1; ; tries++) {
    const address = found.current;
    const made = send(address, idempotent ? attemptMs : Number.POSITIVE_INFINITY);
    const told = idempotent ? await unlessLeft(world, found, send, address, made) : { from: address, answer: await made };
    if (told === undefined) anyUnknown = true;
    else {
      const { answer, from } = told;
      if (answer.ok) found.answers(from);
      if (answer.ok || !isOfTheProcess(answer.failure)) return answer;
      last = answer;
      anyUnknown ||= answer.failure.applied === "unknown";
      found.leave(from, answer.failure, clock.monotonicMs());
      if (answer.failure.applied === "unknown" && !idempotent) return answer;
    }
    const waitMs = tries % found.count === 0 ? pauseMs : 0;
    if (options.signal?.aborted === true || clock.monotonicMs() + waitMs >= deadlineMs) return ended(last, anyUnknown);
    if (waitMs > 0) await sleep(clock, waitMs, options.signal);
  }
}

function ended(last: Failed | undefined, anyUnknown: boolean): Failed {
  const failed = last ?? unknownOutcome("deadlineExceeded", "timeout", "the active lock service did not answer in time");
  return anyUnknown ? { ok: false, failure: { ...failed.failure, applied: "unknown" } } : failed;
}

/**
 * Waits for the answer of a process, and asks the others meanwhile. Returns an answer, of whichever process; undefined if another process is the
 * active one by now, and the call is to be sent to it.
 */
async function unlessLeft(
  { clock }: Pick<World, "clock">,
  found: Found,
  call: Sending,
  address: Address,
  made: Promise<Outcome<object>>,
): Promise<{ readonly from: Address; readonly answer: Outcome<object> } | undefined> {
  let others: Address[] = [];
  for (;;) {
    const answer = await within(clock, found.doubtAfterMs(address, clock.monotonicMs()), made);
    if (answer !== undefined) return { from: address, answer };
    if (others.length === 0) others = found.others(address, clock.monotonicMs());
    const other = others.shift() as Address;
    const asked = call(other, doubtAfterMs);
    const told = await Promise.race([asked, made.then(() => undefined)]);
    if (told === undefined) continue;
    if (told.ok || !isOfTheProcess(told.failure)) return { from: other, answer: told };
    const { applied, details, reason } = told.failure;
    const named = reason === "notLeader" ? details?.leaderAddress : undefined;
    if (applied === "unknown" || reason === "connectFailed") found.silent(other, clock.monotonicMs());
    if (named === undefined || named === address || named === other) continue;
    found.silent(address, clock.monotonicMs());
    found.answers(named);
    return undefined;
  }
}

/** True if another lock service, or the same one later, may answer differently. */
function isOfTheProcess({ code, reason }: Failure): boolean {
  if (reason === "notLeader" || reason === "connectFailed" || reason === "stopping" || reason === "notReady") return true;
  return code === "unavailable" || code === "deadlineExceeded" || code === "internal" || code === "unauthenticated";
}
