/**
 * The lock service's turn as the active one over etcd (decision 0520): it is elected, opens the store, serves until it is deposed, and stands
 * by again.
 *
 * Invariants (model/lock-services.pml):
 *   - The store is read, and terms are counted, after the election.
 *   - A deposed process answers nothing more as the active one: each group is confirmed by etcd before it is answered.
 */
import { type Failed, FailureError, type Outcome, refused } from "@stamp/base";
import { Election, type EtcdFacts, EtcdKeyValue, keepCompact, MemberLooks, type Session } from "@stamp/etcd";
import { refusedByStandby } from "@stamp/metadata-store";
import { type Address, DiskError, type ServedService, type World } from "@stamp/ports";
import type { LockServiceConfig } from "../config.ts";
import type { DiskRoom } from "../room.ts";
import { type EtcdSecrets, etcdAccess } from "./etcd-access.ts";
import { type OpenedStore, openedStore, serveTurn } from "./opened-store.ts";
import { StandbyLevel } from "./standby-level.ts";
import { LockStore } from "./store.ts";

/** Time after which a full etcd is tried again, in milliseconds. */
const fullForMs = 1_000;

export class SharedStore {
  readonly #world: World;
  readonly #config: LockServiceConfig;
  readonly #room: DiskRoom;
  readonly #election: Election;
  readonly #level: StandbyLevel;
  readonly #trouble: () => string | undefined;
  readonly #tell: (opened: OpenedStore | undefined, failure: Failed | undefined) => void;
  readonly #stopping = new AbortController();
  #session: Session | undefined;
  #looks: MemberLooks | undefined;
  #running: Promise<void> | undefined;

  /** `tell` gets the store when it is served, undefined when it no longer is, and the reason if it can't be. */
  constructor(
    world: World,
    config: LockServiceConfig,
    secrets: EtcdSecrets,
    room: DiskRoom,
    address: () => Address,
    tell: (opened: OpenedStore | undefined, failure: Failed | undefined) => void,
  ) {
    const access = etcdAccess(world, config, secrets);
    if (!access.ok) throw new FailureError(access.failure);
    const { client, keys } = access.value;
    this.#world = world;
    this.#config = config;
    this.#room = room;
    this.#tell = tell;
    this.#trouble = () => client.trouble && `etcd (${client.trouble.message})`;
    this.#level = new StandbyLevel(world);
    const { watched } = this.#level;
    this.#election = new Election(client, { keys, name: config.name, address, ttlSeconds: config.etcdTtlSeconds, watched }, world.rules);
  }

  /** Last failure of etcd, for people; undefined if it answered. */
  get trouble(): string | undefined {
    return this.#trouble();
  }

  /** Members of etcd, as the active lock service sees them; undefined at a standby. */
  get facts(): { readonly etcd?: EtcdFacts | undefined } {
    return { etcd: this.#looks?.facts };
  }

  /** Undefined: a standby over etcd holds nothing of its own that could be behind. */
  get behind(): undefined {
    return undefined;
  }

  /** Services besides those that every lock service has. */
  get services(): readonly ServedService[] {
    return [];
  }

  /** Lock service that is active, if it is another process. */
  get activeElsewhere(): { readonly holder: string; readonly address: Address } | undefined {
    const { holder } = this.#election;
    return this.#session !== undefined || holder === undefined ? undefined : { holder: holder.name, address: holder.address };
  }

  /** Feature level of the stamp, as a standby knows it; 0: none. */
  get level(): number {
    return this.#level.level;
  }

  /** Returns the refusal of every call while this process is not the active one. */
  refusal(why: string): Outcome<never> {
    const active = this.activeElsewhere;
    if (active !== undefined) return refusedByStandby("lock service", active);
    return refused("unavailable", "notReady", this.trouble ?? why);
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Another lock service takes over when the session is resigned, in `stop`. */
  async leave(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#session?.end("it is stopping");
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#session = await this.#election.campaign(signal);
        // The stop came while the election was under way.
        if (signal.aborted) this.#session.end("it is stopping");
        await this.#serve(this.#session);
      } catch (error) {
        if (error instanceof FailureError || error instanceof DiskError) {
          if (!signal.aborted) this.#world.logger.warn("the turn as the active lock service ended", { why: error.message });
        } else throw error;
      } finally {
        this.#tell(undefined, undefined);
        await this.#session?.resign();
        this.#session = undefined;
      }
    }
  }

  async #serve(session: Session): Promise<void> {
    const { logger, rules } = this.#world;
    logger.info("elected as the active lock service", { revision: String(session.createRevision) });
    const etcd = new EtcdKeyValue(session, rules);
    await serveTurn(this.#world, {
      leadership: session,
      stopping: this.#stopping.signal,
      open: async () => {
        const store = await LockStore.openShared(this.#world, etcd);
        return store.ok ? openedStore(this.#world, this.#config, store.value, this.#roomOf(session, etcd), session.lastJudgedMs) : store;
      },
      tell: (opened, failure) => {
        if (opened !== undefined) this.#look(session);
        this.#tell(opened, failure);
      },
    });
  }

  /** Looks after etcd while this process is the active one. */
  #look(session: Session): void {
    if (this.#config.etcdCompactEveryMs > 0) void keepCompact(session, this.#config.etcdCompactEveryMs);
    this.#looks = new MemberLooks(session);
    void this.#looks.run();
    session.ended.addEventListener("abort", () => (this.#looks = undefined), { once: true });
  }

  #roomOf(session: Session, etcd: EtcdKeyValue) {
    const { clock } = this.#world;
    return {
      refusal: async (writes: boolean) => {
        const since = etcd.fullSinceMs;
        if (since !== undefined && clock.monotonicMs() - since < fullForMs) {
          return refused(
            "resourceExhausted",
            "diskFull",
            "etcd has no room: raise its quota, or compact and defragment it, and clear its alarm",
          );
        }
        return this.#room.refusal(writes);
      },
      giveRoom: async () => false,
      broken: (why: string) => session.end(why),
    };
  }
}
