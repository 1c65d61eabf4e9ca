/**
 * The lock service: leases with fencing epochs, and the metadata store, over one LevelDB, over etcd, or replicated in the folders of several
 * lock services. It is the root of the stamp: it waits for nobody but etcd, or the others of its kind. Over etcd several processes stand by for
 * one another (shared-store.ts); so do those that replicate the store (replicated-store.ts).
 *
 * An empty store is served only when it is told to create a stamp (`init`); a stamp never starts silently empty. While it can't serve it
 * refuses everything with `notReady` and says why.
 */
import type { Failed, FormatName, Outcome } from "@stamp/base";
import { ok, refused, unwrap } from "@stamp/base";
import { statusService } from "@stamp/metadata-store";
import type { Identity, Listener, Role, RoleStatus, World } from "@stamp/ports";
import { openIdentity, refuseNewer, served } from "@stamp/ports";
import { LockService, MetadataStore } from "@stamp/wire";
import type { LockServiceConfig } from "./config.ts";
import { refuseBesideMember } from "./consensus/member-folder.ts";
import { refuseHalfRestored } from "./metadata/restore.ts";
import { lockServiceMetrics } from "./metrics.ts";
import { DiskRoom } from "./room.ts";
import type { OpenStore } from "./server.ts";
import { lockServiceHandlers, metadataStoreHandlers } from "./server.ts";
import type { EtcdSecrets } from "./store/etcd-access.ts";
import { closeOpened, type OpenedStore, openedStore } from "./store/opened-store.ts";
import { ReplicatedStore } from "./store/replicated-store.ts";
import { SharedStore } from "./store/shared-store.ts";
import { LockStore, lockServiceFormats, metadataStoreName, refuseNewerRecords } from "./store/store.ts";

export class LockServiceRole implements Role {
  readonly metrics = lockServiceMetrics;
  readonly #world: World;
  readonly #config: LockServiceConfig;
  readonly #room: DiskRoom;
  #opened: OpenedStore | undefined;
  #why = "it has not started";
  /** True if the store is there, and is not what was acknowledged last. */
  #damaged = false;
  /** True if the folder's store exists and has no stamp. */
  #empty = false;
  /** The store of several lock services, of which one is active at a time; undefined: the store is this process's own. */
  #shared: SharedStore | ReplicatedStore | undefined;
  #identity: Identity | undefined;
  #listener: Listener | undefined;

