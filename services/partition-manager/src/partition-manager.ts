/**
 * The partition manager: says which server serves which range. One leads, by lease; others stand by. Traffic does not need it: front-ends
 * keep their copy of the map, servers their leases.
 */
import { type Outcome, ok } from "@stamp/base";
import { LeaseKeeper, LevelWatch, MetadataClient, refusedByStandby, StoreAge, statusService } from "@stamp/metadata-store";
import type { Identity, Listener, Role, RoleStatus, World } from "@stamp/ports";
import { jittered, jitteredPause, openIdentity, served, sleep } from "@stamp/ports";
import { Accounts, PartitionManager } from "@stamp/wire";
import { accountsHandlers } from "./accounts/accounts.ts";
import type { PartitionManagerConfig } from "./config.ts";
import type { OpenTable } from "./map/map-table.ts";
import { tableOpener } from "./map/range-table.ts";
import { partitionManagerMetrics } from "./metrics.ts";
import type { StreamLayer } from "./reshape/reshaper.ts";
import { streamLayer } from "./reshape/stream-layer.ts";
import { partitionManagerHandlers } from "./server.ts";
import { Term } from "./term/term.ts";

const pauseAfterTermMs = 200;
/** Time between two looks at whether the metadata store went back, in milliseconds. */
const ageEveryMs = 1_000;
const ageTimeoutMs = 2_000;

export class PartitionManagerRole implements Role {
  readonly metrics = partitionManagerMetrics;
  readonly #world: World;
  readonly #config: PartitionManagerConfig;
  readonly #openTable: OpenTable;
  readonly #stop = new AbortController();
  #identity: Identity | undefined;
  #listener: Listener | undefined;
  #lease: LeaseKeeper | undefined;
  #age: StoreAge | undefined;
  #term: Term | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #level: LevelWatch;

  readonly #streams: StreamLayer;

  /** `openTable` and `streams` are for tests that need no streams. */
  constructor(
    world: World,
    config: PartitionManagerConfig,
    openTable: OpenTable = tableOpener(world, config),
    streams: StreamLayer = streamLayer(world, config),
  ) {
    this.#streams = streams;
    this.#world = world;
    this.#level = new LevelWatch(world);
    this.#config = config;
    this.#openTable = openTable;
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  get status(): RoleStatus {
    const damage = this.#age?.damage;
    if (damage !== undefined) return { ready: false, waitingFor: [damage], state: "damaged", facts: {} };
    const term = this.#term;
    if (!term) return this.#withoutTerm();
    const waitingFor = term.waitingFor;
    const facts = () => this.#facts(term);
    return {
      ready: waitingFor.length === 0,
      waitingFor,
      state: "leader",
      get facts() {
        return facts();
      },
    };
  }

  #facts(term: Term): RoleStatus["facts"] {
    const map = term.map?.current;
    return {
      pmTerm: term.pmTerm,
      mapVersion: map?.version ?? 0,
      rebalanced: term.balancer?.counts,
      assignments: term.assigner?.counts,
      reshapes: term.reshaper?.counts,
      unserved: term.unserved,
      serversAway: term.serversAway,
      ranges: (map?.ranges ?? []).map((range) => ({
        rangeId: range.rangeId,
        table: range.table,
        server: range.server,
        ownerEpoch: range.ownerEpoch,
        state: term.assigner?.progressOf(range.rangeId),
      })),
    };
  }

  #withoutTerm(): RoleStatus {
    const waiting = this.#lease?.waitingFor ?? "";
    const standby = this.#lease?.standsBy ?? false;
    return {
      ready: standby,
      waitingFor: standby ? [] : [waiting === "" ? "lease partition-manager" : waiting],
      state: standby ? "standby" : "starting",
      facts: {},
    };
  }

  async start(): Promise<void> {
    this.#identity = await openIdentity(this.#world, { kept: 0 });
    const incarnation = this.#identity.incarnation;
    this.#listener = await this.#world.transport.serve(this.#config.listen, [
      served(
        PartitionManager,
        partitionManagerHandlers(this.#world.clock, () => this.#leading()),
      ),
      served(
        Accounts,
        accountsHandlers(
          this.#world,
          () => this.#leading(),
          () => this.#level.level,
        ),
      ),
      statusService(
        this.#world,
        "partition-manager",
        this.#config.name,
        () => this.status,
        () => ({ incarnation, level: this.#level.level }),
      ),
    ]);
    const { lockService, name } = this.#config;
    await this.#level.start({ lockService, role: "partition-manager", name, incarnation });
    this.#running = this.#lead(this.#identity);
  }

  /** Returns the term, when this process may answer for the map. A map that is out of date does no harm: servers check every request. */
  #leading(): Outcome<Term> {
    if (this.#term && this.#lease?.holds()) return ok(this.#term);
    return refusedByStandby("partition manager", this.#lease?.heldBy);
  }

  async #lead(identity: Identity): Promise<void> {
    const { lockService, name, leaseTermMs, leaseMarginMs, leaseRenewEveryMs, heldQuestionMs } = this.#config;
    const lease = new LeaseKeeper(this.#world, {
      lockService,
      leaseName: "partition-manager",
      holder: name,
      identity,
      address: this.address,
      termMs: leaseTermMs,
      marginMs: leaseMarginMs,
      renewEveryMs: leaseRenewEveryMs,
      heldQuestionMs,
      onLost: (why) => this.#term?.end(why),
    });
    this.#lease = lease;
    const store = new MetadataClient(this.#world, lockService, identity);
    const signal = this.#stop.signal;
    const age = new StoreAge(this.#world, lockService, ageTimeoutMs, () => lease.stampId);
    this.#age = age;
    const watching = this.#watchAge(age);
    while (!signal.aborted) {
      // A store that is refused gives no terms and no epochs.
      if (age.damage !== undefined) {
        await jitteredPause(this.#world, ageEveryMs, signal);
        continue;
      }
      const pmTerm = await lease.acquire(signal).catch((error: unknown) => this.#notAcquired(error));
      if (pmTerm === undefined) break;
      // Where the lock service holds questions, a term begins at the moment when the lease is free: before the store was looked at again.
      if (heldQuestionMs > 0) await age.look();
      const term = new Term(this.#world, this.#config, { store, openTable: this.#openTable, streams: this.#streams }, pmTerm);
      this.#term = term;
      if (!lease.holds()) term.end("the lease was lost at once");
      if (age.damage !== undefined) term.end(age.damage);
      await term.run();
      lease.heard(term.above);
      this.#term = undefined;
      await lease.release();
      await sleep(this.#world.clock, jittered(this.#world.random, pauseAfterTermMs), signal);
    }
    await watching;
  }

  /** Leads or stands by: a term ends when the store went back under it. */
  async #watchAge(age: StoreAge): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await jitteredPause(this.#world, ageEveryMs, signal);
      if (signal.aborted) return;
      const looked = await age.look();
      if (!looked.ok && looked.failure.reason === "damaged") this.#term?.end(looked.failure.message);
    }
  }

  #notAcquired(error: unknown): undefined {
    if (!this.#stop.signal.aborted) this.#world.fatal(`its lease can't be taken: ${String(error)}`);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#term?.end("this process stops");
    await this.#running;
    await this.#level.stop();
    await this.#listener?.close(1_000);
    await this.#identity?.close();
  }
}
