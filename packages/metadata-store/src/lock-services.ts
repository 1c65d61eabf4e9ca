/**
 * Calls to the lock services of a stamp. Over etcd there are several, of which one is active; the address is then a list, separated by commas.
 * A call goes to the process that answered last. A standby refuses it and names the active one; a process that does not answer is left for
 * the next one.
 *
 * Invariants:
 *   - A call that is not idempotent is sent again only after a refusal: nothing was done.
 *   - With one address nothing is tried again: the caller knows what to do.
 */
import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import type { Failed, Failure, Outcome } from "@stamp/base";
import { type Address, type CallOptions, type Client, sleep, type World } from "@stamp/ports";

/** Longest time of one attempt of an idempotent call, in milliseconds; then another process is asked. */
const attemptMs = 1_000;
/** After each process was asked once. */
const pauseMs = 100;
/** For so long after a process did not answer, its attempts are short, in milliseconds. */
const silentForMs = 5_000;
const silentAttemptMs = 300;
/** Calls that must not be made twice. Every other call has the same result when it is repeated. */
const notIdempotent: ReadonlySet<string> = new Set(["acquireLease", "transact"]);

type Callable = (request: object, options: CallOptions) => Promise<Outcome<object>>;

/** Addresses of a list; one for a single lock service. */
export const lockServiceAddresses = (list: Address): Address[] => list.split(",").map((address) => address.trim());

/** A client of a unary service of the lock services: of LockService or MetadataStore. */
export function lockServices<S extends DescService>(world: Pick<World, "clock" | "transport">, list: Address, service: S): Client<S> {
  const addresses = lockServiceAddresses(list);
  if (addresses.length === 1) return world.transport.client(list, service);
  const found = new Found(addresses);
  return Object.fromEntries(
    (service.methods as readonly DescMethodUnary[]).map(({ localName }) => {
      const at = (address: Address): Callable =>
        (world.transport.client(address, service) as Record<string, Callable>)[localName] as Callable;
      const idempotent = !notIdempotent.has(localName);
      return [localName, (request: object, options: CallOptions) => call(world, found, at, request, options, idempotent)];
    }),
  ) as Client<S>;
}

class Found {
  readonly #addresses: readonly Address[];
  /** When a process did not answer, by the monotonic clock. */
  readonly #silentSinceMs = new Map<Address, number>();
  current: Address;

  constructor(addresses: readonly Address[]) {
    this.#addresses = addresses;
    this.current = addresses[0] as Address;
  }

  get count(): number {
    return this.#addresses.length;
  }

  /** Longest time of one attempt of an idempotent call. A process that was silent just now may be back, or may still be away. */
  attemptMs(nowMs: number): number {
    return this.#isSilent(this.current, nowMs) ? silentAttemptMs : attemptMs;
  }

  /** Leaves a process that is not the active one, for the one that it names, or one that does not answer, for the next. */
  leave(address: Address, { reason, details, applied }: Failure, nowMs: number): void {
    if (applied === "unknown" || reason === "connectFailed") this.#silentSinceMs.set(address, nowMs);
    else this.#silentSinceMs.delete(address);
    if (this.current !== address) return;
    const named = reason === "notLeader" ? details?.leaderAddress : undefined;
    const at = this.#addresses.indexOf(address);
    const others = [...this.#addresses.slice(at + 1), ...this.#addresses.slice(0, at)];
    this.current =
      others.find((other) => other === named) ?? others.find((other) => !this.#isSilent(other, nowMs)) ?? (others[0] as Address);
  }

  #isSilent(address: Address, nowMs: number): boolean {
    return nowMs - (this.#silentSinceMs.get(address) ?? Number.NEGATIVE_INFINITY) < silentForMs;
  }
}

async function call(
  { clock }: Pick<World, "clock">,
  found: Found,
  at: (address: Address) => Callable,
  request: object,
  options: CallOptions,
  idempotent: boolean,
): Promise<Outcome<object>> {
  const deadlineMs = clock.monotonicMs() + options.timeoutMs;
  let last: Failed | undefined;
  let anyUnknown = false;
  for (let tries = 1; ; tries++) {
    const leftMs = deadlineMs - clock.monotonicMs();
    const address = found.current;
    const mostMs = idempotent ? found.attemptMs(clock.monotonicMs()) : leftMs;
    const answer = await at(address)(request, { ...options, timeoutMs: Math.max(Math.min(leftMs, mostMs), 1) });
    if (answer.ok || !isOfTheProcess(answer.failure)) return answer;
    last = answer;
    anyUnknown ||= answer.failure.applied === "unknown";
    found.leave(address, answer.failure, clock.monotonicMs());
    if (answer.failure.applied === "unknown" && !idempotent) return answer;
    const waitMs = tries % found.count === 0 ? pauseMs : 0;
    if (options.signal?.aborted === true || clock.monotonicMs() + waitMs >= deadlineMs) {
      return anyUnknown ? { ok: false, failure: { ...last.failure, applied: "unknown" } } : last;
    }
    if (waitMs > 0) await sleep(clock, waitMs, options.signal);
  }
}

/** True if another lock service, or the same one later, may answer differently. */
function isOfTheProcess({ code, reason }: Failure): boolean {
  if (reason === "notLeader" || reason === "connectFailed" || reason === "stopping" || reason === "notReady") return true;
  return code === "unavailable" || code === "deadlineExceeded" || code === "internal" || code === "unauthenticated";
}
