/** Consensus: members of a Raft cluster (`packages/raft`), which its own simulation attacks, and workload `consensus` in lock services. */
import type { FaultRow } from "./fault-row.ts";

const simulation = "packages/raft/src/simulation.test.ts";

export const consensusRows: readonly FaultRow[] = [
  {
    fault: "a member of a Raft cluster forgets its vote in a crash, or a candidate lacks a committed entry",
    closedBy: "term and vote are durable before anybody hears of them; a vote needs a log that is as up to date (`design/consensus.md`)",
    rules: [
      {
        name: "raftVoteAfterSync",
        // After each start a member counts in a wide quorum only: its forgotten vote alone elects nobody.
        backedUpBy: ["raftReturningHasNoVote"],
        workload: "consensus",
        focus: "consensus-restarts",
        why: "a member forgets its vote in a crash, votes again, and two lead in one term",
      },
      {
        name: "raftVoteChecksLog",
        workload: "consensus",
        focus: "consensus",
        why: "a member without the last committed entries is elected, and its log is the one that counts",
      },
    ],
    tests: ["packages/raft/src/paper.test.ts", simulation],
    faults: ["crash", "power-loss", "failpoints"],
  },
  {
    fault: "a Raft leader counts copies that are not on disk, or copies of an entry of an earlier term",
    closedBy: "a member acknowledges what is synced; only entries of the leader's own term are committed by counting",
    rules: [
      {
        name: "raftAckAfterSync",
        // The leader applies what is on its own disk, and a member that lost its tail has no standing.
        backedUpBy: ["raftReturningHasNoVote"],
        workload: "consensus",
        focus: "consensus-restarts",
        why: "a write is acknowledged that a majority holds in memory only",
      },
      {
        name: "raftCommitsOwnTerm",
        unnoticed:
          "a lock service's appends are large, and that of a new leader has an entry of its own term behind those of earlier ones: both are acknowledged together. 0 of 550 seeds of workload consensus noticed; the simulation of the package, which sends entries one by one at times, does",
      },
    ],
    tests: ["packages/raft/src/paper.test.ts", simulation],
    faults: ["crash", "power-loss"],
  },
  {
    fault: "a member of a Raft cluster is cut off, and comes back",
    closedBy: "it asks before it raises its term, and who hears a leader refuses",
    rules: [
      {
        name: "raftPreVote",
        workload: "consensus",
        focus: "consensus",
        why: "a member that was cut off comes back with a higher term, and the leader is deposed",
      },
    ],
    tests: ["packages/raft/src/cluster.test.ts", simulation],
    faults: ["partition", "cut-pair"],
  },
  {
    fault: "a deposed Raft leader answers a read, or renews a lease",
    closedBy: "an answer without an entry waits for a round of heartbeats that began after the question and that a quorum answered",
    rules: [
      {
        name: "raftReadConfirmed",
        workload: "consensus",
        focus: "consensus-deposed",
        why: "a leader that was deposed while it stood still answers from its old state",
      },
    ],
    tests: ["packages/raft/src/cluster.test.ts", simulation],
    faults: ["pause", "cut-pair"],
  },
  {
    fault: "two changes of the members of a Raft cluster are under way at once",
    closedBy: "the next change waits for the commit of the one before it, and of an entry of the leader's term",
    rules: [
      {
        name: "raftOneChangeAtATime",
        unnoticed:
          "members are changed by command (stamp lock-service), and no workload has an operator who does. While changes are not committed the quorums of all of them are needed here, so few histories go wrong",
      },
    ],
    tests: ["packages/raft/src/cluster.test.ts", simulation],
    faults: [],
  },
  {
    fault: "the folder of a member of a Raft cluster is lost, or an older one is put back",
    closedBy:
      "a member that starts has no standing until an entry that names its start is committed; until then it counts only in a wide quorum",
    rules: [
      {
        name: "raftReturningHasNoVote",
        workload: "consensus",
        focus: "consensus",
        why: "a member whose folder was lost or put back votes as if it had forgotten nothing",
      },
    ],
    tests: ["packages/raft/src/cluster.test.ts", "packages/raft/src/dialogues.test.ts", simulation],
    faults: ["member-folder"],
  },
  {
    fault: "power fails at all lock services that replicate the metadata store at once",
    closedBy: "log, term and vote of one step are one batch, synced before anybody hears of it (`design/consensus.md`)",
    rules: [
      {
        name: "consensusWritesSynced",
        workload: "consensus",
        focus: "consensus-restarts",
        why: "power fails at all members, and what was acknowledged was in no disk",
      },
    ],
    tests: ["services/lock-service/src/store/replicated.test.ts"],
    faults: ["power-loss"],
  },
  {
    fault: "the folder of a lock service is put into another stamp, and speaks with a higher term",
    closedBy: "messages name the lineage of the sender's rows; a member of another lineage takes nothing from them (`design/consensus.md`)",
    rules: [
      {
        name: "consensusSameLineage",
        unnoticed: "the folders that the simulator puts back are the member's own, and none is of another stamp",
      },
    ],
    tests: ["services/lock-service/src/consensus/member-folders.test.ts"],
    faults: [],
  },
];
