/**
 * Runs the member of a replicated metadata store: gives Raft its messages and ticks, and does what its Readys ask for.
 *
 *     deliver, tick, propose, confirm ──▶ Raft ──Ready──▶ queue ──▶ one synced batch (member-store.ts)
 *                                           │                           ├─▶ persisted, messagesAfterSync
 *                                           └─messages─▶ peers          └─▶ applied entries answer their proposals
 *
 * Invariants:
 *   - Readys are written in their order; those that waited while a batch was written share the next one.
 *   - A vote, and an acknowledgement, is sent after the write that it tells of.
 *   - A proposal ends: its entry is applied, or another one in its place, or leadership is lost and its outcome is unknown.
 *   - `leading` is there only when every entry that was committed before it, and every entry that this process proposed before it, is applied.
 */
import { assert, FailureError, type Outcome, refused } from "@stamp/base";
import { type Address, DiskError, sleep, type World } from "@stamp/ports";
import {
  decidingVoters,
  type MemberChange,
  type MemberId,
  type Members,
  type Message,
  Raft,
  type RaftStatus,
  type Ready,
} from "@stamp/raft";
import { Leading } from "./leading.ts";
import { type MemberStore, SnapshotReader, type StoredMember } from "./member-store.ts";
import type { Peers } from "./peers.ts";

export interface MemberOptions {
  readonly name: MemberId;
  readonly tickMs: number;
  /** Number of entries after which the log is cut. */
  readonly logEntriesMax: number;
  /** True if this member has begun a stamp just now: nobody leads, so it runs for election at once. */
  readonly begins: boolean;
  /** Makes some room on a full disk; false when it can't. */
  readonly giveRoom: () => Promise<boolean>;
  /** Called after every step: role, leader or what is applied may have changed. */
  readonly changed: () => void;
}

/** An election begins after 10 to 20 ticks without a leader. */
const electionTicks = 10;
const heartbeatTicks = 2;
/** Time in which a tick of a member without a leader is a quarter, in milliseconds, so that members that start together elect sooner. */
const startMs = 3_000;
const readysTogether = 64;
/** Bytes of applied entries since the log was cut after which it is cut again. */
const logBytesMax = 32 << 20;
/** Bounds of the entries in memory below a cut, for members that are behind. */
const keptEntriesMax = 100_000;
const keptBytesMax = 64 << 20;
/** Number of waiting writes from which on messages are dropped, as the network may: the disk hangs, or is full. */
const queueMax = 4_096;
const fullAgainMs = 500;
const handoverMs = 1_000;

interface Waiting {
  readonly leading: Leading;
  /** Term of the proposed entry. */
  readonly term: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface MemberFacts extends RaftStatus {
  readonly applied: number;
  /** Members that have a vote, by this member's log. */
  readonly voters: readonly MemberId[];
  /** Number of entries that each other member has not acknowledged; empty unless this member leads. */
  readonly lag: Readonly<Record<MemberId, number>>;
  /** Largest number in `lag`; 0 unless this member leads. */
  readonly lagMost: number;
  /** Number of writes that wait for the disk. */
  readonly waiting: number;
  /** True if the last write found no room. */
  readonly diskFull: boolean;
  readonly snapshotIndex: number;
}

export class Member {
  readonly #world: World;
  readonly #options: MemberOptions;
  readonly #store: MemberStore;
  readonly #peers: Pick<Peers, "send">;
  readonly #raft: Raft;
  readonly #stopping = new AbortController();
  #queue: Ready[] = [];
  #writing: Promise<void> | undefined;
  readonly #proposals = new Map<number, Waiting>();
  readonly #reads = new Map<number, Waiting>();
  #context = 0;
  #leading: Leading | undefined;
  /** Last entry that this process may have proposed in the last term that it led: it has to be applied before the process leads again in that term. */
  #leadsFrom = { term: 0, index: 0 };
  #full = false;
  #bytesSinceCut = 0;
  /** Snapshots on their way, by receiver. */
  readonly #sending = new Map<MemberId, SnapshotReader>();
  /** Lineages of the rows of other members. */
  readonly #lineages = new Map<MemberId, Uint8Array>();
  /** Lineage of the rows that are being received. */
  #receiving = new Uint8Array(0) as Uint8Array;
  #ticking: Promise<void> | undefined;
  /** Time until which ticks are short, by the monotonic clock. */
  #shortUntilMs: number;

