/**
 * The lock service: leases with fencing epochs, and the metadata store, over one LevelDB. It is the root of the stamp: it knows nobody
 * and waits for nobody.
 *
 * An empty store is served only when it is told to create a stamp (`init`); a stamp never starts silently empty. While it can't serve it
 * refuses everything with `notReady` and says why.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused, unwrap } from "@stamp/base";
import { LeaseTable } from "@stamp/lease";
import { statusService } from "@stamp/metadata-store";
import type { Identity, Listener, Role, RoleStatus, World } from "@stamp/ports";
import { openIdentity, refuseNewer, served, uuid } from "@stamp/ports";
import { LockService, MetadataStore } from "@stamp/wire";
import { Committer } from "./committer.ts";
import type { LockServiceConfig } from "./config.ts";
import { lockServiceMetrics } from "./metrics.ts";
import { Room } from "./room.ts";
import type { OpenStore } from "./server.ts";
import { judgeInTurn, lockServiceHandlers, metadataStoreHandlers } from "./server.ts";
import { Snapshots } from "./snapshots.ts";
import { LockStore, lockServiceFormats, metadataStoreName, refuseNewerRecords } from "./store.ts";

interface Opened {
  readonly access: OpenStore;
  readonly store: LockStore;
  readonly leases: LeaseTable;
}

/** Names the restore before --init: after a lost disk, a new stamp would give up everything that the extent nodes hold. */
const emptyStoreText =
  "a stamp: the metadata store is empty. If a stamp was here, its disk is lost: stop the cluster and run `stamp metadata restore --replace FILE` " +
  "with the highest number in <data>/<extent node>/files/metadata-copies. Only for a new stamp: start once with --init";

export class LockServiceRole implements Role {
  readonly metrics = lockServiceMetrics;
  readonly #world: World;
  readonly #config: LockServiceConfig;
  readonly #room: Room;
  #opened: Opened | undefined;
  #why = "it has not started";
  /** The store is there, and is not what was acknowledged last. */
  #damaged = false;
  #identity: Identity | undefined;
  #listener: Listener | undefined;

  constructor(world: World, config: LockServiceConfig) {
    this.#world = world;
    this.#config = config;
    this.#room = new Room(world, config.reserveBytes);
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  get status(): RoleStatus {
    const opened = this.#opened;
    if (opened === undefined) return { ready: false, waitingFor: [this.#why], state: this.#damaged ? "damaged" : "starting", facts: {} };
    const { committer, stampId } = opened.access;
    const nowMs = this.#world.clock.monotonicMs();
    const leases = [];
    for (const name of opened.leases.names("")) {
      const view = opened.leases.peek(name, nowMs);
      if (view)
        leases.push({ name, holder: view.holder, address: view.address, epoch: view.epoch, ended: view.ended, refused: view.refused });
    }
    const facts = {
      stampId,
      lastTransaction: committer.lastVersion,
      waiting: committer.waitingCount,
      wrote: committer.wrote,
      ...this.#room.facts,
      keys: opened.store.count,
      keysMax: this.#config.keysMax,
      snapshot: opened.access.snapshots.facts,
      leases,
    };
    return { ready: true, waitingFor: [], state: "serving", facts };
  }

  async start(): Promise<void> {
    unwrap(await refuseNewer(this.#world, (marked) => this.#look(marked)));
    this.#identity = await openIdentity(this.#world, { formats: lockServiceFormats });
    const opened = await this.#open();
    if (opened.ok) this.#opened = opened.value;
    else {
      const { code, message } = opened.failure;
      this.#damaged = code === "dataLoss";
      this.#why = this.#damaged ? notServed(this.#config.dataDir, message) : message;
      this.#world.logger.error("the metadata store is not served", { why: this.#why });
    }
    const access = (): Outcome<OpenStore> =>
      this.#opened === undefined ? refused("unavailable", "notReady", this.#why) : ok(this.#opened.access);
    const incarnation = this.#identity.incarnation;
    this.#listener = await this.#world.transport.serve(this.#config.listen, [
      served(LockService, lockServiceHandlers(access)),
      served(MetadataStore, metadataStoreHandlers(access)),
      statusService(
        this.#world,
        "lock-service",
        this.#config.name,
        () => this.status,
        () => ({ incarnation }),
      ),
    ]);
  }

  async stop(): Promise<void> {
    await this.#listener?.close(0);
    await this.#opened?.access.committer.close();
    await this.#opened?.access.snapshots.close();
    await this.#opened?.store.close();
    this.#opened = undefined;
    this.#why = "it was stopped";
    await this.#identity?.close();
  }

  /** Without a marker every record is looked at. LevelDB opens for it, but nothing is put. */
  async #look(marked: boolean): Promise<Outcome<void>> {
    if (marked) return ok();
    const kv = await this.#world.keyValue.open(metadataStoreName);
    if (kv.kind === "corrupt") return ok();
    try {
      return await refuseNewerRecords(kv.store, (bytes) => this.#world.digest.crc32c(bytes));
    } finally {
      await kv.store.close();
    }
  }

  async #open(): Promise<Outcome<Opened>> {
    const { clock, logger, random, rules } = this.#world;
    const found = await LockStore.open(this.#world);
    if (!found.ok) return found;
    const store = found.value;
    const failed = async (failure: Outcome<never>): Promise<Outcome<never>> => {
      await store.close();
      return failure;
    };
    if (await store.empty()) {
      if (!this.#config.init) {
        return failed(refused("unavailable", "notReady", emptyStoreText));
      }
      const stampId = uuid(random);
      await store.initialise(stampId);
      logger.info("a new stamp was created", { stampId });
    }
    const stampId = await store.stampId();
    if (!stampId.ok) return failed(stampId);
    if (stampId.value === undefined) return failed(refused("dataLoss", "damaged", "the metadata store holds data but no stamp identity"));
    const lastVersion = await store.lastVersion();
    if (!lastVersion.ok) return failed(lastVersion);
    const records = await store.leases();
    if (!records.ok) return failed(records);
    const leases = new LeaseTable(records.value, clock.monotonicMs(), rules);
    const { waitingMax, groupMax } = this.#config;
    const committer = new Committer(this.#world, store, leases, {
      waitingMax,
      groupMax,
      lastVersion: lastVersion.value,
      refusal: () => this.#room.refusal(),
      giveRoom: () => this.#room.give(),
    });
    const access: OpenStore = {
      stampId: stampId.value,
      instance: uuid(random),
      committer,
      judge: (transaction, turn) => judgeInTurn(transaction, turn, rules),
      snapshots: new Snapshots(this.#world, store, stampId.value, this.#config.reserveBytes),
      keys: () => store.count,
      keysMax: this.#config.keysMax,
    };
    return ok({ access, store, leases });
  }
}

const notServed = (dataDir: string, why: string): string =>
  `the metadata store ${dataDir}/stores/${metadataStoreName} is damaged: ${why}. Nothing is served until it is restored: stop the stamp, ` +
  "then `stamp metadata restore --replace FILE` with the newest file of <extent node>/files/metadata-copies (docs/guides/metadata.md)";
