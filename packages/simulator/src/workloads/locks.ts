/**
 * Several callers of the lock service take, renew, release and look at leases of a few names of their own, and have renewals refused,
 * also of leases that ran out long ago, while faults come. They keep no clock of their own: what the lock service promises must hold
 * whatever they do (lock-judge.ts). In the end everything heals, and each name can be taken and renewed.
 */
import type { Outcome, Prng } from "@stamp/base";
import { lockServiceAddresses, lockServices } from "@stamp/metadata-store";
import type { Client } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { LeaseState } from "@stamp/wire";
import { fromWire, LockService, toWire } from "@stamp/wire";
import { simulatedStreamLayer } from "./cluster.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { Faults } from "./faults/faults.ts";
import { type Called, LockJudge } from "./judges/lock-judge.ts";
import type { Tally } from "./run/workload.ts";

const names = ["lock/a", "lock/b", "lock/c", "lock/d"];
const callerCount = 4;
const workMs = 60_000;
const readyWithinMs = 60_000;
const healedWithinMs = 30_000;
const timeoutMs = 1_000;
const termsMs = [300, 1_000, 4_000];
const watchEveryMs = 10;

export async function lockWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const cluster = simulatedStreamLayer(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the stream layer is ready");
  const started = { atMs: sim.nowMs };
  const judges = new Map(names.map((name) => [name, new LockJudge(name, () => started.atMs)]));
  const callers = Array.from({ length: callerCount }, (_, i) => new Caller(sim, tally, `caller-${i + 1}`, cluster.lockService, judges));
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 2, focus, withinMs: workMs });
  tally.faults = faults.counts;
  faults.start();
  const endMs = sim.nowMs + workMs;
  const watched = watchStarts(sim, cluster.lockService, started, () => sim.nowMs > endMs + 2 * healedWithinMs);
  await Promise.all(callers.map((caller) => caller.work(sim.prng.fork(), endMs)));
  await faults.heal();
  const [first] = callers;
  for (const name of names) await first?.takeAnyway(name, sim.nowMs + healedWithinMs);
  sim.background(watched);
}

/**
 * Watches until when no lock service, or another one, was last seen to serve: what one has extended at its start or take-over it extended by
 * then.
 */
async function watchStarts(sim: Simulation, lockService: string, started: { atMs: number }, over: () => boolean): Promise<void> {
  const names = lockServiceAddresses(lockService);
  // A process may be deposed and elected again between two looks: each turn has an instance of its own.
  const serving = (): string[] =>
    names
      .filter((name) => sim.role(name)?.status.state === "serving" && !sim.isPaused(name))
      .map((name) => `${name} ${sim.starts(name)} ${sim.role(name)?.status.facts.instance}`);
  let before = serving();
  while (!over()) {
    const now = serving();
    if (now.length === 0 || String(now) !== String(before)) started.atMs = sim.nowMs + watchEveryMs;
    before = now;
    await sim.sleep(watchEveryMs);
  }
}

class Caller {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #name: string;
  readonly #client: Client<typeof LockService>;
  readonly #judges: ReadonlyMap<string, LockJudge>;
  /** Keyed by lease: the last epoch that it was told of. */
  readonly #epochs = new Map<string, number>();

  constructor(sim: Simulation, tally: Tally, name: string, lockService: string, judges: ReadonlyMap<string, LockJudge>) {
    this.#sim = sim;
    this.#tally = tally;
    this.#name = name;
    this.#client = lockServices(sim.world(name), lockService, LockService);
    this.#judges = judges;
  }

  async work(prng: Prng, endMs: number): Promise<void> {
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(prng.float() * prng.pick([100, 400, 3_000]));
      const lease = prng.pick(names);
      const epoch = this.#epochs.get(lease);
      const dice = prng.below(100);
      if (epoch === undefined || dice < 25) await this.#acquire(lease, prng.pick(termsMs));
      else if (dice < 75) await this.#renew(lease, epoch);
      else if (dice < 80) await this.#end(lease, epoch);
      else if (dice < 88) await this.#shown(lease, "refuse", () => this.#client.refuseRenewals(reference(lease, epoch), { timeoutMs }));
      else await this.#shown(lease, "look", () => this.#client.getLease({ name: lease }, { timeoutMs }));
    }
  }

  /** Tries until it has it, and renews it. */
  async takeAnyway(lease: string, byMs: number): Promise<void> {
    for (;;) {
      const granted = await this.#acquire(lease, 5_000);
      if (granted !== undefined && (await this.#renew(lease, granted))) return;
      if (this.#sim.nowMs > byMs) throw new BrokenPromise(`lease ${lease} can't be had within ${healedWithinMs} ms after the last fault`);
      await this.#sim.sleep(100);
    }
  }

  async #acquire(lease: string, termMs: number): Promise<number | undefined> {
    const request = {
      name: lease,
      holder: this.#name,
      identity: `folder of ${this.#name}`,
      instance: `start of ${this.#name}`,
      incarnation: 1n,
      address: this.#name,
      termMs,
      stampId: "",
    };
    const { answer, called } = await this.#timed("acquire", () => this.#client.acquireLease(request, { timeoutMs }));
    if (!answer.ok) return undefined;
    const epoch = fromWire(answer.value.leaseEpoch);
    this.#judge(lease).granted(epoch, answer.value.termMs, called);
    this.#epochs.set(lease, epoch);
    return epoch;
  }

  async #renew(lease: string, epoch: number): Promise<boolean> {
    const { answer, called } = await this.#timed("renew", () => this.#client.renewLease(reference(lease, epoch), { timeoutMs }));
    if (answer.ok) this.#judge(lease).renewed(epoch, called);
    else if (answer.failure.applied === "unknown") this.#judge(lease).renewalUnanswered(epoch);
    return answer.ok;
  }

  async #end(lease: string, epoch: number): Promise<void> {
    this.#judge(lease).releaseCalled(epoch);
    await this.#shown(lease, "release", () => this.#client.releaseLease(reference(lease, epoch), { timeoutMs }));
  }

  async #shown(lease: string, what: string, call: () => Promise<Outcome<LeaseState>>): Promise<void> {
    const { answer, called } = await this.#timed(what, call);
    if (!answer.ok) return;
    const { leaseEpoch, ended, renewalsRefused } = answer.value;
    const epoch = fromWire(leaseEpoch);
    this.#judge(lease).shown({ epoch, ended, refused: renewalsRefused }, called);
    if (epoch > 0) this.#epochs.set(lease, epoch);
  }

  async #timed<T>(what: string, call: () => Promise<Outcome<T>>): Promise<{ readonly answer: Outcome<T>; readonly called: Called }> {
    const calledAt = this.#sim.nowMs;
    const answer = await call();
    const key = `${what} ${answer.ok ? "ok" : answer.failure.reason}`;
    this.#tally.counts[key] = (this.#tally.counts[key] ?? 0) + 1;
    return { answer, called: { calledAt, returnedAt: this.#sim.nowMs } };
  }

  #judge(lease: string): LockJudge {
    return this.#judges.get(lease) as LockJudge;
  }
}

const reference = (name: string, epoch: number) => ({ name, leaseEpoch: toWire(epoch) });