  constructor(world: World, options: MemberOptions, store: MemberStore, stored: StoredMember, peers: Pick<Peers, "send">) {
    this.#world = world;
    this.#options = options;
    this.#store = store;
    this.#peers = peers;
    this.#shortUntilMs = world.clock.monotonicMs() + startMs;
    store.onFailure = (error) => this.#again(error);
    this.#raft = new Raft({
      id: options.name,
      session: sessionOf(world),
      // If this member is the only voter, nobody else can know better. With other voters no folder is believed.
      trusted: decidingVoters(stored).every((voters) => voters.length === 1 && voters[0] === options.name),
      stored,
      applied: store.applied.index,
      electionTicks,
      heartbeatTicks,
      random: () => world.random.float(),
      rules: world.rules,
    });
  }

  /** Rights of the leader; undefined while this member does not lead, or can't serve yet. */
  get leading(): Leading | undefined {
    return this.#leading?.ended.aborted === true ? undefined : this.#leading;
  }

  get status(): RaftStatus {
    return this.#raft.status;
  }

  get facts(): MemberFacts {
    const { status } = this.#raft;
    const lag: Record<MemberId, number> = {};
    for (const [id, { match }] of this.#raft.followers) lag[id] = status.lastIndex - match;
    return {
      ...status,
      applied: this.#store.applied.index,
      voters: this.#raft.members.voters,
      lag,
      lagMost: Math.max(0, ...Object.values(lag)),
      waiting: this.#queue.length,
      diskFull: this.#full,
      snapshotIndex: this.#store.snapshotIndex,
    };
  }

  start(): void {
    this.#ticking = this.#tick();
    if (this.#options.begins) this.#raft.campaign();
    this.#drain();
  }

  /** Newest configuration in this member's log. */
  get members(): Members {
    return this.#raft.members;
  }

  get followers(): Raft["followers"] {
    return this.#raft.followers;
  }

  /** Hands leadership over, if this member leads and another one is fit. */
  handOver(): void {
    if (this.#raft.status.role === "leader") this.transfer(undefined);
  }

  /** Hands leadership over to a member, or to the best one. Returns its name. */
  transfer(to: MemberId | undefined): Outcome<MemberId> {
    const told = this.#raft.transferLeadership(to);
    this.#drain();
    return told;
  }

  /** Hands leadership over, and waits until another member leads, for a moment at most. This member must hear the others meanwhile. */
  async leave(): Promise<void> {
    this.handOver();
    const { clock } = this.#world;
    const untilMs = clock.monotonicMs() + handoverMs;
    while (this.#raft.status.role === "leader" && this.#raft.followers.size > 0 && clock.monotonicMs() < untilMs) await sleep(clock, 10);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#endLeading("it is stopping");
    await this.#ticking;
    await this.#writing;
    await this.#closeReaders();
    await this.#store.close();
  }

  /** Takes messages of a member up. `lineage`: that of its rows. */
  deliver(messages: readonly Message[], lineage: Uint8Array): void {
    if (this.#stopping.signal.aborted || this.#queue.length >= queueMax) return;
    for (const message of messages) {
      this.#lineages.set(message.from, lineage);
      this.#raft.step(message);
    }
    this.#drain();
  }

  /** Resolves when the bytes are committed and applied. Throws FailureError `notLeader` if leadership was lost: they may be, or not. */
  propose(leading: Leading, data: Uint8Array): Promise<void> {
    leading.check();
    return this.#proposed(leading, this.#raft.propose(data));
  }

  /** Resolves when the change is committed. Throws as `propose`, and a FailureError if it can't be made now. */
  changeMembers(leading: Leading, change: MemberChange): Promise<void> {
    leading.check();
    return this.#proposed(leading, this.#raft.changeMembers(change));
  }

  #proposed(leading: Leading, position: ReturnType<Raft["propose"]>): Promise<void> {
    if (!position.ok) return Promise.reject(new FailureError(position.failure));
    const { index, term } = position.value;
    const done = new Promise<void>((resolve, reject) => this.#proposals.set(index, { leading, term, resolve, reject }));
    this.#drain();
    return done;
  }

  /** Resolves if this member led after the call, as a round of heartbeats proves. Throws FailureError `notLeader` if leadership was lost. */
  confirm(leading: Leading): Promise<void> {
    leading.check();
    const context = ++this.#context;
    const asked = this.#raft.readIndex(context);
    if (!asked.ok) return Promise.reject(new FailureError(asked.failure));
    const done = new Promise<void>((resolve, reject) => this.#reads.set(context, { leading, term: leading.term, resolve, reject }));
    this.#drain();
    return done;
  }

  get rows(): MemberStore["rows"] {
    return this.#store.rows;
  }

  async #tick(): Promise<void> {
    const { signal } = this.#stopping;
    while ((await sleep(this.#world.clock, this.#untilTickMs(), signal)) === "elapsed") {
      this.#raft.tick();
      this.#drain();
    }
  }

  #untilTickMs(): number {
    if (this.#raft.status.leader !== undefined) this.#shortUntilMs = 0;
    return this.#world.clock.monotonicMs() < this.#shortUntilMs ? this.#options.tickMs / 4 : this.#options.tickMs;
  }

  /** Takes everything that there is to do from Raft. */
  #drain(): void {
    if (this.#stopping.signal.aborted) return;
    for (let ready = this.#raft.ready(); ready !== undefined; ready = this.#raft.ready()) {
      this.#peers.send(ready.messages);
      for (const { context } of ready.reads) this.#read(context)?.resolve();
      for (const context of ready.lostReads) {
        const read = this.#read(context);
        read?.reject(read.leading.lost("leadership was lost"));
      }
      if (asksOfDisk(ready)) this.#queue.push(ready);
    }
    this.#noteRole();
    if (this.#queue.length > 0) this.#writing ??= this.#write();
  }

  #read(context: number): Waiting | undefined {
    const read = this.#reads.get(context);
    this.#reads.delete(context);
    return read;
  }

  #noteRole(): void {
    const { role, term, contradiction } = this.#raft.status;
    const leads = role === "leader" && contradiction === undefined;
    if (this.#leading !== undefined && (!leads || this.#leading.term !== term || this.#leading.ended.aborted)) {
      this.#endLeading(leads ? this.#leading.why : "another member leads, or no quorum answered");
    }
    const { applied } = this.#store;
    const from = this.#leadsFrom.term === term ? this.#leadsFrom.index : 0;
    if (this.#leading === undefined && leads && !this.#full && applied.term === term && applied.index >= from) {
      this.#leading = new Leading(term);
    }
    this.#options.changed();
  }

  #endLeading(why: string): void {
    const leading = this.#leading;
    this.#leading = undefined;
    if (leading !== undefined) this.#leadsFrom = { term: leading.term, index: this.#raft.status.lastIndex };
    leading?.end(why);
    for (const waiting of [...this.#proposals.values(), ...this.#reads.values()]) waiting.reject(waiting.leading.lost(why));
    this.#proposals.clear();
    this.#reads.clear();
  }

  async #write(): Promise<void> {
    try {
      while (this.#queue.length > 0 && !this.#stopping.signal.aborted) {
        const next = this.#queue.findIndex(({ snapshot }, at) => at > 0 && snapshot !== undefined);
        await this.#handle(this.#queue.splice(0, Math.min(next < 0 ? readysTogether : next, readysTogether)));
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#world.fatal(`the metadata store failed: ${String(error)}`);
    }
    this.#writing = undefined;
  }

  async #handle(readys: readonly Ready[]): Promise<void> {
    await this.#store.write(readys, this.#receiving);
    const last = readys.at(-1);
    if (last === undefined || this.#stopping.signal.aborted) return;
    this.#raft.persisted(last.number);
    for (const ready of readys) {
      this.#peers.send(ready.messagesAfterSync);
      this.#answer(ready);
      for (const chunk of ready.chunksToStore) await this.#storeChunk(chunk);
      for (const wanted of ready.chunksWanted) await this.#giveChunk(wanted);
    }
    if (this.#raft.status.role !== "leader") await this.#closeReaders();
    await this.#cutIfLong();
    // Everything found room, also the pieces of a snapshot and the cut.
    this.#full = false;
    this.#drain();
  }

  /** Handles a full disk: leadership goes to another member, and the batch is tried again until there is room. */
  async #again(error: unknown): Promise<void> {
    if (!(error instanceof DiskError && error.kind === "full")) throw error;
    if (!this.#full) this.#world.logger.error("the disk is full: this member writes nothing until there is room", { why: error.message });
    this.#full = true;
    this.#endLeading("its disk is full");
    this.handOver();
    // LevelDB is opened anew before it writes again, and nobody may read then.
    await this.#closeReaders();
    if (await this.#options.giveRoom()) return;
    if ((await sleep(this.#world.clock, fullAgainMs, this.#stopping.signal)) === "aborted") throw error;
  }

  #answer({ committed }: Ready): void {
    for (const { index, term, body } of committed) {
      if (body.kind === "data") this.#bytesSinceCut += body.data.length;
      const waiting = this.#proposals.get(index);
      if (waiting === undefined) continue;
      this.#proposals.delete(index);
      if (waiting.term === term) waiting.resolve();
      else waiting.reject(waiting.leading.lost("another leader's entry has its place"));
    }
  }

  async #storeChunk({ from, snapshot, offsetBytes, bytes, last }: Ready["chunksToStore"][number]): Promise<void> {
    this.#receiving = this.#lineages.get(from) ?? new Uint8Array(0);
    const stored = await this.#store.receive(bytes, offsetBytes === 0);
    let why = stored.ok ? undefined : stored.failure.message;
    if (stored.ok && last) why = await this.#store.whyReceivedIncomplete();
    if (why !== undefined) this.#world.logger.error("a snapshot of the leader is not whole: it is asked for again", { why });
    this.#raft.chunkStored(snapshot.index, why === undefined ? offsetBytes + bytes.length : undefined, last);
  }

  /** Gives a chunk. A snapshot has the rows at the request for its first piece. */
  async #giveChunk({ to, index, offsetBytes, bytesMax }: Ready["chunksWanted"][number]): Promise<void> {
    let reader = this.#sending.get(to);
    let piece = reader?.index === index ? await reader.piece(offsetBytes, bytesMax) : undefined;
    if (piece === undefined && this.#raft.status.role === "leader") {
      await reader?.close();
      await this.#cut();
      reader = await SnapshotReader.begin(this.#store);
      this.#sending.set(to, reader);
      if (reader.index === index) piece = await reader.piece(offsetBytes, bytesMax);
    }
    this.#raft.giveChunk(to, index, offsetBytes, piece);
  }

  async #closeReaders(): Promise<void> {
    const readers = [...this.#sending.values()];
    this.#sending.clear();
    for (const reader of readers) await reader.close();
  }

  async #cutIfLong(): Promise<void> {
    const { applied, snapshotIndex } = this.#store;
    const { logEntriesMax } = this.#options;
    if (applied.index - snapshotIndex < logEntriesMax && this.#bytesSinceCut < logBytesMax) return;
    for (const [to, reader] of this.#sending) {
      const follower = this.#raft.followers.get(to);
      if (follower?.answers === true && follower.match < reader.index) continue;
      // It pins what LevelDB would drop.
      this.#sending.delete(to);
      await reader.close();
    }
    await this.#cut();
  }

  /** Gives the log up to what is applied up, but for entries in memory that members which are behind ask for next. */
  async #cut(): Promise<void> {
    const { applied, snapshotIndex } = this.#store;
    // A snapshot that was received is not installed yet: it replaces the log.
    if (applied.index <= snapshotIndex || this.#raft.entryTerm(applied.index) === undefined) return;
    this.#bytesSinceCut = 0;
    await this.#store.cut(this.#raft.compact(applied.index, this.#keptEntries(applied.index), keptBytesMax));
  }

  /**
   * Returns how many entries up to `index` members that answer still need: those behind what they have, or behind the snapshot that is on its
   * way to them. A log without these would send a member that is slow one snapshot after another.
   */
  #keptEntries(index: number): number {
    let kept = this.#options.logEntriesMax >> 2;
    for (const [id, { answers, match }] of this.#raft.followers) {
      const has = Math.max(match, this.#sending.get(id)?.index ?? 0);
      if (answers && has > 0) kept = Math.max(kept, index - has);
    }
    return Math.min(kept, keptEntriesMax);
  }
}

/** True if a Ready has more than messages that may be sent at once. */
function asksOfDisk({ hardState, snapshot, entries, messagesAfterSync, committed, chunksWanted, chunksToStore }: Ready): boolean {
  const lists = [entries, messagesAfterSync, committed, chunksWanted, chunksToStore];
  return hardState !== undefined || snapshot !== undefined || lists.some((list) => list.length > 0);
}

/** Returns the number of a start that no other start of this member has: random, so that a folder put back does not bring it again. */
function sessionOf({ random }: Pick<World, "random">): number {
  const session = random.bytes(6).reduce((sum, byte) => sum * 256 + byte, 0) + 1;
  assert(Number.isSafeInteger(session), "48 bits are a safe integer");
  return session;
}

/** Members in a configuration: `name=host:port`, separated by commas. */
export function membersIn(text: string): Outcome<Map<MemberId, Address>> {
  const members = new Map<MemberId, Address>();
  for (const part of text.split(",").map((each) => each.trim())) {
    const at = part.indexOf("=");
    if (at < 1 || at === part.length - 1) return wrong(`"${part}" is not name=host:port`);
    const name = part.slice(0, at);
    if (members.has(name)) return wrong(`${name} is there twice`);
    members.set(name, part.slice(at + 1));
  }
  return { ok: true, value: members };
}

const wrong = (message: string): Outcome<never> => refused("invalidArgument", "badRequest", `members: ${message}`);
