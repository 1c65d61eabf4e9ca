/**
 * Runs a dialogue: commands of a script against a cluster, and what every member does then, as text. Scripts with their answers lie in
 * `testdata/`; a script is changed by hand, and its answers are written by `STAMP_WRITE_GOLDEN=1`.
 *
 *     > cluster a b c            members of a cluster; all starts are vouched for if "trusted" follows
 *     > tick a 10                ticks of one member
 *     > settle                   all writes become durable, all messages arrive in order
 *     > propose a TEXT           > read a            > transfer a b        > campaign a
 *     > add a d | promote a d | remove a d           changes of the members, asked of a
 *     > cut a b | heal           messages between two members are lost
 *     > crash a | restart a      the process, with its folder
 *     > copy a | forget a | put-back a               keeps a copy of the folder; starts with no folder, or with the copy
 *     > compact a KEEP           > status
 */
import { allRules, utf8 } from "@stamp/base";
import type { Message } from "../messages.ts";
import { type Folder, newFolder } from "./disk.ts";
import { textOf, World } from "./world.ts";

export class Dialogue {
  #world: World | undefined;
  readonly #copies = new Map<string, Folder>();
  #lines: string[] = [];

  get #cluster(): World {
    if (this.#world === undefined) throw new Error("a dialogue begins with cluster");
    return this.#world;
  }

  /** Returns the answer to one command, a line for each thing that happened. */
  run(command: string): readonly string[] {
    this.#lines = [];
    const [verb = "", ...words] = command.trim().split(/\s+/);
    if (verb === "cluster") this.#begin(words);
    else this.#act(verb, words);
    return this.#lines;
  }

  #begin(words: readonly string[]): void {
    const voters = words.filter((word) => word !== "trusted");
    // Timeouts rise with the letter, so that a runs first.
    const draw = (id: string): number => Math.min(0.9, voters.indexOf(id) / 10);
    this.#world = new World({ voters, rules: allRules, draw, ...(voters.length < words.length ? { trusted: true } : {}) });
  }

  #act(verb: string, [id = "", other = "", ...more]: readonly string[]): void {
    const world = this.#cluster;
    if (verb === "tick") for (let i = 0; i < Number(other || 1); i++) this.#after(id, () => world.raft(id).tick());
    else if (verb === "settle") this.#settle();
    else if (verb === "propose") this.#after(id, () => this.#say(world.raft(id).propose(utf8([other, ...more].join(" ")))));
    else if (verb === "read") this.#after(id, () => this.#say(world.raft(id).readIndex(1)));
    else if (verb === "campaign") this.#after(id, () => world.raft(id).campaign());
    else if (verb === "transfer") this.#after(id, () => this.#say(world.raft(id).transferLeadership(other)));
    else if (verb === "add") this.#change(id, "addLearner", other);
    else if (verb === "promote" || verb === "remove") this.#change(id, verb, other);
    else if (verb === "cut") world.isolate(id, [other]);
    else if (verb === "heal") world.cut.clear();
    else if (verb === "crash") world.crash(id);
    else if (verb === "restart") world.restart(id);
    else if (verb === "join") world.join(id);
    else if (verb === "copy") this.#copies.set(id, world.member(id).folder);
    else if (verb === "forget") world.restart(id, newFolder());
    else if (verb === "put-back") world.restart(id, this.#copies.get(id));
    else if (verb === "compact") world.compact(id, Number(other));
    else if (verb === "status") this.#status();
    else throw new Error(`no such command: ${verb}`);
  }

  #say(outcome: { readonly ok: boolean; readonly failure?: { readonly message: string } }): void {
    if (!outcome.ok) this.#lines.push(`refused: ${outcome.failure?.message}`);
  }

  #change(id: string, kind: "addLearner" | "promote" | "remove", member: string): void {
    this.#after(id, () => this.#say(this.#cluster.raft(id).changeMembers({ kind, member })));
  }

  /** Does something to a member, and shows what changed. */
  #after(id: string, act: () => void): void {
    const world = this.#cluster;
    const member = world.member(id);
    const before = member.raft.status;
    const { length } = member.state;
    const sent = world.network.length;
    const reads = world.readsDone;
    act();
    world.collect(id);
    const { role, term, leader, full } = member.raft.status;
    if (role !== before.role || term !== before.term)
      this.#lines.push(`${id}: ${role} in term ${term}${leader ? `, leader ${leader}` : ""}`);
    if (full !== before.full) this.#lines.push(`${id}: has its standing`);
    for (const text of member.state.slice(length)) this.#lines.push(`${id}: applies ${text}`);
    if (world.readsDone > reads) this.#lines.push(`${id}: read confirmed`);
    for (const message of world.network.slice(sent)) this.#lines.push(`  ${shown(message)}`);
  }

  #settle(): void {
    const world = this.#cluster;
    for (let steps = 0; steps < 10_000; steps++) {
      let busy = false;
      for (const id of world.members.keys()) {
        while (world.member(id).writing.length > 0) {
          busy = true;
          this.#after(id, () => world.persist(id));
        }
      }
      const next = world.network.shift();
      if (next === undefined && !busy) return;
      if (next === undefined) continue;
      if (world.members.has(next.to) && !world.cut.has(`${next.from}>${next.to}`)) this.#after(next.to, () => world.deliver(next));
      else this.#lines.push(`lost: ${shown(next)}`);
    }
  }

  #status(): void {
    for (const [id, { raft, state }] of [...this.#cluster.members].sort()) {
      const { role, term, full, commit, lastIndex } = raft.status;
      const { voters, learners } = raft.members;
      const members = `${voters.join("+") || "none"}${learners.map((each) => ` (${each})`).join("")}`;
      const standing = full ? "" : ", no standing";
      this.#lines.push(
        `${id}: ${role} in term ${term}${standing}, commit ${commit} of ${lastIndex}, members ${members}, state: ${state.join(", ")}`,
      );
    }
  }
}

/** A message in one line. */
function shown(message: Message): string {
  const { from, to, term, full } = message;
  return `${from}→${to} ${message.kind} (term ${term}${full ? "" : ", no standing"})${detail(message)}`;
}

function detail(message: Message): string {
  switch (message.kind) {
    case "append":
      return ` after ${message.prevIndex}.${message.prevTerm}: ${message.entries.map(textOf).join(", ") || "nothing"}; commit ${message.commit}`;
    case "appendAnswer":
      return message.accepted ? ` to ${message.index}` : ` refused at ${message.index}, try ${message.hintIndex}.${message.hintTerm}`;
    case "vote":
    case "preVote":
      return ` log ${message.lastIndex}.${message.lastTerm}`;
    case "voteAnswer":
    case "preVoteAnswer":
      return message.granted ? " yes" : " no";
    case "heartbeat":
    case "heartbeatAnswer":
      return ` round ${message.round}`;
    case "snapshotOffer":
      return ` at ${message.snapshot.index}.${message.snapshot.term}`;
    case "snapshotChunk":
    case "snapshotAnswer":
      return ` of ${message.index} at ${message.offsetBytes}`;
    case "timeoutNow":
      return "";
  }
}