  /** Throws FailureError if the settings for etcd, or the members, are not right. */
  constructor(world: World, config: LockServiceConfig, secrets: EtcdSecrets = {}) {
    this.#world = world;
    this.#config = config;
    this.#room = new DiskRoom(world, config.reserveBytes, config.roomLookEveryMs);
    if (config.metadataStore === "leveldb") return;
    const changed = (opened: OpenedStore | undefined, failure: Failed | undefined): void => {
      this.#opened = opened;
      if (failure !== undefined) this.#refuse(failure);
      else if (opened !== undefined) this.#damaged = false;
    };
    this.#shared =
      config.metadataStore === "etcd"
        ? new SharedStore(world, config, secrets, this.#room, () => this.address, changed)
        : new ReplicatedStore(world, config, this.#room, changed);
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  get status(): RoleStatus {
    const opened = this.#opened;
    if (opened === undefined) return this.#waiting;
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
      instance: opened.access.instance,
      lastTransaction: committer.lastVersion,
      waiting: committer.waitingCount,
      wrote: committer.wrote,
      ...this.#room.facts,
      keys: opened.store.count,
      keysMax: this.#config.keysMax,
      snapshot: opened.access.snapshots.facts,
      leases,
      ...this.#shared?.facts,
    };
    const trouble = this.#shared?.trouble;
    return { ready: true, waitingFor: trouble === undefined ? [] : [trouble], state: "serving", facts };
  }

  get #waiting(): RoleStatus {
    const active = this.#shared?.activeElsewhere;
    if (active !== undefined && !this.#damaged) {
      const behind = this.#shared?.behind;
      const facts = { active: active.address, ...this.#shared?.facts };
      return { ready: behind === undefined, waitingFor: behind === undefined ? [] : [behind], state: "standby", facts };
    }
    const why = (this.#damaged ? undefined : this.#shared?.trouble) ?? this.#why;
    return {
      ready: false,
      waitingFor: [why],
      state: this.#damaged ? "damaged" : this.#empty || this.#isLost ? "empty" : "starting",
      facts: { ...this.#shared?.facts },
    };
  }

  get #isLost(): boolean {
    return this.#shared instanceof ReplicatedStore && this.#shared.isLost;
  }

  async start(): Promise<void> {
    unwrap(await refuseNewer(this.#world, (marked) => this.#look(marked)));
    this.#identity = await openIdentity(this.#world, { formats: this.#formats, kept: 0 });
    const restored = await refuseHalfRestored(this.#world);
    const beside = !restored.ok || this.#config.metadataStore === "replicated" ? restored : await refuseBesideMember(this.#world);
    // A store over etcd, or of this process alone, is not the one in this folder. One that a restore replaces is none.
    if (!beside.ok) this.#shared = undefined;
    if (this.#shared === undefined) {
      const opened = beside.ok ? await this.#open() : beside;
      if (opened.ok) this.#opened = opened.value;
      else this.#refuse(opened);
    }
    const access = (): Outcome<OpenStore> => {
      if (this.#opened !== undefined) return ok(this.#opened.access);
      return this.#shared === undefined || this.#damaged ? refused("unavailable", "notReady", this.#why) : this.#shared.refusal(this.#why);
    };
    const incarnation = this.#identity.incarnation;
    this.#listener = await this.#world.transport.serve(this.#config.listen, [
      served(LockService, lockServiceHandlers(access)),
      served(MetadataStore, metadataStoreHandlers(access)),
      ...(this.#shared?.services ?? []),
      statusService(
        this.#world,
        "lock-service",
        this.#config.name,
        () => this.status,
        () => ({ incarnation, level: this.#opened?.access.level.level ?? this.#shared?.level }),
      ),
    ]);
    if (this.#shared !== undefined) this.#why = "it has not been elected, or reads the metadata store";
    this.#shared?.start();
  }

  get #formats(): readonly FormatName[] {
    return this.#config.metadataStore === "replicated" ? [...lockServiceFormats, "consensus"] : lockServiceFormats;
  }

  #refuse({ failure }: Failed): void {
    const { code, reason, message } = failure;
    const { dataDir, metadataStore } = this.#config;
    this.#damaged = code === "dataLoss";
    this.#empty = metadataStore === "leveldb" && reason === "notReady";
    const places = { etcd: "in etcd", leveldb: `${dataDir}/stores/${metadataStoreName}`, replicated: `in ${dataDir}/stores` };
    const where = places[metadataStore];
    this.#why = this.#damaged ? notServed(where, message) : message;
    this.#world.logger.error("the metadata store is not served", { why: this.#why });
  }

  async stop(): Promise<void> {
    await this.#shared?.leave();
    await this.#listener?.close(0);
    await this.#shared?.stop();
    if (this.#opened !== undefined) await closeOpened(this.#opened);
    this.#opened = undefined;
    this.#why = "it was stopped";
    await this.#identity?.close();
  }

  /** Looks at the store. Without a marker it looks at every record; that opens LevelDB and puts nothing. */
  async #look(marked: boolean): Promise<Outcome<void>> {
    if (marked || this.#shared !== undefined) return ok();
    const kv = await this.#world.keyValue.open(metadataStoreName);
    if (kv.kind === "corrupt") return ok();
    try {
      return await refuseNewerRecords(kv.store, (bytes) => this.#world.digest.crc32c(bytes));
    } finally {
      await kv.store.close();
    }
  }

  async #open(): Promise<Outcome<OpenedStore>> {
    const found = await LockStore.open(this.#world);
    if (!found.ok) return found;
    return openedStore(this.#world, this.#config, found.value, {
      refusal: (writes) => this.#room.refusal(writes),
      giveRoom: () => this.#room.give(),
      broken: (why) => this.#world.fatal(why),
    });
  }
}

const notServed = (where: string, why: string): string =>
  `the metadata store ${where} is damaged: ${why}. Nothing is served until it is restored: stop the stamp, ` +
  "then `stamp metadata restore --replace FILE` with the newest copy on the extent nodes, which `stamp health` names (docs/guides/metadata.md)";
