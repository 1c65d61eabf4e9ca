/**
 * Changes of the configuration, one member at a time (dissertation, chapter 4). A member comes in as a learner, catches up, and is promoted.
 * Two neighbouring configurations differ in one voter at most, so their majorities share a member.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { MemberId, Members } from "./types.ts";

export interface MemberChange {
  /** Kind of change. `promote`: a learner becomes a voter. `remove`: a voter or learner leaves. */
  readonly kind: "addLearner" | "promote" | "remove";
  readonly member: MemberId;
}

/** Most voters and learners together. */
export const membersMax = 9;

export const isVoter = ({ voters }: Members, id: MemberId): boolean => voters.includes(id);
export const isMember = ({ voters, learners }: Members, id: MemberId): boolean => voters.includes(id) || learners.includes(id);

/** Returns the configuration after the change. */
export function changed(members: Members, { kind, member }: MemberChange): Outcome<Members> {
  const { voters, learners } = members;
  switch (kind) {
    case "addLearner":
      if (isMember(members, member)) return refused("alreadyExists", "badRequest", `${member} is a member already`);
      if (voters.length + learners.length >= membersMax)
        return refused("resourceExhausted", "badRequest", `a cluster has at most ${membersMax} members: remove one first`);
      return ok({ voters, learners: [...learners, member] });
    case "promote":
      if (!learners.includes(member)) return refused("failedPrecondition", "badRequest", `${member} is no learner: add it first`);
      return ok({ voters: [...voters, member], learners: without(learners, member) });
    case "remove":
      if (!isMember(members, member)) return refused("notFound", "badRequest", `${member} is no member`);
      if (voters.length === 1 && voters[0] === member)
        return refused("failedPrecondition", "badRequest", `${member} is the only voter: add and promote another first`);
      return ok({ voters: without(voters, member), learners: without(learners, member) });
  }
}

const without = (ids: readonly MemberId[], member: MemberId): readonly MemberId[] => ids.filter((id) => id !== member);
