/** The member `a` of `a`, `b` and `c`, on a simulated disk and clock: the test speaks for the others. */
import { strict as assert } from "node:assert";
import { unwrap } from "@stamp/base";
import type { KeyValue, World } from "@stamp/ports";
import { type Entry, type EntryBody, firstSnapshot, type Message, type MessageBody } from "@stamp/raft";
import { Simulation } from "@stamp/virtual-time";
import { Member, type MemberOptions } from "../consensus/member.ts";
import { MemberStore } from "../consensus/member-store.ts";
import { lineageBytes } from "../consensus/records.ts";

/** Length of a tick: longer than any test, unless the test lets time pass. In milliseconds. */
const tickMs = 100_000;
const lineage = new Uint8Array(lineageBytes).fill(1);
/** Start of the members that the test speaks for. */
const othersSession = 7;

export type Batch = KeyValue["batch"];

export class LoneMember {
  readonly sim: Simulation;
  readonly member: Member;
  readonly store: MemberStore;
  /** Messages that the member sent, oldest first. */
  readonly sent: Message[];

  constructor(sim: Simulation, member: Member, store: MemberStore, sent: Message[]) {
    this.sim = sim;
    this.member = member;
    this.store = store;
    this.sent = sent;
  }

  /** Delivers a message, and lets the member do what follows. */
  async receive(from: "b" | "c", term: number, body: MessageBody): Promise<void> {
    this.give(from, term, body);
    await this.sim.sleep(100);
  }

  give(from: "b" | "c", term: number, body: MessageBody): void {
    this.member.deliver([{ from, to: "a", term, session: othersSession, full: true, ...body }], lineage);
  }

  /** Appends entries as the leader `b` of a term, behind an entry of a term; all are committed. */
  append(term: number, prevIndex: number, prevTerm: number, bodies: readonly EntryBody[]): Promise<void> {
    const entries: Entry[] = bodies.map((body, at) => ({ index: prevIndex + 1 + at, term, body }));
    return this.receive("b", term, { kind: "append", prevIndex, prevTerm, entries, commit: prevIndex + entries.length });
  }

  /** Gives the member its standing: entry 2, of term 1. */
  async readmit(): Promise<void> {
    await this.receive("b", 1, { kind: "heartbeat", round: 0, commit: 1, commitTerm: 0 });
    await this.append(1, 1, 0, [{ kind: "readmit", member: "a", session: this.#session }]);
    assert.equal(this.member.status.full, true);
  }

  /** Makes the member the leader of the next term: `b`, which leads, hands over to it, and `c` votes. */
  async elect(): Promise<number> {
    const { term } = this.member.status;
    await this.receive("b", term, { kind: "timeoutNow" });
    await this.receive("c", term + 1, { kind: "voteAnswer", candidate: this.#session, granted: true });
    assert.equal(this.member.status.role, "leader");
    return term + 1;
  }

  /** The other two have the whole log. */
  async acknowledge(): Promise<void> {
    const { term, lastIndex } = this.member.status;
    for (const from of ["b", "c"] as const) await this.receive(from, term, { kind: "appendAnswer", accepted: true, index: lastIndex });
  }

  get #session(): number {
    const [first] = this.sent;
    assert.ok(first !== undefined, "the member has sent something");
    return first.session;
  }
}

export interface LoneOptions extends Partial<MemberOptions> {
  /** Makes the batches of the store's LevelDB; otherwise they are written. */
  readonly batches?: (write: Batch) => Batch;
}

/** Runs a test with a member that has just started, without its standing. */
export async function aloneWith(work: (lone: LoneMember) => Promise<void>, { batches = (write) => write, ...more }: LoneOptions = {}) {
  const sim = new Simulation({ seed: 1, timeLimitMs: 100_000_000 });
  await sim.run(async () => {
    const world = sim.world("a");
    const opened = unwrap(await MemberStore.open({ ...world, keyValue: storesOf(world, batches) }, "consensus-1"));
    const stored = await opened.store.begin(firstSnapshot(["a", "b", "c"]), lineage);
    const sent: Message[] = [];
    const options = { name: "a", tickMs, logEntriesMax: 10_000, begins: false, giveRoom: async () => false, changed: () => {}, ...more };
    const member = new Member(world, options, opened.store, stored, { send: (messages) => void sent.push(...messages) });
    member.start();
    await work(new LoneMember(sim, member, opened.store, sent));
    await member.stop();
  });
}

function storesOf({ keyValue }: Pick<World, "keyValue">, batches: (write: Batch) => Batch): World["keyValue"] {
  return {
    destroy: (name) => keyValue.destroy(name),
    open: async (name) => {
      const opened = await keyValue.open(name);
      if (opened.kind === "corrupt") return opened;
      const { store } = opened;
      const batch = batches((operations, options) => store.batch(operations, options));
      return {
        kind: "opened",
        store: { get: (key) => store.get(key), batch, range: (range) => store.range(range), close: () => store.close() },
      };
    },
  };
}
