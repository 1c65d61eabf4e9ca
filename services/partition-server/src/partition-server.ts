/**
 * The partition server: serves range partitions under one lease. All state is in streams; what is in memory is a cache of it.
 *
 *   lease taken ── Load by the partition manager ──> ranges served ── lease lost ──> everything dropped ── lease taken ...
 */

import { featureLevel, neededLevels, ok } from "@stamp/base";
import { LeaseKeeper, LevelWatch, statusService } from "@stamp/metadata-store";
import { AccountSeals } from "@stamp/objects";
import type { Identity, Listener, Role, RoleStatus, World } from "@stamp/ports";
import { AnswerMemory, openIdentity, served } from "@stamp/ports";
import { PartitionServer } from "@stamp/wire";
import { Collector } from "./collector/collector.ts";
import { admissionOf, dataAdmissionOf, type PartitionServerConfig } from "./config.ts";
import { partitionServerMetrics } from "./metrics.ts";
import type { Engines } from "./operations/engine.ts";
import { Executor } from "./operations/execute.ts";
import { incarnationsAnywhere } from "./operations/incarnations.ts";
import { Holdings } from "./ranges/holdings.ts";
import { rangeEngines } from "./ranges/range-engine.ts";
import { VouchedCommands } from "./ranges/vouched-commands.ts";
import { Remover } from "./removal/remover.ts";
import { partitionServerHandlers } from "./server.ts";
import { HandleKey } from "./shipping/data/data-handles.ts";
import type { TransportToStamp } from "./shipping/geo-link.ts";
import { Reports } from "./shipping/reports.ts";
import { Shipments } from "./shipping/shipments.ts";
import { Shipper } from "./shipping/shipper.ts";
import { ShippingTotals, shippingFigures } from "./shipping/shipping-figures.ts";

/** Master keys of the process; they change while it runs. */
export interface MasterKeys {
  /** 32 bytes each, the one that seals first; another list after a change. None: nothing is sealed. */
  readonly keys: readonly Uint8Array[];
  /** Time at which the current key was made, in milliseconds since 1970; undefined if the key is in no file. */
  readonly madeMs: number | undefined;
  /** Reason why the files of the keys can't be used; empty if they can. */
  readonly problem: string;
}

const noMasterKeys: MasterKeys = { keys: [], madeMs: undefined, problem: "" };

export class PartitionServerRole implements Role {
  readonly metrics = partitionServerMetrics;
  readonly #shippingTotals = new ShippingTotals();
  readonly #world: World;
  readonly #config: PartitionServerConfig;
  readonly #engines: Engines;
  readonly #holdings: Holdings;
  readonly #executor: Executor;
  readonly #collector: Collector;
  readonly #shipper: Shipper;
  readonly #remover: Remover;
  readonly #seals: AccountSeals;
  readonly #masterKeys: MasterKeys;
  #collecting: Promise<void> = Promise.resolve();
  #shipping: Promise<void> = Promise.resolve();
  #removing: Promise<void> = Promise.resolve();
  readonly #stop = new AbortController();
  #identity: Identity | undefined;
  #listener: Listener | undefined;
  #lease: LeaseKeeper | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #level: LevelWatch;
  #leaseLost: () => void = () => {};

