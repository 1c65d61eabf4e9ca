/**
 * The lock service's turn as the active one of several that replicate the metadata store: its member is elected, the store is opened, it serves
 * until leadership is lost, and follows again.
 *
 * Invariants (docs/design/consensus.md):
 *   - The store is read, and terms are counted, when everything that was committed before the election is applied.
 *   - Each group is answered after a majority has it on disk, or after a quorum has confirmed the leader.
 *   - Members whose rows are of two lineages take nothing from one another (rule consensusSameLineage).
 *   - An empty member begins a stamp only if it was told to (`init`), or if it takes over the store that it had alone. It is the first of the
 *     members, has set no store aside, and every other member has answered that it is empty, too.
 *   - No new stamp is begun where a member has served metadata in etcd: that may be the stamp, and its deployment was changed.
 *   - Any other member with a store that it had alone answers nothing: its stamp must not be begun anew beside it.
 */
import { equalBytes, type Failed, FailureError, type Outcome, ok, refused, toHex, unwrap } from "@stamp/base";
import { refusedByStandby } from "@stamp/metadata-store";
import { type Address, DiskError, markPath, type ServedService, served, sleep, type World } from "@stamp/ports";
import { firstSnapshot, type MemberId, majorityOf, wideOf } from "@stamp/raft";
import { Consensus, type DeliverRequest } from "@stamp/wire";
import type { LockServiceConfig } from "../config.ts";
import type { Leading } from "../consensus/leading.ts";
import { Member, type MemberFacts, membersIn } from "../consensus/member.ts";
import { type LeadingMember, memberCommands } from "../consensus/member-commands.ts";
import { type Folder, openFolder, setStoreAside } from "../consensus/member-folder.ts";
import { Peers } from "../consensus/peers.ts";
import { lineageBytes } from "../consensus/records.ts";
import { ReplicatedKeyValue } from "../consensus/replicated-key-value.ts";
import { forgetOldStore, hasOldStore, takeOver } from "../consensus/take-over.ts";
import { messageFromWire } from "../consensus/wire-messages.ts";
import type { DiskRoom } from "../room.ts";
import { type OpenedStore, openedStore, serveTurn } from "./opened-store.ts";
import { StandbyLevel } from "./standby-level.ts";
import { etcdStoreName, LockStore, metadataStoreName } from "./store.ts";

/** Time between two looks at a folder, in milliseconds. */
const lookAgainMs = 1_000;
/** Time between two questions of a member that may begin a stamp: the others are being started, too. In milliseconds. */
const askAgainMs = 50;
const askAgainMaxMs = 1_000;
const storeOfOwnText =
  `its folder has a store that it had alone (stores/${metadataStoreName}). If that is the metadata of this stamp, name this lock service first in ` +
  "`members`, on each of them; if not, move that store and its mark, files/metadata-mark, away";
const servedEtcdText = (names: readonly MemberId[]): string =>
  `${names.join(", ")} served metadata in etcd before, and no new stamp is begun beside them: set metadataStore to etcd as it was ` +
  "(STAMP_METADATA_STORE, STAMP_ETCD_ENDPOINTS), or move them (docs/guides/etcd.md)";
const emptyText =
  "the other lock services: this one holds nothing yet, and takes everything from them (a new one: when it was added, stamp lock-service add)";
/** Text of a member that was not told to begin a stamp: the stamp may have been here. */
const allEmptyText =
  "If they hold nothing either, and a stamp was here, its disks are lost: start all of them, one whose disk is gone with an " +
  "empty folder; then `stamp health` names the newest copy of the metadata (docs/guides/metadata.md)";
/** A member that lacks more committed entries than this is behind. */
const behindMax = 1_000;
/** Shortest time between two hand-overs of a leader without room, in milliseconds. */
const handOverEveryMs = 10_000;

