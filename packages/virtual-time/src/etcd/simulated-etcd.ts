/**
 * A simulated etcd as one process at one address: a cluster that always has a quorum, but changes its leader, loses answers after it has
 * committed, applies late, and says "unknown" of both. Its state survives every crash of the process, as a quorum's does.
 */
import type { Prng } from "@stamp/base";
import { equalBytes, FailureError, type Outcome, ok, unknownOutcome } from "@stamp/base";
import { type Listener, type Role, type RoleStatus, servedOpenly, sleep, type World } from "@stamp/ports";
import { etcd } from "@stamp/wire";
import type { EtcdState } from "./etcd-state.ts";

export interface EtcdHabits {
  /** Chance that the answer of a committed transaction is lost. */
  readonly answerLost: number;
  /** Chance that a transaction is applied late, often after its caller gave up. */
  readonly applyLate: number;
  /** Chance, for each half second, that the leader changes. */
  readonly leaderChange: number;
}

export const calmEtcd: EtcdHabits = { answerLost: 0, applyLate: 0, leaderChange: 0 };

const tickMs = 100;
const leaderLookEveryMs = 500;
const electionMaxMs = 1_500;
const lateMaxMs = 4_000;

export class SimulatedEtcd implements Role {
  readonly state: EtcdState;
  readonly #world: World;
  readonly #listen: string;
  readonly #habits: () => EtcdHabits;
  readonly #prng: Prng;
  #listener: Listener | undefined;
  #leaderlessUntilMs = 0;
  #stopped = false;

  constructor(
    world: World,
    options: { readonly listen: string; readonly state: EtcdState; readonly prng: Prng; readonly habits?: () => EtcdHabits },
  ) {
    this.#world = world;
    this.#listen = options.listen;
    this.state = options.state;
    this.#prng = options.prng;
    this.#habits = options.habits ?? (() => calmEtcd);
  }

  get address(): string {
    return this.#listen;
  }

  get status(): RoleStatus {
    return { ready: this.#listener !== undefined, waitingFor: [], state: "serving", facts: {} };
  }

  async start(): Promise<void> {
    this.state.extendLeases(this.#world.clock.monotonicMs());
    this.#listener = await this.#world.transport.serve(this.#listen, this.#services());
    void this.#tick();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#listener?.close(0);
  }

  #services() {
    const { state } = this;
    const nowMs = (): number => this.#world.clock.monotonicMs();
    return [
      servedOpenly(etcd.KV, {
        range: async (request) => this.#led() ?? state.range(request),
        txn: async (request) => {
          const wellFormed = state.check(request);
          if (!wellFormed.ok) return wellFormed;
          const refusal = this.#led();
          if (refusal !== undefined) return refusal;
          const { answerLost, applyLate } = this.#habits();
          if (this.#prng.chance(applyLate)) await sleep(this.#world.clock, this.#prng.float() ** 2 * lateMaxMs);
          const applied = state.apply(request);
          if (this.#prng.chance(answerLost)) return unknownOutcome("unavailable", "connectionLost", "etcdserver: request timed out");
          return applied;
        },
        compact: async ({ revision }) => {
          const done = this.#led() ?? state.compact(revision);
          return done.ok ? ok({ header: state.header }) : done;
        },
      }),
      servedOpenly(etcd.Lease, {
        leaseGrant: async ({ ttl }) => this.#led() ?? ok({ id: state.grant(ttl, nowMs()), ttl, header: state.header }),
        leaseRevoke: async ({ id }) => {
          const refusal = this.#led();
          if (refusal !== undefined) return refusal;
          state.revoke(id);
          return ok({ header: state.header });
        },
        leaseKeepAlive: (requests) => this.#keepAlive(requests),
      }),
      servedOpenly(etcd.Watch, { watch: (requests, { signal }) => this.#watch(requests, signal) }),
      servedOpenly(etcd.Maintenance, { status: async () => ok({ header: state.header, version: "3.4.0", leader: 1n }) }),
    ];
  }

  async *#keepAlive(requests: AsyncIterable<etcd.LeaseKeepAliveRequest>) {
    for await (const { id } of requests) {
      const refusal = this.#led();
      if (refusal !== undefined && !refusal.ok) throw new FailureError(refusal.failure);
      yield { id, ttl: this.state.keepAlive(id, this.#world.clock.monotonicMs()), header: this.state.header };
    }
  }

  async *#watch(requests: AsyncIterable<etcd.WatchRequest>, signal: AbortSignal) {
    const events: object[] = [];
    let wake = (): void => {};
    for await (const { requestUnion } of requests) {
      if (requestUnion.case !== "createRequest") continue;
      const { key, startRevision } = requestUnion.value;
      yield { created: true, header: this.state.header };
      if (startRevision > 0n && startRevision < this.state.compacted) {
        yield { canceled: true, compactRevision: this.state.compacted, header: this.state.header };
        return;
      }
      const stop = this.state.watch(startRevision, ({ key: changed, deleted, revision }) => {
        if (!equalBytes(changed, key)) return;
        events.push({ type: deleted ? etcd.Event_EventType.DELETE : etcd.Event_EventType.PUT, kv: { key, modRevision: revision } });
        wake();
      });
      signal.addEventListener("abort", () => wake(), { once: true });
      try {
        while (!signal.aborted) {
          if (events.length > 0) yield { events: events.splice(0), header: this.state.header };
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        stop();
      }
    }
  }

  /** Returns the refusal while no member leads. Nothing was done, but etcd does not say so. */
  #led(): Outcome<never> | undefined {
    if (this.#world.clock.monotonicMs() >= this.#leaderlessUntilMs) return undefined;
    return unknownOutcome("unavailable", "connectionLost", "etcdserver: leader changed");
  }

  async #tick(): Promise<void> {
    const { clock } = this.#world;
    for (let ticks = 0; !this.#stopped; ticks++) {
      await sleep(clock, tickMs);
      const nowMs = clock.monotonicMs();
      if (nowMs < this.#leaderlessUntilMs) continue;
      if ((ticks * tickMs) % leaderLookEveryMs === 0 && this.#prng.chance(this.#habits().leaderChange)) {
        this.#leaderlessUntilMs = nowMs + this.#prng.float() * electionMaxMs;
        this.state.extendLeases(this.#leaderlessUntilMs);
      }
      this.state.expire(nowMs);
    }
  }
}