  /** `engines` is given by tests that need no streams. */
  constructor(
    world: World,
    config: PartitionServerConfig,
    engines: Engines = rangeEngines(world, config),
    masterKeys: MasterKeys = noMasterKeys,
    transportTo: TransportToStamp = () => ok(world.transport),
  ) {
    const level = new LevelWatch(world);
    this.#seals = new AccountSeals(
      world.digest,
      (length) => world.random.bytes(length),
      () => masterKeys.keys,
    );
    this.#masterKeys = masterKeys;
    this.#world = world;
    this.#level = level;
    this.#config = config;
    this.#engines = engines;
    this.#holdings = new Holdings(world, engines);
    this.#executor = new Executor(world, this.#holdings, {
      operationsMax: config.operationsMax,
      admission: admissionOf(config),
      dataAdmission: dataAdmissionOf(config),
      pinTermMs: config.pinTermMs,
      leaseHeld: () => this.#lease?.holds() ?? false,
      locate: (extentIds, timeoutMs) => engines.locate(extentIds, timeoutMs),
      seals: this.#seals,
      onAppended: (account, place, bytes) => this.#shipper.appended(account, place, bytes),
      mayWrite: (needed) => this.#mayWrite(needed),
    });
    this.#shipper = new Shipper(world, this.#holdings, {
      lockService: config.lockService,
      everyMs: config.geoRolesEveryMs,
      backlogBytesMax: config.geoBacklogBytesMax,
      seedBytesPerSecondMax: config.geoSeedBytesPerSecond,
      shipBytesPerSecondMax: config.geoShipBytesPerSecond || undefined,
      transportTo,
      // Until the level is heard, rows may be of the highest one: an earlier owner of a range has written them.
      level: () => level.level ?? featureLevel,
      totals: this.#shippingTotals,
    });
    this.#collector = this.#makeCollector();
    this.#remover = new Remover(world, this.#holdings, {
      everyMs: config.geoRolesEveryMs,
      rowsPerSecond: config.collectRowsPerSecond,
      requestMs: config.collectGoneMs,
      removed: () => this.#shipper.removed,
      lookedAt: ({ range, engine }, extentId, sinceMs) =>
        this.#collector.lookedAt(range.rangeId, engine?.facts.sequence ?? 0, extentId, sinceMs),
      mayRemove: () => level.allows(neededLevels.accountRemovals),
    });
  }

  #mayWrite(needed: number): boolean | undefined {
    return this.#level.allows(needed) || (this.#level.level === undefined ? undefined : false);
  }

  #makeCollector(): Collector {
    const config = this.#config;
    const ask = incarnationsAnywhere(this.#world, config);
    return new Collector(this.#world, this.#holdings, ask, {
      everyMs: config.collectEveryMs,
      goneMs: config.collectGoneMs,
      rowsPerSecond: config.collectRowsPerSecond,
      rewriteBelow: config.collectRewriteBelow,
      rewriteBytesPerSecond: config.collectRewriteBytesPerSecond,
      mayBeCopy: (account) => this.#shipper.mayBeCopy(account),
    });
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  get status(): RoleStatus {
    const held = this.#lease?.holds() ?? false;
    const facts = () => this.#facts();
    const waitingFor = held ? [] : [this.#lease?.waitingFor || `lease ps/${this.#config.name}`];
    return {
      ready: held,
      waitingFor,
      state: held ? "serving" : "starting",
      get facts() {
        return facts();
      },
    };
  }

  #facts(): RoleStatus["facts"] {
    const shipping = this.#shipper.facts;
    return {
      leaseEpoch: this.#lease?.holds() ? this.#lease.epoch : 0,
      masterKeys: this.#seals.ids,
      masterKeyMadeMs: this.#masterKeys.madeMs,
      masterKeyProblem: this.#masterKeys.problem,
      operations: this.#executor.active,
      took: this.#executor.took,
      admission: this.#executor.admission,
      dataAdmission: this.#executor.dataAdmission,
      storage: this.#engines.storage?.() ?? {},
      codedReads: this.#engines.hedges?.() ?? {},
      times: this.#engines.times ?? {},
      load: this.#holdings.figures,
      totals: this.#holdings.totals,
      reshapes: this.#holdings.reshapes,
      lastReshape: this.#holdings.lastReshape,
      collecting: this.#collector.facts,
      shipping,
      geo: shippingFigures(shipping, this.#shippingTotals, this.#world.clock.wallMs()),
      ranges: this.#holdings.all.map((one) => ({
        rangeId: one.range.rangeId,
        ownerEpoch: one.range.ownerEpoch,
        state: one.state,
        load: one.load.figures,
        totals: one.load.totals,
        ...one.engine?.facts,
      })),
    };
  }

  async start(): Promise<void> {
    this.#identity = await openIdentity(this.#world, { kept: 0 });
    const incarnation = this.#identity.incarnation;
    const shipments = new Shipments(this.#world, this.#holdings, this.#shippingTotals, new HandleKey(this.#world), {
      mayWrite: (needed) => this.#mayWrite(needed),
      roleOf: (account) => this.#shipper.roleOf(account),
    });
    const reports = new Reports(this.#world, this.#holdings, this.#executor);
    const commands = new VouchedCommands(this.#world, this.#config.lockService);
    this.#listener = await this.#world.transport.serve(this.#config.listen, [
      served(
        PartitionServer,
        partitionServerHandlers(
          this.#holdings,
          this.#executor,
          this.#collector,
          commands,
          shipments,
          this.#shipper,
          reports,
          this.#remover,
          new AnswerMemory(this.#world.clock),
        ),
      ),
      statusService(
        this.#world,
        "partition-server",
        this.#config.name,
        () => this.status,
        () => ({ incarnation, level: this.#level.level }),
      ),
    ]);
    const { lockService, name } = this.#config;
    await this.#level.start({ lockService, role: "partition-server", name, incarnation });
    this.#collecting = this.#collector.run(this.#stop.signal);
    this.#shipping = this.#shipper.run(this.#stop.signal);
    this.#removing = this.#remover.run(this.#stop.signal);
    this.#running = this.#keepLease(this.#identity);
  }

  /** Takes the lease, and again whenever it is lost; all ranges of the old one are dropped before. */
  async #keepLease(identity: Identity): Promise<void> {
    const { lockService, name, leaseTermMs, leaseMarginMs, leaseRenewEveryMs } = this.#config;
    const lease = new LeaseKeeper(this.#world, {
      lockService,
      leaseName: `ps/${name}`,
      holder: name,
      identity,
      address: this.address,
      termMs: leaseTermMs,
      marginMs: leaseMarginMs,
      renewEveryMs: leaseRenewEveryMs,
      onLost: () => {
        this.#holdings.leaseLost();
        this.#leaseLost();
      },
    });
    this.#lease = lease;
    const signal = this.#stop.signal;
    while (!signal.aborted) {
      const lost = new Promise<void>((resolve) => {
        this.#leaseLost = resolve;
      });
      const epoch = await lease.acquire(signal).catch((error: unknown) => this.#notAcquired(error));
      if (epoch === undefined) return;
      this.#holdings.leaseTaken(epoch);
      await lost;
    }
  }

  #notAcquired(error: unknown): undefined {
    if (!this.#stop.signal.aborted) this.#world.fatal(`its lease can't be taken: ${String(error)}`);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#leaseLost();
    await this.#shipping;
    await this.#removing;
    await this.#listener?.close(1_000);
    await this.#holdings.closeAll();
    await this.#lease?.release();
    await this.#running;
    await this.#level.stop();
    await this.#collecting;
    await this.#identity?.close();
  }
}
