/**
 * Calls to whoever leads: the holder of a leader lease. The leader's address is cached and looked up again when a call shows that it is
 * somebody else by now. Retries are jittered and end with the caller's deadline.
 */
import type { Failed, Failure, Outcome } from "@stamp/base";
import { refused } from "@stamp/base";
import type { Address, Client, World } from "@stamp/ports";
import { jittered, sleep } from "@stamp/ports";
import { LockService } from "@stamp/wire";

export interface LeaderCallsOptions {
  readonly lockService: Address;
  readonly leaseName: string;
}

export interface LeaderCallOptions {
  /** The call may be repeated after an unknown outcome. */
  readonly idempotent?: boolean;
  /** Longest time one attempt of an idempotent call may take before the leader is looked up again. */
  readonly attemptTimeoutMs?: number;
}

const backoffStartMs = 10;
const backoffMaxMs = 250;
const lookupTimeoutMs = 1_000;

export class LeaderCalls {
  readonly #world: World;
  readonly #leaseName: string;
  readonly #lockService: Client<typeof LockService>;
  #leader: Address | undefined;
  #lookup: Promise<Outcome<Address>> | undefined;

  constructor(world: World, options: LeaderCallsOptions) {
    this.#world = world;
    this.#leaseName = options.leaseName;
    this.#lockService = world.transport.client(options.lockService, LockService);
  }

  /** The leader as far as known; undefined before the first call and after a failure. */
  get leader(): Address | undefined {
    return this.#leader;
  }

  async call<T>(
    timeoutMs: number,
    attempt: (address: Address, timeoutMs: number) => Promise<Outcome<T>>,
    options: LeaderCallOptions = {},
  ): Promise<Outcome<T>> {
    const { clock, random } = this.#world;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    let last: Failed | undefined;
    let backoffMs = backoffStartMs;
    let anyUnknown = false;
    for (;;) {
      const leader = await this.#find(deadlineMs);
      if (leader.ok) {
        const leftMs = deadlineMs - clock.monotonicMs();
        if (leftMs <= 0) return ended(last ?? late(this.#leaseName), anyUnknown);
        const attemptMs = options.idempotent ? Math.min(leftMs, options.attemptTimeoutMs ?? leftMs) : leftMs;
        const outcome = await attempt(leader.value, attemptMs);
        if (outcome.ok) return outcome;
        if (!elsewhere(outcome.failure, options.idempotent ?? false)) {
          if (outcome.failure.applied === "unknown") this.#forget(leader.value);
          return ended(outcome, anyUnknown);
        }
        this.#forget(leader.value);
        anyUnknown ||= outcome.failure.applied === "unknown";
        last = outcome;
      } else {
        last ??= leader;
      }
      const pauseMs = jittered(random, backoffMs);
      backoffMs = Math.min(backoffMs * 2, backoffMaxMs);
      if (clock.monotonicMs() + pauseMs >= deadlineMs) return ended(last, anyUnknown);
      await sleep(clock, pauseMs);
    }
  }

  #forget(leader: Address): void {
    if (this.#leader === leader) this.#leader = undefined;
  }

  async #find(deadlineMs: number): Promise<Outcome<Address>> {
    if (this.#leader !== undefined) return { ok: true, value: this.#leader };
    const leftMs = deadlineMs - this.#world.clock.monotonicMs();
    if (leftMs <= 0) return late(this.#leaseName);
    this.#lookup ??= this.#ask();
    return this.#lookup;
  }

  /** One question for all calls that wait. */
  async #ask(): Promise<Outcome<Address>> {
    const answer = await this.#lockService.getLease({ name: this.#leaseName }, { timeoutMs: lookupTimeoutMs });
    this.#lookup = undefined;
    if (!answer.ok) {
      return refused("unavailable", "notLeader", `the lock service was asked who leads ${this.#leaseName}: ${answer.failure.message}`);
    }
    const lease = answer.value;
    if (lease.leaseEpoch === 0n || lease.ended || lease.address === "") {
      return refused("unavailable", "notLeader", `nobody leads ${this.#leaseName} now`);
    }
    this.#leader = lease.address;
    return { ok: true, value: lease.address };
  }
}

/** Whether another leader, or the same one later, may answer differently. */
function elsewhere(failure: Failure, idempotent: boolean): boolean {
  if (failure.applied === "unknown") {
    return idempotent && (failure.code === "unavailable" || failure.code === "deadlineExceeded" || failure.code === "internal");
  }
  return (
    failure.reason === "notLeader" || failure.reason === "connectFailed" || failure.code === "unavailable" || failure.reason === "stopping"
  );
}

/** An earlier attempt may still have done it: then the last refusal does not say that it never happened. */
function ended(outcome: Failed, anyUnknown: boolean): Failed {
  return anyUnknown ? { ok: false, failure: { ...outcome.failure, applied: "unknown" } } : outcome;
}

const late = (leaseName: string): Failed => refused("deadlineExceeded", "timeout", `no time left to look for the leader of ${leaseName}`);
