/**
 * Holds one lease: takes it, renews it, and says at any moment whether it is still held (`@stamp/lease` LeaseHolder decides).
 *
 * `onLost` runs once for every epoch that ends without `release`: when the lease may have run out, was refused or was ended. It runs in
 * a microtask of its own, `holds()` is false before it.
 */
import type { Failure, LeaseEpoch, Outcome } from "@stamp/base";
import { assert, FailureError, leaseEpoch, refused } from "@stamp/base";
import type { LeaseAttempt } from "@stamp/lease";
import { LeaseHolder } from "@stamp/lease";
import type { Address, Client, Identity, Timer, World } from "@stamp/ports";
import { atMost, jittered, sleep } from "@stamp/ports";
import type { LeaseGrant } from "@stamp/wire";
import { fromWire, LockService, toWire } from "@stamp/wire";
import { heldQuestionMs, lockServices } from "./lock-services.ts";

/**
 * A lease lasts `termMs - marginMs` from the sending of its last renewal, which is up to `renewEveryMs` old when the lock service dies. So a
 * lock service that is back within the term less both costs nobody a lease: 4.5 s. A renewal writes nothing.
 */
export const leaseDefaults = { termMs: 6_000, marginMs: 1_000, renewEveryMs: 500 } as const;

export interface LeaseKeeperOptions {
  readonly lockService: Address;
  readonly leaseName: string;
  /** Name of this process, unique inside the stamp. */
  readonly holder: string;
  /**
   * Identity from `openIdentity`: a higher incarnation ends the lease of a lower one at once. It is bound to the stamp
   * that it met first.
   */
  readonly identity: Pick<Identity, "id" | "incarnation" | "instance" | "stampId" | "bindStamp">;
  /** Address at which the holder is called. */
  readonly address: Address;
  readonly termMs?: number;
  readonly marginMs?: number;
  readonly renewEveryMs?: number;
  /** How long the lock service may hold a standby's question whether the lease has ended, in ms; 0 or undefined: it is asked every 250 ms. */
  readonly heldQuestionMs?: number;
  readonly onLost: (why: string) => void;
}

export interface LeaseHeldBy {
  readonly holder: string;
  /** Address at which the holder is called. */
  readonly address: Address;
}

const retryAcquireMs = 250;
/** Pause before a renewal is tried again, in ms, at least. */
const retryRenewMinMs = 100;
/** Longest wait for one answer, in ms, at least: a busy lock service that takes longer than the time between renewals is no dead one. */
const answerMinMs = 2_000;
const wrongStampRetryMs = 5_000;
const releaseTimeoutMs = 1_000;

export class LeaseKeeper {
  readonly #world: World;
  readonly #options: LeaseKeeperOptions;
  readonly #client: Client<typeof LockService>;
  readonly #holder: LeaseHolder;
  readonly #termMs: number;
  readonly #renewEveryMs: number;
  /** How long a standby's question whether the lease has ended is held, in ms; 0: not at all. */
  readonly #heldMs: number;
  /** Longest wait for the answer to one request. */
  readonly #answerMs: number;
  #epoch: LeaseEpoch = leaseEpoch(0);
  /** The highest epoch of this lease that somebody was said to obey. */
  #heard = 0;
  #acquiring = false;
  #renewTimer: Timer | undefined;
  #endTimer: Timer | undefined;
  #waitingFor = "";
  #heldBy: LeaseHeldBy | undefined;

