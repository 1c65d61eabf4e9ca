/**
 * Answers an operator about the members that replicate the metadata store: who they are, one more or one less, another leader. The leader
 * answers; the others refuse, and name it.
 *
 * Invariants:
 *   - One change at a time: Raft refuses the next one until this one is committed (rule raftOneChangeAtATime).
 *   - No change is made after which the voters that answer now would be no majority, so a command never takes the stamp out of service.
 *   - Two vote at least: after a start nobody could tell a single voter what its folder forgot.
 */
import { FailureError, type Outcome, ok, refused } from "@stamp/base";
import type { Address } from "@stamp/ports";
import { isMember, isVoter, type MemberChange, type MemberId } from "@stamp/raft";
import { type ChangeMemberRequest, MemberDuty, type TransferLeadershipRequest, toWire } from "@stamp/wire";
import type { Leading } from "./leading.ts";
import type { Member } from "./member.ts";

export interface LeadingMember {
  readonly member: Member;
  readonly leading: Leading;
}

export interface MemberCommandsOptions {
  /** Name of this process. */
  readonly name: MemberId;
  /** Lock services of the configuration. */
  readonly addresses: ReadonlyMap<MemberId, Address>;
  /** Refuses if this process does not lead. */
  readonly led: () => Outcome<LeadingMember>;
}

/** Returns the handlers of the calls of Consensus that operators make. */
export function memberCommands({ name, addresses, led }: MemberCommandsOptions) {
  return {
    listMembers: () =>
      whileLeading(led, async ({ member, leading }) => {
        // A deposed leader's list may be an old one.
        await member.confirm(leading);
        const { voters, learners } = member.members;
        const names = [...new Set([...addresses.keys(), ...voters, ...learners])].sort();
        return ok({ term: toWire(leading.term), members: names.map((id) => shown(member, id, id === name, addresses.get(id) ?? "")) });
      }),
    changeMember: ({ name: id, duty }: ChangeMemberRequest) =>
      whileLeading(led, async ({ member, leading }) => {
        if (!addresses.has(id) && !isMember(member.members, id)) return unknownMember(id, addresses);
        const change = changeTo(member, id, duty);
        if (!change.ok) return change;
        if (change.value === undefined) return ok({});
        const why = change.value.kind === "remove" ? refusedRemoval(member, name, id) : undefined;
        if (why !== undefined) return refused("failedPrecondition", "conflict", why);
        await member.changeMembers(leading, change.value);
        return ok({});
      }),
    transferLeadership: ({ to }: TransferLeadershipRequest) =>
      whileLeading(led, async ({ member }) => {
        if (to === name) return ok({ to });
        const why = refusedHandover(member, to, addresses);
        if (why !== undefined) return refused("failedPrecondition", "conflict", why);
        const told = member.transfer(to === "" ? undefined : to);
        return told.ok ? ok({ to: told.value }) : told;
      }),
  };
}

async function whileLeading<T>(led: () => Outcome<LeadingMember>, work: (led: LeadingMember) => Promise<Outcome<T>>): Promise<Outcome<T>> {
  const found = led();
  if (!found.ok) return found;
  try {
    return await work(found.value);
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

function shown(member: Member, id: MemberId, leads: boolean, address: Address) {
  const { status, members } = member;
  const follower = member.followers.get(id);
  const duty = isVoter(members, id) ? MemberDuty.VOTER : isMember(members, id) ? MemberDuty.LEARNER : MemberDuty.NONE;
  if (leads) return { name: id, address, duty, leads, answers: true, full: status.full, caughtUp: true, behind: 0n };
  const { answers = false, full = false, caughtUp = false } = follower ?? {};
  const behind = toWire(follower === undefined ? 0 : status.lastIndex - follower.match);
  return {
    name: id,
    address,
    duty,
    leads,
    answers,
    full: answers && full,
    caughtUp: answers && full && (duty === MemberDuty.VOTER || caughtUp),
    behind,
  };
}

const unknownMember = (id: MemberId, addresses: ReadonlyMap<MemberId, Address>): Outcome<never> =>
  refused(
    "notFound",
    "badRequest",
    `there is no lock service ${id}: \`members\` names ${[...addresses.keys()].join(", ")}. Name the new one there first, on each lock service`,
  );

/** Returns the change that gives the duty; undefined: it is so already. */
function changeTo({ members }: Member, id: MemberId, duty: MemberDuty): Outcome<MemberChange | undefined> {
  const [member, voter] = [isMember(members, id), isVoter(members, id)];
  switch (duty) {
    case MemberDuty.NONE:
      return ok(member ? { kind: "remove", member: id } : undefined);
    case MemberDuty.LEARNER:
      // A voter is more than a learner: whoever adds it again finds it there.
      return ok(member ? undefined : { kind: "addLearner", member: id });
    case MemberDuty.VOTER:
      return ok(voter ? undefined : { kind: "promote", member: id });
    default:
      return refused("invalidArgument", "badRequest", `duty ${duty}: this release knows none, learner and voter`);
  }
}

/** Returns why the member can't lead now, in words; undefined: it can. `to` is empty: any other member. */
function refusedHandover({ members, followers }: Member, to: MemberId, addresses: ReadonlyMap<MemberId, Address>): string | undefined {
  if (to !== "" && !isMember(members, to)) {
    const known = addresses.has(to) ? `add it first (stamp lock-service add ${to})` : `members are ${members.voters.join(", ")}`;
    return `${to} is no member, so it can't lead: ${known}`;
  }
  if (to !== "" && !isVoter(members, to)) return `${to} has no vote yet: wait until it has (stamp lock-service add ${to})`;
  const fit = [...followers].some(([id, { answers, full }]) => (to === "" || id === to) && isVoter(members, id) && answers && full);
  return fit
    ? undefined
    : `${to === "" ? "no other voter answers" : `${to} does not answer`} with its standing: see stamp lock-service list, and try again`;
}

/** Returns why the member can't leave now, in words; undefined: it can. */
function refusedRemoval(member: Member, leader: MemberId, id: MemberId): string | undefined {
  if (id === leader) return `${id} leads: hand leadership over first (stamp lock-service transfer)`;
  if (!isVoter(member.members, id)) return undefined;
  const rest = member.members.voters.filter((voter) => voter !== id);
  if (rest.length < 2) {
    return `${id} and ${leader} are the last two: one alone can't know that its folder is what it left. Add another lock service first`;
  }
  const answering = rest.filter((voter) => {
    const follower = member.followers.get(voter);
    return voter === leader ? member.status.full : follower?.answers === true && follower.full;
  });
  if (answering.length * 2 > rest.length) return undefined;
  return `without ${id}, ${rest.length} vote, and only ${answering.length} of them answer with their standing, which is no majority: start the others first`;
}
