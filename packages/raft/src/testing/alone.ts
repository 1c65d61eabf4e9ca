/** One member without a network: what it says to each message. Its writes are durable at once, unless the test says otherwise. */
import { allRules, type Rules, utf8 } from "@stamp/base";
import type { Message, MessageBody, MessageHeader } from "../messages.ts";
import { Raft } from "../raft.ts";
import type { Ready } from "../ready.ts";
import { type Entry, firstSnapshot, type HardState, type MemberId } from "../types.ts";
import { electionTicks } from "./world.ts";

export interface AloneOptions {
  readonly voters?: readonly MemberId[];
  readonly term?: number;
  readonly vote?: MemberId;
  /** Terms of the entries from index 2 on: a cluster begins behind a snapshot at index 1. */
  readonly log?: readonly number[];
  readonly commit?: number;
  readonly trusted?: boolean;
  readonly rules?: Rules;
  readonly random?: () => number;
}

export const entryOf = (index: number, term: number): Entry => ({ index, term, body: { kind: "data", data: utf8(`${index}.${term}`) } });

export class Alone {
  readonly raft: Raft;
  /** Everything that it sent, oldest first. */
  sent: Message[] = [];
  readonly readys: Ready[] = [];

  constructor({
    voters = ["a", "b", "c"],
    term = 0,
    vote,
    log = [],
    commit = 1,
    trusted = true,
    rules = allRules,
    random = () => 0,
  }: AloneOptions) {
    const hardState: HardState = { term, vote, commit };
    const entries = log.map((of, at) => entryOf(at + 2, of));
    this.raft = new Raft({
      id: "a",
      session: 1,
      trusted,
      stored: { hardState, snapshot: firstSnapshot(voters), entries },
      applied: commit,
      electionTicks,
      heartbeatTicks: 2,
      random,
      rules,
    });
  }

  /** Takes all effects, writes them, and sends. */
  settle(): this {
    for (let ready = this.raft.ready(); ready !== undefined; ready = this.raft.ready()) {
      this.readys.push(ready);
      this.sent.push(...ready.messages);
      this.raft.persisted(ready.number);
      this.sent.push(...ready.messagesAfterSync);
    }
    return this;
  }

  receive(from: MemberId, term: number, body: MessageBody, header: Partial<MessageHeader> = {}): this {
    this.raft.step({ from, to: "a", term, session: 1, full: true, ...header, ...body });
    return this.settle();
  }

  tick(times: number): this {
    for (let i = 0; i < times; i++) this.raft.tick();
    return this.settle();
  }

  /** Wins an election with the vote of b. */
  lead(): this {
    this.tick(electionTicks);
    const nextTerm = this.raft.status.term + 1;
    this.receive("b", nextTerm - 1, { kind: "preVoteAnswer", candidate: 1, nextTerm, granted: true });
    return this.receive("b", nextTerm, { kind: "voteAnswer", candidate: 1, granted: true });
  }

  /** Takes the messages of a kind that were sent since it was asked last. */
  take<K extends Message["kind"]>(kind: K): readonly Extract<Message, { kind: K }>[] {
    const found = this.sent.filter((message): message is Extract<Message, { kind: K }> => message.kind === kind);
    this.sent = this.sent.filter((message) => message.kind !== kind);
    return found;
  }

  /** Terms of the entries from index 2 on. */
  get log(): readonly number[] {
    const { lastIndex } = this.raft.status;
    return Array.from({ length: lastIndex - 1 }, (_, at) => this.raft.entryTerm(at + 2) ?? 0);
  }
}
