/**
 * Calls to whoever leads: the holder of a leader lease. The leader's address is cached and looked up again when a call shows that it is
 * somebody else by now. An idempotent call that gets no answer does not wait for its deadline when somebody else leads meanwhile: a
 * leader that stands still is left as soon as its lease has a new holder. Retries are jittered and end with the caller's deadline.
 *
 * A lease names the address of its holder until the next one takes it. After a restart with other ports, a process of another role or of
 * another stamp may answer at that address. It does not serve the method, or takes its caller for a stranger. Such a refusal says nothing
 * about the leader, so the leader is looked up again.
 */
import type { Failed, Failure, Outcome } from "@stamp/base";
import { JoinedWork, refused, unknownOutcome } from "@stamp/base";
import type { Address, Client, World } from "@stamp/ports";
import { jittered, sleep, within } from "@stamp/ports";
import { LockService } from "@stamp/wire";
import { heldQuestionMs, lockServices } from "./lock-services.ts";

export interface LeaderCallsOptions {
  readonly lockService: Address;
  readonly leaseName: string;
}

export interface LeaderCallOptions {
  /** True if the call may be repeated after an unknown outcome. */
  readonly idempotent?: boolean;
  /** Longest time one attempt of an idempotent call may take before the leader is looked up again. */
  readonly attemptTimeoutMs?: number;
  /**
   * The leader holds the question until there is news, and the lock service may hold the question who leads for so long, in ms. Undefined or 0: the
   * lock service is asked every 250 ms while the leader does not answer.
   */
  readonly heldQuestionMs?: number;
  /** True if the caller has another way if the leader does not serve the method: `unknownMethod` is the answer, and is not asked for again. */
  readonly mayLackMethod?: boolean;
}

const backoffStartMs = 10;
const backoffMaxMs = 250;
const lookupTimeoutMs = 1_000;
/** Time without an answer after which others are asked who leads, in milliseconds. */
const doubtAfterMs = 250;

export class LeaderCalls {
  readonly #world: Pick<World, "clock" | "random" | "transport">;
  readonly #leaseName: string;
  readonly #lockServices: Address;
  readonly #lockService: Client<typeof LockService>;
  #leader: Address | undefined;
  /** Epoch of the lease under which `#leader` was found. */
  #epoch = 0n;
  readonly #lookups = new JoinedWork<"leader", Outcome<Address>>();
  #doubt: Promise<Outcome<Address>> | undefined;

  constructor(world: Pick<World, "clock" | "random" | "transport">, options: LeaderCallsOptions) {
    this.#world = world;
    this.#leaseName = options.leaseName;
    this.#lockServices = options.lockService;
    this.#lockService = lockServices(world, options.lockService, LockService);
  }

  /** The leader as far as known; undefined before the first call and after a failure. */
  get leader(): Address | undefined {
    return this.#leader;
  }

  /** Makes the next call look up the leader: the last answer looks like one of a former leader. */
  lookAgain(): void {
    this.#leader = undefined;
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
        const made = attempt(leader.value, attemptMs);
        const outcome = await (options.idempotent ? this.#whileItLeads(leader.value, made, options.heldQuestionMs) : made);
        if (outcome.ok) return outcome;
        const { failure } = outcome;
        const again = elsewhere(failure, options);
        if (again || failure.applied === "unknown" || failure.reason === "unknownMethod") this.#forget(leader.value);
        if (!again) return ended(outcome, anyUnknown);
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
    return this.#lookups.run("leader", () => this.#ask());
  }

  /** Returns the answer, or an unknown outcome when somebody else leads by now. */
  async #whileItLeads<T>(leader: Address, made: Promise<Outcome<T>>, wantedMs?: number): Promise<Outcome<T>> {
    const heldMs = heldQuestionMs(this.#lockServices, wantedMs);
    const over = new AbortController();
    if (heldMs > 0) void made.finally(() => over.abort()).catch(() => {});
    for (;;) {
      const answer = await within(this.#world.clock, doubtAfterMs, made);
      if (answer !== undefined) return answer;
      this.#doubt ??= this.#holder(heldMs, over.signal).finally(() => {
        this.#doubt = undefined;
      });
      const holder = await within(this.#world.clock, lookupTimeoutMs + heldMs, Promise.race([this.#doubt, made.then(() => undefined)]));
      if (holder?.ok && holder.value !== leader) {
        return unknownOutcome("unavailable", "notLeader", `${holder.value} leads ${this.#leaseName} by now, ${leader} does not answer`);
      }
    }
  }

  /** Asks one question for all calls that wait. */
  async #ask(): Promise<Outcome<Address>> {
    const holder = await this.#holder();
    if (holder.ok) this.#leader = holder.value;
    return holder;
  }

  /** `heldMs`: how long the lock service may wait for a lease of another epoch than the one that is known. */
  async #holder(heldMs = 0, signal?: AbortSignal): Promise<Outcome<Address>> {
    const request = { name: this.#leaseName, ...(heldMs > 0 ? { knownEpoch: this.#epoch, waitMs: heldMs } : {}) };
    const options = { timeoutMs: lookupTimeoutMs + heldMs, ...(signal === undefined ? {} : { signal }) };
    const answer = await this.#lockService.getLease(request, options);
    if (!answer.ok) {
      return refused("unavailable", "notLeader", `the lock service was asked who leads ${this.#leaseName}: ${answer.failure.message}`);
    }
    const lease = answer.value;
    if (lease.leaseEpoch === 0n || lease.ended || lease.address === "") {
      return refused("unavailable", "notLeader", `nobody leads ${this.#leaseName} now`);
    }
    this.#epoch = lease.leaseEpoch;
    return { ok: true, value: lease.address };
  }
}

/** True if another leader, or the same one later, may answer differently. */
function elsewhere({ applied, code, reason }: Failure, { idempotent = false, mayLackMethod = false }: LeaderCallOptions): boolean {
  if (applied === "unknown") return idempotent && (code === "unavailable" || code === "deadlineExceeded" || code === "internal");
  switch (reason) {
    case "notLeader":
    case "connectFailed":
    case "stopping":
      return true;
    // A process of another role answers so.
    case "unknownMethod":
      return !mayLackMethod;
    default:
      // A process of another stamp refuses its caller as unauthenticated.
      return code === "unavailable" || code === "unauthenticated";
  }
}

/** Returns the last failure; unknown if an earlier attempt may have succeeded. */
function ended(outcome: Failed, anyUnknown: boolean): Failed {
  return anyUnknown ? { ok: false, failure: { ...outcome.failure, applied: "unknown" } } : outcome;
}

const late = (leaseName: string): Failed => refused("deadlineExceeded", "timeout", `no time left to look for the leader of ${leaseName}`);