  constructor(world: World, options: LeaseKeeperOptions) {
    this.#world = world;
    this.#options = options;
    this.#termMs = options.termMs ?? leaseDefaults.termMs;
    this.#renewEveryMs = options.renewEveryMs ?? leaseDefaults.renewEveryMs;
    this.#heldMs = heldQuestionMs(options.lockService, options.heldQuestionMs);
    this.#answerMs = Math.max(this.#renewEveryMs, answerMinMs);
    const marginMs = options.marginMs ?? leaseDefaults.marginMs;
    assert(this.#termMs > marginMs + this.#renewEveryMs, "a term is longer than the margin and the time between renewals");
    this.#client = lockServices(world, options.lockService, LockService);
    this.#holder = new LeaseHolder(marginMs, world.rules);
  }

  /** Stamp that the process belongs to; undefined before its first grant. */
  get stampId(): string | undefined {
    return this.#options.identity.stampId;
  }

  /** Epoch of the last grant; 0 before the first. */
  get epoch(): LeaseEpoch {
    return this.#epoch;
  }

  /** Returns why `acquire` has not come back yet, for people; empty when it has. */
  get waitingFor(): string {
    return this.#waitingFor;
  }

  /** True if the lock service said that another process holds the lease: this one is ready to take over. */
  get standsBy(): boolean {
    return this.#heldBy !== undefined;
  }

  /** The process that holds the lease, as the lock service said last; undefined unless this one stands by. */
  get heldBy(): LeaseHeldBy | undefined {
    return this.#heldBy;
  }

  /** Notes an epoch that somebody obeys: the next acquired one is above it, as far as the lock service allows. */
  heard(epoch: number): void {
    if (Number.isSafeInteger(epoch)) this.#heard = Math.max(this.#heard, epoch);
  }

  /** True while the lease is certainly held. Cheap: ask after every wait, before every answer that depends on it. */
  holds(): boolean {
    const held = this.#holder.holds(this.#world.clock.monotonicMs(), this.#world.clock.suspendedMs());
    if (!held && this.#holder.epoch !== undefined) this.#lose("it may have run out");
    return held;
  }

  /** Retries until granted; throws FailureError `cancelled` when the signal is aborted. */
  async acquire(signal?: AbortSignal): Promise<LeaseEpoch> {
    assert(!this.#acquiring, "one acquire at a time");
    assert(this.#holder.epoch === undefined || !this.holds(), "it is held already");
    this.#acquiring = true;
    try {
      for (;;) {
        if (signal?.aborted) throw cancelled(this.#options.leaseName);
        const attempt = this.#attempt();
        const { lockService, leaseName, holder, identity, address } = this.#options;
        const { id, incarnation, instance, stampId = "" } = identity;
        const process = { holder, identity: id, instance, incarnation: toWire(incarnation), address, stampId };
        const request = { name: leaseName, ...process, termMs: this.#termMs, above: toWire(this.#heard) };
        const answer = await this.#client.acquireLease(request, { timeoutMs: this.#answerMs });
        const met = stampMet(answer);
        if (met !== undefined) await identity.bindStamp(met);
        if (answer.ok && this.#take(attempt, answer.value)) {
          this.#waitingFor = "";
          this.#heldBy = undefined;
          if (!signal?.aborted) return this.#epoch;
          await this.release();
          throw cancelled(leaseName);
        }
        this.#heldBy = answer.ok ? undefined : holderOf(answer.failure);
        this.#waitingFor = answer.ok ? `lease ${leaseName}` : waitingText(leaseName, lockService, answer.failure);
        const pauseMs = answer.ok ? 0 : await this.#afterRefusal(answer.failure, signal);
        await sleep(this.#world.clock, jittered(this.#world.random, Math.max(pauseMs, 10)), signal);
      }
    } finally {
      this.#acquiring = false;
    }
  }

  /** Ends the lease now, so that a successor need not wait. `onLost` does not run. */
  async release(): Promise<void> {
    if (this.#holder.epoch === undefined) return;
    const epoch = this.#epoch;
    this.#stop();
    await this.#release(epoch);
  }

  #take(attempt: LeaseAttempt, grant: LeaseGrant): boolean {
    const { clock, logger } = this.#world;
    this.#epoch = leaseEpoch(fromWire(grant.leaseEpoch));
    this.#holder.granted(attempt, this.#epoch, grant.termMs, clock.monotonicMs());
    if (!this.#holder.holds(clock.monotonicMs(), clock.suspendedMs())) {
      // The answer took nearly the whole term. This epoch is of no use and the next attempt would wait for its end.
      this.#stop();
      void this.#release(this.#epoch);
      return false;
    }
    logger.info("lease taken", { lease: this.#options.leaseName, leaseEpoch: this.#epoch });
    this.#watchEnd();
    this.#renewInTurn(this.#renewEveryMs);
    return true;
  }

  /** Returns how long to wait before the next attempt. */
  async #afterRefusal({ reason, message, details }: Failure, signal?: AbortSignal): Promise<number> {
    if (reason === "wrongStamp") {
      this.#world.logger.error("the lock service is of another stamp", { message });
      return wrongStampRetryMs;
    }
    if (details?.instance === this.#options.identity.instance && details.leaseEpoch !== undefined) {
      // An earlier request of this process was granted and its answer lost: nothing was ever done under that epoch.
      return (await this.#release(leaseEpoch(Number(details.leaseEpoch)))) ? 0 : retryAcquireMs;
    }
    if (reason === "leaseHeld" && this.#heldMs > 0 && (await this.#untilNews(details?.leaseEpoch ?? "", signal))) return 0;
    const remainingMs = Number(details?.remainingMs ?? retryAcquireMs);
    return remainingMs > 0 ? Math.min(retryAcquireMs, remainingMs) : retryAcquireMs;
  }

  /**
   * Waits until the lease of the holder has ended or has another epoch. The wait itself takes no lease: a standby that is paused or dead in it
   * holds up nobody. Gives false if the lock service does not hold questions, or does not answer.
   */
  async #untilNews(epoch: string, signal?: AbortSignal): Promise<boolean> {
    const { clock } = this.#world;
    const request = { name: this.#options.leaseName, knownEpoch: BigInt(epoch === "" ? 0 : epoch), waitMs: this.#heldMs };
    const options = { timeoutMs: this.#heldMs + this.#answerMs, ...(signal === undefined ? {} : { signal }) };
    while (signal?.aborted !== true) {
      const askedMs = clock.monotonicMs();
      const answer = await this.#client.getLease(request, options);
      if (!answer.ok) return false;
      if (answer.value.ended || answer.value.leaseEpoch !== request.knownEpoch) return true;
      if (clock.monotonicMs() - askedMs < this.#heldMs / 2) return false;
    }
    return true;
  }

  async #renew(): Promise<void> {
    const epoch = this.#epoch;
    if (!this.holds()) return;
    const attempt = this.#attempt();
    const timeoutMs = Math.max(1, Math.min(this.#answerMs, this.#holder.deadlineMs - attempt.sentMonotonicMs));
    const answer = await this.#client.renewLease({ name: this.#options.leaseName, leaseEpoch: toWire(epoch) }, { timeoutMs });
    if (this.#holder.epoch !== epoch) return;
    const { clock, logger } = this.#world;
    if (answer.ok) {
      this.#holder.renewed(attempt, epoch, answer.value.termMs, clock.monotonicMs(), clock.suspendedMs());
      if (!this.holds()) return;
      this.#watchEnd();
      this.#renewInTurn(Math.max(1, this.#renewEveryMs - (clock.monotonicMs() - attempt.sentMonotonicMs)));
      return;
    }
    const { reason, message } = answer.failure;
    if (reason === "leaseEnded" || reason === "leaseRefused") {
      this.#lose(message);
      return;
    }
    logger.warn("lease renewal failed", { lease: this.#options.leaseName, reason, message });
    if (this.holds()) this.#renewLater(jittered(this.#world.random, Math.max(this.#renewEveryMs / 8, retryRenewMinMs)));
  }

  /** Renews at most `delayMs` from now. */
  #renewInTurn(delayMs: number): void {
    this.#renewTimer?.cancel();
    this.#renewTimer = atMost(this.#world.clock, delayMs, () => void this.#renew());
  }

  #renewLater(delayMs: number): void {
    this.#renewTimer?.cancel();
    this.#renewTimer = this.#world.clock.after(delayMs, () => void this.#renew());
  }

  #watchEnd(): void {
    this.#endTimer?.cancel();
    const leftMs = Math.max(0, this.#holder.deadlineMs - this.#world.clock.monotonicMs());
    this.#endTimer = this.#world.clock.after(leftMs, () => void this.holds());
  }

  #lose(why: string): void {
    const epoch = this.#epoch;
    this.#stop();
    this.#world.logger.warn("lease lost", { lease: this.#options.leaseName, leaseEpoch: epoch, why });
    void Promise.resolve().then(() => this.#options.onLost(`lease ${this.#options.leaseName} epoch ${epoch}: ${why}`));
  }

  #stop(): void {
    this.#renewTimer?.cancel();
    this.#endTimer?.cancel();
    this.#holder.end();
  }

  /** Releases the lease; false: it may still run. */
  async #release(epoch: LeaseEpoch): Promise<boolean> {
    const request = { name: this.#options.leaseName, leaseEpoch: toWire(epoch) };
    const answer = await this.#client.releaseLease(request, { timeoutMs: releaseTimeoutMs });
    if (!answer.ok) {
      this.#world.logger.warn("lease not released, it will run out", {
        lease: this.#options.leaseName,
        leaseEpoch: epoch,
        reason: answer.failure.reason,
      });
    }
    return answer.ok;
  }

  #attempt(): LeaseAttempt {
    return { sentMonotonicMs: this.#world.clock.monotonicMs(), sentSuspendedMs: this.#world.clock.suspendedMs() };
  }
}

/**
 * Returns the stamp of the lock service that answered: a process belongs to the stamp of its first grant, or of the
 * first lease that another held.
 */
function stampMet(answer: Outcome<LeaseGrant>): string | undefined {
  if (answer.ok) return answer.value.stampId;
  return answer.failure.reason === "leaseHeld" ? answer.failure.details?.stampId : undefined;
}

function waitingText(leaseName: string, lockService: Address, { reason, message, details }: Failure): string {
  if (reason === "leaseHeld")
    return `lease ${leaseName}, which ${details?.holder ?? "another process"} at ${details?.address ?? "?"} holds`;
  if (reason === "wrongStamp") return `the lock service of its own stamp (${message})`;
  return `lock-service at ${lockService} (${message})`;
}

const cancelled = (leaseName: string): FailureError =>
  new FailureError({ code: "cancelled", reason: "cancelled", message: `waiting for lease ${leaseName} was cancelled`, applied: "no" });

function holderOf({ reason, details }: Failure): LeaseHeldBy | undefined {
  return reason === "leaseHeld" ? { holder: details?.holder ?? "", address: details?.address ?? "" } : undefined;
}

/**
 * Refuses a call that only the holder of the lease answers. `role`: the process that was asked, for people, such as "stream manager". The message
 * and the details (`leader`, `leaderAddress`) name the holder if the lock service has named it.
 */
export function refusedByStandby(role: string, heldBy: LeaseHeldBy | undefined): Outcome<never> {
  if (heldBy === undefined || heldBy.holder === "") return refused("unavailable", "notLeader", `this ${role} does not lead`);
  const { holder, address } = heldBy;
  return refused("unavailable", "notLeader", `this ${role} does not lead: ask ${holder} at ${address}`, {
    leader: holder,
    leaderAddress: address,
  });
}
