/**
 * The stream manager: one leader by lease, others stand by and refuse with `notLeader`. When a term ends, for whatever reason, this
 * process gives the lease back and stands by again: the next term, here or elsewhere, loads everything from the metadata store.
 */
import { FailureError, ok } from "@stamp/base";
import { LeaseKeeper, LevelWatch, refusedByStandby, StoreAge, statusService } from "@stamp/metadata-store";
import type { Identity, Listener, Role, RoleStatus, World } from "@stamp/ports";
import { jittered, openIdentity, served, sleep } from "@stamp/ports";
import type { TakenBackRecord } from "@stamp/stream";
import { FeatureLevels, StreamManager } from "@stamp/wire";
import type { StreamManagerConfig } from "./config.ts";
import { featureLevelHandlers } from "./feature-level/level-server.ts";
import type { Serving } from "./leader.ts";
import { farTermsOf, Leader, waitsOf } from "./leader.ts";
import { streamManagerMetrics } from "./metrics.ts";
import { streamManagerHandlers } from "./server.ts";
import { leaseName } from "./term/ledger.ts";
import { StateCopy } from "./term/state-copy.ts";

const pauseBetweenTermsMs = 100;
/** While the store is refused. */
const lookAgainMs = 1_000;

export class StreamManagerRole implements Role {
  readonly metrics = streamManagerMetrics;
  readonly #world: World;
  readonly #config: StreamManagerConfig;
  readonly #stopping = new AbortController();
  #identity: Identity | undefined;
  #listener: Listener | undefined;
  #keeper: LeaseKeeper | undefined;
  #age: StoreAge | undefined;
  #leader: Leader | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #level: LevelWatch;

  constructor(world: World, config: StreamManagerConfig) {
    this.#level = new LevelWatch(world);
    this.#world = world;
    this.#config = config;
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  get status(): RoleStatus {
    const serving = this.#leader?.serving;
    if (serving !== undefined) return leading(serving);
    const damage = this.#age?.damage;
    if (damage !== undefined) return { ready: false, waitingFor: [damage], state: "damaged", facts: {} };
    if (this.#leader !== undefined) return { ready: false, waitingFor: [this.#leader.waitingFor], state: "loading", facts: {} };
    const waitingFor = this.#keeper?.waitingFor ?? "";
    const standby = this.#keeper?.standsBy ?? false;
    return {
      ready: standby,
      waitingFor: standby ? [] : [waitingFor === "" ? "its lease" : waitingFor],
      state: standby ? "standby" : "starting",
      facts: {},
    };
  }

  async start(): Promise<void> {
    const world = this.#world;
    const config = this.#config;
    this.#identity = await openIdentity(world, { kept: 0 });
    const identity = this.#identity;
    const { incarnation } = identity;
    this.#listener = await world.transport.serve(config.listen, [
      served(
        StreamManager,
        streamManagerHandlers(
          world.clock,
          () => this.#leader?.serving,
          () => refusedByStandby("stream manager", this.#keeper?.heldBy),
          (report) => this.#leader?.heard(report),
        ),
      ),
      served(
        FeatureLevels,
        featureLevelHandlers(() => {
          const serving = this.#leader?.serving;
          return serving === undefined ? refusedByStandby("stream manager", this.#keeper?.heldBy) : ok(serving.term.level);
        }),
      ),
      statusService(
        world,
        "stream-manager",
        config.name,
        () => this.status,
        () => ({ incarnation, level: this.#level.level }),
      ),
    ]);
    await this.#level.start({ lockService: config.lockService, role: "stream-manager", name: config.name, incarnation });
    this.#keeper = new LeaseKeeper(world, {
      lockService: config.lockService,
      leaseName,
      holder: config.name,
      identity,
      address: this.address,
      termMs: config.leaseTermMs,
      marginMs: config.leaseMarginMs,
      renewEveryMs: config.leaseRenewEveryMs,
      heldQuestionMs: config.heldQuestionMs,
      onLost: (why) => this.#leader?.end(why),
    });
    this.#running = this.#lead(this.#keeper);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#leader?.end("it was stopped");
    await this.#running;
    await this.#level.stop();
    await this.#listener?.close(0);
    await this.#identity?.close();
  }

  async #lead(keeper: LeaseKeeper): Promise<void> {
    const { clock, logger, random } = this.#world;
    const { lockService, metadataTimeoutMs } = this.#config;
    const age = new StoreAge(this.#world, lockService, metadataTimeoutMs, () => keeper.stampId);
    this.#age = age;
    const copy = new StateCopy(this.#world, lockService, metadataTimeoutMs, age);
    while (!this.#stopping.signal.aborted) {
      if (age.damage !== undefined) {
        await sleep(clock, jittered(random, lookAgainMs), this.#stopping.signal);
        await age.look();
        if (age.damage !== undefined) continue;
      }
      const standby = new AbortController();
      const following = copy.follow(standby.signal, this.#config.heldQuestionMs);
      try {
        const epoch = await keeper.acquire(this.#stopping.signal);
        standby.abort();
        this.#leader = new Leader(this.#world, this.#config, keeper, epoch, copy, age);
        await this.#leader.run();
      } catch (error) {
        if (!(error instanceof FailureError) || error.failure.reason !== "cancelled") {
          logger.error("the stream manager has a bug", { error: String(error) });
          this.#world.fatal(`stream manager: ${String(error)}`);
        }
      }
      this.#leader = undefined;
      standby.abort();
      await following;
      await keeper.release();
      await sleep(clock, jittered(random, pauseBetweenTermsMs), this.#stopping.signal);
    }
  }
}

function leading(serving: Serving): RoleStatus {
  const { ahead, allocator, chooser, coder, repairer, sealer, term } = serving;
  const { config, nodes, state } = term;
  const all = [...state.nodes()];
  const obeying = nodes.obeyingCount;
  const few = obeying < config.minCopies ? [`extent nodes: ${obeying} of at least ${config.minCopies} are up`, ...farTermsOf(term)] : [];
  return {
    ready: few.length === 0,
    waitingFor: few,
    state: "leader",
    facts: {
      term: term.number,
      featureLevel: term.level.level,
      streams: state.streamCount,
      extents: state.phaseCounts,
      nodesUp: nodes.upCount,
      nodesDown: all.filter((node) => node.duty !== "decommissioned" && !nodes.up(node.nodeId)).map((node) => node.nodeId),
      sealedWithLoss: state.lossyCount,
      underReplicated: repairer.underReplicated(),
      repair: repairer.figures(),
      sealsInProgress: sealer.inProgress,
      seals: sealer.took,
      allocations: allocator.took,
      replicasMadeAnew: repairer.repairedCount,
      coding: { ...coder.facts, ...chooser.facts },
      quarantined: nodes.quarantineSummary(),
      later: nodes.later.summary(),
      ...takenBackFacts(serving.takenBack),
      allocatedAhead: ahead.count,
      waits: waitsOf(serving),
    },
  };
}

/** Number of losses that the status shows with their reasons. */
const lostToldMax = 10;

const takenBackFacts = (record: TakenBackRecord | undefined) =>
  record === undefined
    ? { takenBack: { extents: 0, lostCount: 0 } }
    : { takenBack: { ...record, lost: record.lost.slice(0, lostToldMax) } };