export class ReplicatedStore {
  readonly #world: World;
  readonly #config: LockServiceConfig;
  readonly #room: DiskRoom;
  readonly #members: ReadonlyMap<MemberId, Address>;
  readonly #level: StandbyLevel;
  readonly #tell: (opened: OpenedStore | undefined, failure: Failed | undefined) => void;
  readonly #stopping = new AbortController();
  #peers: Peers;
  #member: Member | undefined;
  #folder: Folder | undefined;
  /** Lineages that other members have named; empty: their rows are none. */
  readonly #lineages = new Map<MemberId, Uint8Array>();
  /** Names of members that have served metadata in etcd, this one included. */
  readonly #servedEtcd = new Set<MemberId>();
  #news = (): void => {};
  #handedOverMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #asking: Promise<void> | undefined;
  /** True if rows of this folder could not be read: it is opened again, which checks all of them. */
  #doubtsFolder = false;
  /** True if the log of a leader contradicts what was committed here: this member takes part no more. */
  #contradicted = false;
  /** True when it is known what the folder holds, or will hold. Until then nothing is answered: "empty" would let a new stamp begin. */
  #knowsFolder = false;
  #waits: string | undefined;

  /** `tell` is told the store when it is served, undefined when it is not any more, and why it can't be. Throws FailureError for wrong settings. */
  constructor(
    world: World,
    config: LockServiceConfig,
    room: DiskRoom,
    tell: (opened: OpenedStore | undefined, failure: Failed | undefined) => void,
  ) {
    this.#world = world;
    this.#config = config;
    this.#room = room;
    this.#tell = tell;
    this.#members = unwrap(membersIn(config.members));
    if (!this.#members.has(config.name)) {
      const names = [...this.#members.keys()].join(", ");
      throw new FailureError(
        refused("invalidArgument", "badRequest", `members: names ${names}, and not ${config.name}, this process`).failure,
      );
    }
    this.#level = new StandbyLevel(world);
    this.#peers = this.#newPeers();
  }

  /** Reason why this member does not serve, for people; undefined: nothing. */
  get trouble(): string | undefined {
    const contradiction = this.#member?.status.contradiction;
    return contradiction ?? this.#waits ?? this.#election;
  }

  /** Text of what a member waits for that knows no leader; undefined: it knows one, or does not run yet. */
  get #election(): string | undefined {
    const { leader, full } = this.#member?.status ?? {};
    if (this.#member === undefined || leader !== undefined) return undefined;
    const count = this.#member.members.voters.length;
    const most = majorityOf(count);
    // A removed one whose folder is lost does not know the members.
    if (count === 0) return "a leader: no lock service that leads has sent it anything";
    if (full === true) return `an election: ${most} of ${count} lock services that vote have to answer: start those that are away`;
    return (
      `an election: when the lock services have been started again, ${wideOf(count)} of ${count} have to answer, or ${most} that went on running: ` +
      "start those that are away; one whose disk is lost, under its name with an empty folder"
    );
  }

  get facts(): { readonly consensus: object } {
    const facts: MemberFacts | undefined = this.#member?.facts;
    return {
      consensus: {
        ...facts,
        members: [...this.#members.keys()],
        lineage: toHex(this.#lineage),
        setAside: (this.#folder?.number ?? 1) > 1,
        store: this.#folder?.number ?? 1,
      },
    };
  }

  /** Active lock service, if it is another process. */
  get activeElsewhere(): { readonly holder: string; readonly address: Address } | undefined {
    const leader = this.#member?.status.leader;
    const address = leader === undefined ? undefined : this.#members.get(leader);
    return leader === undefined || leader === this.#config.name || address === undefined ? undefined : { holder: leader, address };
  }

  /** Returns why this process would be missed if another one stopped now, though it follows; undefined: it may be counted on. */
  get behind(): string | undefined {
    const facts = this.#member?.facts;
    if (facts === undefined) return this.#waits;
    if (facts.diskFull) return "room on its disk: it writes nothing until then";
    if (!facts.full) return "its standing: after a start a lock service counts again when the others have recorded it";
    const missing = facts.commit - facts.applied;
    return missing > behindMax ? `${missing} entries of the log that the others have` : undefined;
  }

  /** True if every member holds nothing, as each of them has said, and none will begin a stamp by itself: a person has to act. */
  get isLost(): boolean {
    const { init, name } = this.#config;
    const [first] = this.#members.keys();
    const mayBegin = init && (name !== first || this.#folder?.number === 1);
    if (mayBegin || !this.#knowsFolder || this.#lineage.length > 0) return false;
    return this.#peers.names.every((id) => this.#lineages.get(id)?.length === 0);
  }

  /** Feature level of the stamp, as a follower knows it; 0: none. */
  get level(): number {
    return this.#level.level;
  }

  /** Returns the refusal of every call while this process is not the active one. */
  refusal(why: string): Outcome<never> {
    const active = this.activeElsewhere;
    if (active !== undefined) return refusedByStandby("lock service", active);
    return refused("unavailable", "notReady", this.trouble ?? why);
  }

  /** Services besides those that every lock service has. */
  get services(): readonly ServedService[] {
    const { name } = this.#config;
    const commands = memberCommands({ name, addresses: this.#members, led: () => this.#led() });
    return [served(Consensus, { deliver: async (request: DeliverRequest) => this.#deliver(request), ...commands })];
  }

  #led(): Outcome<LeadingMember> {
    const member = this.#member;
    const leading = member?.leading;
    if (member === undefined || leading === undefined) return this.refusal("no lock service leads now: ask again");
    return ok({ member, leading });
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Hands over before a planned stop, while other lock services are still heard. */
  async leave(): Promise<void> {
    await this.#member?.leave();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#news();
    await this.#running;
  }

  #newPeers(): Peers {
    return new Peers(this.#world, {
      name: this.#config.name,
      members: this.#members,
      lineage: () => this.#lineage,
      heard: (from, lineage, servedEtcd) => {
        if (servedEtcd) this.#servedEtcd.add(from);
        this.#heard(from, lineage);
      },
    });
  }

  get #lineage(): Uint8Array {
    return this.#folder?.store.lineage ?? new Uint8Array(0);
  }

  #heard(from: MemberId, lineage: Uint8Array): void {
    if (lineage.length !== 0 && lineage.length !== lineageBytes) return;
    this.#lineages.set(from, lineage);
    if (this.#isForeign) this.#news();
  }

  /** Members whose rows are of another lineage than this member's. */
  get #foreign(): readonly MemberId[] {
    const own = this.#lineage;
    return [...this.#lineages].filter(([, other]) => own.length > 0 && other.length > 0 && !equalBytes(own, other)).map(([id]) => id);
  }

  /** True if a majority of the members has one lineage, and this member's is another: its folder was put here from elsewhere. */
  get #isForeign(): boolean {
    const others = this.#foreign.map((id) => toHex(this.#lineages.get(id) as Uint8Array));
    return others.length * 2 > this.#members.size && new Set(others).size === 1;
  }

  #deliver({ from, to, lineage, messages }: DeliverRequest) {
    const own = this.#lineage as Uint8Array<ArrayBuffer>;
    if (to !== this.#config.name) return refused("invalidArgument", "badRequest", `this is ${this.#config.name}, not ${to}`);
    if (!this.#members.has(from)) {
      return refused("failedPrecondition", "badRequest", `${from} is no member here: \`members\` has to be the same on every lock service`);
    }
    if (!this.#knowsFolder) return refused("unavailable", "notReady", this.#waits ?? `${to} has not read its folder yet`);
    const decoded = messages.map((message) => messageFromWire(from, to, message));
    const theirs = lineage.slice();
    // A member that asks may be about to take over a store: it is empty only if it answers so.
    if (theirs.length > 0) this.#heard(from, theirs);
    const same = own.length === 0 || theirs.length === 0 || equalBytes(own, theirs);
    if (same || !this.#world.rules.on("consensusSameLineage")) this.#member?.deliver(decoded, theirs);
    return ok({ lineage: own, servedEtcd: this.#servedEtcd.has(to) });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#asMember();
      } catch (error) {
        if (!(error instanceof FailureError || error instanceof DiskError)) throw error;
        if (!signal.aborted) this.#tell(undefined, refused("unavailable", "diskFailed", error.message));
      }
      if (!signal.aborted) await sleep(this.#world.clock, lookAgainMs, signal);
    }
  }

  /** Runs the member of this folder until the process stops, or the folder is set aside. */
  async #asMember(): Promise<void> {
    const folder = await openFolder(this.#world);
    if (!folder.ok) {
      this.#tell(undefined, folder);
      return;
    }
    this.#folder = folder.value;
    if (await this.#world.disk.exists(markPath(etcdStoreName))) this.#servedEtcd.add(this.#config.name);
    this.#peers = this.#newPeers();
    let isForeign = false;
    try {
      await this.#serve(folder.value);
      isForeign = this.#isForeign;
    } finally {
      this.#peers.stop();
      this.#knowsFolder = false;
      if (this.#member === undefined) await folder.value.store.close();
      else await this.#member.stop();
      this.#member = undefined;
      this.#folder = undefined;
      await this.#asking;
    }
    if (!isForeign || this.#stopping.signal.aborted) return;
    await setStoreAside(this.#world, "it is of another stamp than those of the other members, or of one that was restored since");
  }

  async #serve(folder: Folder): Promise<void> {
    const { signal } = this.#stopping;
    const { store } = folder;
    store.onRow = (key, value) => {
      if (equalBytes(key, this.#level.watched.key)) this.#level.watched.seen(value);
    };
    this.#level.watched.seen(await store.rows.get(this.#level.watched.key));
    if (store.lineage.length > 0) await forgetOldStore(this.#world);
    const isEmpty = store.lineage.length === 0;
    const begun = isEmpty ? await this.#begun(folder) : ok(folder.stored);
    if (!begun.ok) {
      this.#tell(undefined, begun);
      return;
    }
    this.#knowsFolder = true;
    const { name, consensusTickMs: tickMs, logEntriesMax } = this.#config;
    const begins = isEmpty && store.lineage.length > 0;
    const options = { name, tickMs, logEntriesMax, begins, giveRoom: () => this.#room.give(), changed: () => this.#changed() };
    const member = new Member(this.#world, options, store, begun.value, { send: (messages) => this.#peers.send(messages) });
    this.#member = member;
    this.#doubtsFolder = false;
    member.start();
    this.#asking = this.#askInDoubt(member);
    while (!signal.aborted && !this.#isForeign && !this.#doubtsFolder) {
      const { leading } = member;
      if (leading === undefined) await this.#newsOf(() => this.#isForeign || signal.aborted || member.leading !== undefined);
      else await this.#lead(member, leading);
    }
  }

  /**
   * Asks the others what they hold while this member has no rows: if nobody has any, people are told. Also while another member had rows of another
   * lineage: it has set them aside since, and a follower hears from a follower only when it asks.
   */
  async #askInDoubt(member: Member): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted && this.#member === member) {
      if (this.#lineage.length === 0 || this.#foreign.length > 0) await this.#peers.ask();
      await sleep(this.#world.clock, lookAgainMs, signal);
    }
  }

  /** Resolves with the next news, or at once if the condition holds already. */
  #newsOf(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#news = resolve;
      if (isSo()) resolve();
    });
  }

  #changed(): void {
    const { status } = this.#member ?? {};
    if (status?.leader !== undefined) this.#waits = undefined;
    if (status?.contradiction !== undefined && !this.#contradicted) {
      this.#contradicted = true;
      this.#tell(undefined, refused("dataLoss", "damaged", status.contradiction));
    }
    this.#news();
  }

  /** Returns the content with which an empty member starts: none, or of the first member that of the store that it had alone, or of a new stamp. */
  async #begun({ store, stored, number }: Folder): Promise<Outcome<Folder["stored"]>> {
    const { init, name } = this.#config;
    const [first] = this.#members.keys();
    const old = await hasOldStore(this.#world);
    this.#waits = !init ? `${emptyText}. ${allEmptyText}` : name === first ? emptyText : `${emptyText}. ${first} begins a new stamp`;
    if (old && name !== first) {
      this.#waits = storeOfOwnText;
      return refused("failedPrecondition", "notReady", storeOfOwnText);
    }
    if (!(init || old) || name !== first || number > 1) return ok(stored);
    const what = old ? "its store is taken over" : "a new stamp begins";
    this.#waits = `the answers of ${this.#peers.names.join(" and ")}: ${what} when each of them says that it holds nothing`;
    const { signal } = this.#stopping;
    for (let pauseMs = askAgainMs; !signal.aborted; pauseMs = Math.min(pauseMs * 1.5, askAgainMaxMs)) {
      await this.#peers.ask();
      const answers = this.#peers.names.map((id) => this.#lineages.get(id));
      if (answers.some((lineage) => lineage !== undefined && lineage.length > 0)) return ok(stored);
      const isAnswered = answers.every((lineage) => lineage !== undefined);
      if (isAnswered && (old || this.#servedEtcd.size === 0)) break;
      if (isAnswered) this.#waits = servedEtcdText([...this.#servedEtcd]);
      await sleep(this.#world.clock, pauseMs, signal);
    }
    if (signal.aborted) return ok(stored);
    const snapshot = firstSnapshot([...this.#members.keys()]);
    const electionText = "an election: all lock services have to run for the first one";
    if (!old) {
      this.#waits = electionText;
      return ok(await store.begin(snapshot, this.#world.random.bytes(lineageBytes)));
    }
    const whatText = "the store of when it was alone, which is taken over";
    this.#waits = `${whatText}: it is read`;
    const taken = await takeOver(this.#world, store, snapshot, (copiedKeys, keys) => {
      this.#waits = `${whatText}: ${copiedKeys} of about ${keys} keys are copied`;
    });
    this.#waits = electionText;
    return taken;
  }

  async #lead(member: Member, leading: Leading): Promise<void> {
    this.#world.logger.info("elected as the active lock service", { term: leading.term });
    const kv = new ReplicatedKeyValue(member, leading, this.#world.rules);
    await serveTurn(this.#world, {
      leadership: leading,
      stopping: this.#stopping.signal,
      open: async () => {
        const store = await LockStore.openReplicated(this.#world, kv, this.#lineage);
        const room = this.#roomOf(member, leading);
        const opened = store.ok ? await openedStore(this.#world, this.#config, store.value, room, undefined) : store;
        if (opened.ok || opened.failure.code !== "dataLoss") return opened;
        // The rows were whole at the start of this process. Others have them, so this member must not go on leading.
        this.#doubtsFolder = true;
        return refused(
          "unavailable",
          "diskFailed",
          `a row of its store can't be read, so all of them are checked: ${opened.failure.message}`,
        );
      },
      tell: this.#tell,
    });
  }

  #roomOf(member: Member, leading: Leading) {
    const { clock } = this.#world;
    return {
      refusal: async (writes: boolean) => {
        const refusal = await this.#room.refusal(writes);
        if (refusal !== undefined && clock.monotonicMs() - this.#handedOverMs >= handOverEveryMs) {
          this.#handedOverMs = clock.monotonicMs();
          member.handOver();
        }
        return refusal;
      },
      giveRoom: async () => false,
      broken: (why: string) => leading.end(why),
    };
  }
}
