/** `stamp lock-service list|add|remove|transfer`: the members that replicate the metadata store (docs/guides/metadata.md). */
import type { Failure, Outcome } from "@stamp/base";
import { lockServices } from "@stamp/metadata-store";
import type { Client } from "@stamp/ports";
import { NodeClock } from "@stamp/ports-node";
import { Consensus, type ConsensusMember, type ListMembersResponse, MemberDuty } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError } from "../context.ts";
import { table } from "../print.ts";
import { withProgress } from "../progress.ts";
import { inspect, make, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";

const pollMs = 300;
const callTimeoutMs = 10_000;

/** Lock service, as `stamp lock-service list` shows it. */
export interface ToldMember {
  readonly name: string;
  /** Address of the member; null: the configuration does not name the member. */
  readonly address: string | null;
  readonly duty: "voter" | "learner" | "none";
  readonly leads: boolean;
  readonly answers: boolean;
  /** True if the member counts in a majority. */
  readonly standing: boolean;
  readonly caughtUp: boolean;
  /** Number of log entries that the member has not acknowledged. */
  readonly behind: number;
}

export interface ToldMembers {
  readonly term: number;
  readonly members: readonly ToldMember[];
}

export function addLockService(program: Command): void {
  const lockService = topLevel(program, "lock-service");
  make(lockService, "list", "the lock services that replicate the metadata store, as their leader sees them").action(
    async (_options, command: Command) => tell(command, await asked(command, (consensus) => membersOf(consensus)), membersText),
  );
  make(lockService, "add <name>", "make a lock service of the configuration a member: it takes the log first, and then votes").action(
    async (name: string, _options, command: Command) => {
      const added = await asked(command, (consensus) => addMember(consensus, name));
      tell(command, added, (members) => `${name} votes\n${membersText(members)}`);
    },
  );
  make(lockService, "remove <name>", "let a member go: it has no vote any more, and may be switched off").action(
    async (name: string, _options, command: Command) => {
      const removed = await asked(command, (consensus) => removeMember(consensus, name));
      const then = "take it out of the configuration, and start the lock services again one by one";
      tell(command, removed, (members) => `${name} is no member any more: ${then}\n${membersText(members)}`);
    },
  );
  make(lockService, "transfer [name]", "hand leadership over: to this member, or to the one whose log is the longest").action(
    async (name: string | undefined, _options, command: Command) => {
      const told = await asked(command, (consensus) => transferTo(consensus, name ?? ""));
      tell(command, told, (members) => `${leaderOf(members)?.name} leads\n${membersText(members)}`);
    },
  );
}

type ConsensusClient = Pick<Client<typeof Consensus>, "listMembers" | "changeMember" | "transferLeadership">;

const asked = (command: Command, work: (consensus: ConsensusClient) => Promise<ToldMembers>): Promise<ToldMembers> =>
  inspect(command, (_inspector, transport, lockService) =>
    work(lockServices({ clock: new NodeClock(), transport }, lockService, Consensus)),
  );

const call = { timeoutMs: callTimeoutMs };

async function membersOf(consensus: ConsensusClient): Promise<ToldMembers> {
  return toldMembers(given(await consensus.listMembers({}, call)));
}

/** Makes it a learner, waits until it has caught up, and makes it a voter. If it is one of these already, goes on from there. */
export async function addMember(consensus: ConsensusClient, name: string): Promise<ToldMembers> {
  given(await consensus.changeMember({ name, duty: MemberDuty.LEARNER }, call));
  const afterwards = `${name} goes on taking the log, without a vote. To go on from there: ./stamp lock-service add ${name}`;
  await untilSo({ what: `${name} takes the log`, afterwards }, consensus, (members) => {
    const member = members.find((each) => each.name === name);
    return member?.caughtUp === true || member?.duty === "voter"
      ? undefined
      : member?.answers === true
        ? `it lacks ${member.behind} entries`
        : "it does not answer: ./stamp status";
  });
  given(await consensus.changeMember({ name, duty: MemberDuty.VOTER }, call));
  return membersOf(consensus);
}

/** Hands leadership over first, if the member leads. */
export async function removeMember(consensus: ConsensusClient, name: string): Promise<ToldMembers> {
  if (leaderOf(await membersOf(consensus))?.name === name) await transferTo(consensus, "");
  given(await consensus.changeMember({ name, duty: MemberDuty.NONE }, call));
  return membersOf(consensus);
}

/** Hands leadership to a member, and waits until it leads. */
export async function transferTo(consensus: ConsensusClient, name: string): Promise<ToldMembers> {
  const { to } = given(await consensus.transferLeadership({ to: name }, call));
  const about = { what: `leadership is handed to ${to}`, afterwards: "See who leads: ./stamp lock-service list" };
  let tries = 0;
  return untilSo(about, consensus, (members) => {
    const leader = leaderOf({ members })?.name;
    if (leader === to) return undefined;
    // Raft gives a handover up after an election timeout.
    if (++tries > 20) throw new CommandError(`${leader ?? "nobody"} leads, not ${to}: ${to} did not take over. Try again`);
    return `${leader ?? "nobody"} leads`;
  });
}

/** Lists the members until `waitsFor` says that nothing is left to wait for. */
function untilSo(
  about: Parameters<typeof withProgress>[0],
  consensus: ConsensusClient,
  waitsFor: (members: readonly ToldMember[]) => string | undefined,
): Promise<ToldMembers> {
  return withProgress(about, async (tellProgress) => {
    for (;;) {
      const told = await membersOf(consensus);
      const waits = waitsFor(told.members);
      if (waits === undefined) return told;
      tellProgress(waits);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  });
}

function given<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new CommandError(inWords(outcome.failure));
}

const inWords = ({ reason, message }: Failure): string =>
  reason === "unknownMethod"
    ? "the lock services of this stamp do not replicate the metadata store among themselves (docs/guides/metadata.md)"
    : message;

const duties: Readonly<Record<MemberDuty, ToldMember["duty"]>> = {
  [MemberDuty.UNSPECIFIED]: "none",
  [MemberDuty.NONE]: "none",
  [MemberDuty.LEARNER]: "learner",
  [MemberDuty.VOTER]: "voter",
};

export const toldMembers = ({ term, members }: ListMembersResponse): ToldMembers => ({ term: Number(term), members: members.map(told) });

function told({ name, address, duty, leads, answers, full, caughtUp, behind }: ConsensusMember): ToldMember {
  return {
    name,
    address: address === "" ? null : address,
    duty: duties[duty] ?? "none",
    leads,
    answers,
    standing: full,
    caughtUp,
    behind: Number(behind),
  };
}

const leaderOf = ({ members }: Pick<ToldMembers, "members">): ToldMember | undefined => members.find(({ leads }) => leads);

export function membersText({ term, members }: ToldMembers): string {
  const rows = members.map((each) => [each.name, each.address ?? "not in the configuration", each.duty, stateOf(each), each.behind]);
  const voters = members.filter(({ duty }) => duty === "voter").length;
  const losses = Math.floor((voters - 1) / 2);
  const even = voters % 2 === 0 ? `; ${voters - 1} voters survive as many` : "";
  const sum = `Term ${term}. ${voters} ${voters === 1 ? "votes" : "vote"}: the loss of ${losses} of them is survived${even}.`;
  return `${table(["LOCK SERVICE", "ADDRESS", "DUTY", "STATE", "BEHIND"], rows)}\n${sum}`;
}

function stateOf({ leads, duty, answers, standing, caughtUp }: ToldMember): string {
  if (leads) return standing ? "leads" : "leads, without its standing";
  if (duty === "none") return "no member: ./stamp lock-service add";
  if (!answers) return "does not answer";
  if (!standing) return "without its standing";
  return duty === "learner" && !caughtUp ? "catches up" : "follows";
}
