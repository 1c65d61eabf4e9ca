/** Rules of consensus, each switched off in lock services that replicate the metadata store. */
import type { Mutant } from "./mutant.ts";

export const consensusMutants: readonly Mutant[] = [
  {
    rules: ["raftVoteChecksLog"],
    workload: "consensus",
    focus: "consensus",
    why: "a member without the last committed entries is elected, and its log is the one that counts",
  },
  {
    rules: ["raftVoteAfterSync"],
    // After each start a member counts in a wide quorum only: its forgotten vote alone elects nobody.
    backedUpBy: ["raftReturningHasNoVote"],
    workload: "consensus",
    focus: "consensus-restarts",
    why: "a member forgets its vote in a crash, votes again, and two lead in one term",
  },
  {
    rules: ["raftAckAfterSync"],
    // The leader applies what is on its own disk, and a member that lost its tail has no standing.
    backedUpBy: ["raftReturningHasNoVote"],
    workload: "consensus",
    focus: "consensus-restarts",
    why: "a write is acknowledged that a majority holds in memory only",
  },
  {
    rules: ["raftPreVote"],
    workload: "consensus",
    focus: "consensus",
    why: "a member that was cut off comes back with a higher term, and the leader is deposed",
  },
  {
    rules: ["raftReadConfirmed"],
    workload: "consensus",
    focus: "consensus-deposed",
    why: "a leader that was deposed while it stood still answers from its old state",
  },
  {
    rules: ["raftReturningHasNoVote"],
    workload: "consensus",
    focus: "consensus",
    why: "a member whose folder was lost or put back votes as if it had forgotten nothing",
  },
  {
    rules: ["consensusWritesSynced"],
    workload: "consensus",
    focus: "consensus-restarts",
    why: "power fails at all members, and what was acknowledged was in no disk",
  },
];
