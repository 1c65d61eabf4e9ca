/**
 * A cluster in one thread: members, their folders, and a network whose messages the test delivers, loses, repeats and reorders. It checks the
 * properties of the paper's figure 3 after every step (`checker.ts`).
 */
import { allRules, fromUtf8, Prng, type Rules, utf8 } from "@stamp/base";
import type { RaftLimits } from "../core.ts";
import type { Message } from "../messages.ts";
import { Raft } from "../raft.ts";
import type { Ready } from "../ready.ts";
import { type Entry, firstSnapshot, type MemberId } from "../types.ts";
import { Checker } from "./checker.ts";
import { type Folder, newFolder, written } from "./disk.ts";

export interface WorldOptions {
  readonly voters: readonly MemberId[];
  readonly seed?: number;
  readonly rules?: Rules;
  /** Every start is vouched for: its folder has what was synced. */
  readonly trusted?: boolean;
  readonly limits?: Partial<RaftLimits>;
  /** Election timeouts draw this number instead of a random one. */
  readonly draw?: (id: MemberId) => number;
}

export const electionTicks = 10;

/** Text of an entry, as states and transcripts show it. */
export function textOf({ body }: Entry): string {
  if (body.kind === "data") return fromUtf8(body.data);
  if (body.kind === "members") return `members ${body.members.voters.join("+")}${body.members.learners.map((id) => ` (${id})`).join("")}`;
  if (body.kind === "readmit") return `readmit ${body.member}`;
  return "empty";
}

export class Member {
  readonly id: MemberId;
  readonly raft: Raft;
  readonly session: number;
  folder: Folder;
  /** State after every applied entry. */
  state: string[];
  applied: number;
  /** Readys whose write is not durable yet. */
  writing: Ready[] = [];
  /** State that comes with the snapshot that is being received. */
  receiving: string[] = [];
  received: readonly string[] | undefined;

  constructor(id: MemberId, session: number, folder: Folder, raft: Raft) {
    this.id = id;
    this.session = session;
    this.folder = folder;
    this.raft = raft;
    this.state = [...folder.state];
    this.applied = folder.snapshot.index;
  }
}

export class World {
  readonly prng: Prng;
  readonly checker: Checker;
  readonly members = new Map<MemberId, Member>();
  /** Folders of members that are down. */
  readonly down = new Map<MemberId, Folder>();
  network: Message[] = [];
  /** Pairs "from>to" whose messages are lost. */
  readonly cut = new Set<string>();
  readonly #options: WorldOptions;
  #session = 0;
  #context = 0;
  /** Index that each read must see at least. */
  readonly #reads = new Map<number, { readonly floor: number; readonly by: MemberId }>();
  readsDone = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.prng = new Prng(options.seed ?? 1);
    this.checker = new Checker();
    for (const id of options.voters) this.start(id, newFolder(firstSnapshot(options.voters)));
  }

  member(id: MemberId): Member {
    const found = this.members.get(id);
    if (found === undefined) throw new Error(`${id} is down`);
    return found;
  }

  raft(id: MemberId): Raft {
    return this.member(id).raft;
  }

  start(id: MemberId, folder: Folder): void {
    const { rules = allRules, trusted, limits, draw } = this.#options;
    const session = ++this.#session;
    const raft = new Raft({
      id,
      session,
      trusted: trusted ?? (folder.snapshot.members.voters.length === 1 && this.#options.voters.length === 1),
      stored: folder,
      applied: folder.snapshot.index,
      electionTicks,
      heartbeatTicks: 2,
      random: () => (draw === undefined ? this.prng.float() : draw(id)),
      rules,
      ...(limits === undefined ? {} : { limits }),
    });
    this.down.delete(id);
    this.members.set(id, new Member(id, session, folder, raft));
  }

  /** A member that was never there, as a learner's first start. */
  join(id: MemberId): void {
    this.start(id, newFolder());
  }

  /** The process dies; writes that are not durable are lost, but for the first `kept`. */
  crash(id: MemberId, kept = 0): void {
    const member = this.member(id);
    for (let i = 0; i < kept; i++) this.persist(id);
    this.members.delete(id);
    this.down.set(id, member.folder);
    for (const [context, { by }] of this.#reads) if (by === id) this.#reads.delete(context);
  }

  restart(id: MemberId, folder?: Folder): void {
    this.start(id, folder ?? this.down.get(id) ?? newFolder());
  }

  tick(id: MemberId): void {
    this.raft(id).tick();
    this.collect(id);
  }

  propose(id: MemberId, text: string): boolean {
    const done = this.raft(id).propose(utf8(text)).ok;
    this.collect(id);
    return done;
  }

  read(id: MemberId): void {
    const context = ++this.#context;
    if (!this.raft(id).readIndex(context).ok) return;
    this.#reads.set(context, { floor: this.checker.acknowledged, by: id });
    this.collect(id);
  }

  /** Takes what there is to do from a member: messages go to the network, writes wait. */
  collect(id: MemberId): void {
    const member = this.member(id);
    for (let ready = member.raft.ready(); ready !== undefined; ready = member.raft.ready()) {
      member.writing.push(ready);
      this.network.push(...ready.messages);
      this.#apply(member, ready);
      for (const { context, index } of ready.reads) this.#answered(context, index);
      for (const context of ready.lostReads) this.#reads.delete(context);
      for (const { to, index, offsetBytes } of ready.chunksWanted) this.#giveChunk(member, to, index, offsetBytes);
      for (const { snapshot, offsetBytes, bytes, last } of ready.chunksToStore) {
        if (offsetBytes === 0) member.receiving = [];
        member.receiving.push(...(bytes.length === 0 ? [] : [fromUtf8(bytes)]));
        if (last) member.received = [...member.receiving];
        member.raft.chunkStored(snapshot.index, offsetBytes + 1, last);
      }
      this.checker.observe(member, ready);
    }
  }

  /** The oldest write of a member becomes durable. */
  persist(id: MemberId): boolean {
    const member = this.member(id);
    const ready = member.writing.shift();
    if (ready === undefined) return false;
    member.folder = written(member.folder, ready, ready.snapshot === undefined ? undefined : member.received);
    if (ready.snapshot !== undefined) {
      member.state = [...member.folder.state];
      member.applied = ready.snapshot.index;
    }
    this.network.push(...ready.messagesAfterSync);
    member.raft.persisted(ready.number);
    this.collect(id);
    return true;
  }

  deliver(message: Message): void {
    if (this.cut.has(`${message.from}>${message.to}`)) return;
    const member = this.members.get(message.to);
    if (member === undefined) return;
    member.raft.step(message);
    this.collect(message.to);
  }

  /** Makes all writes durable and delivers all messages in order, until nothing is left. */
  settle(): void {
    for (let steps = 0; steps < 100_000; steps++) {
      let busy = false;
      for (const id of this.members.keys()) while (this.persist(id)) busy = true;
      const next = this.network.shift();
      if (next !== undefined) this.deliver(next);
      else if (!busy) return;
    }
    throw new Error("the cluster does not come to rest");
  }

  /** Ticks everybody, and lets everything happen between two ticks. */
  run(ticks: number): void {
    for (let i = 0; i < ticks; i++) {
      for (const id of [...this.members.keys()]) this.tick(id);
      this.settle();
    }
  }

  /** Snapshots the member's state, and gives its older entries up. */
  compact(id: MemberId, keepEntries: number): void {
    const member = this.member(id);
    while (this.persist(id));
    if (member.applied <= member.folder.snapshot.index) return;
    const snapshot = member.raft.compact(member.applied, keepEntries);
    const entries = member.folder.entries.filter(({ index }) => index > snapshot.index);
    member.folder = { ...member.folder, snapshot, entries, state: [...member.state] };
  }

  isolate(id: MemberId, others: Iterable<MemberId>): void {
    for (const other of others) {
      this.cut.add(`${id}>${other}`);
      this.cut.add(`${other}>${id}`);
    }
  }

  get leader(): Member | undefined {
    const leaders = [...this.members.values()].filter(({ raft }) => raft.status.role === "leader");
    return leaders.sort((a, b) => b.raft.status.term - a.raft.status.term)[0];
  }

  #apply(member: Member, ready: Ready): void {
    for (const entry of ready.committed) {
      this.checker.applied(member.id, entry, textOf(entry), member.raft.status.term);
      member.state.push(textOf(entry));
      member.applied = entry.index;
      // A leader answers its client when the entry is applied.
      if (member.raft.status.role === "leader" && entry.term === member.raft.status.term) this.checker.acknowledge(entry.index);
    }
  }

  #answered(context: number, index: number): void {
    const read = this.#reads.get(context);
    if (read === undefined) return;
    this.#reads.delete(context);
    this.readsDone += 1;
    this.checker.read(read.by, read.floor, index);
  }

  /** One entry of the state is a chunk. */
  #giveChunk(member: Member, to: MemberId, index: number, offset: number): void {
    const { folder } = member;
    const chunk = { bytes: utf8(folder.state[offset] ?? ""), last: offset >= folder.state.length - 1 };
    member.raft.giveChunk(to, index, offset, folder.snapshot.index === index ? chunk : undefined);
  }
}
