/** Consensus: members of a Raft cluster (`packages/raft`), which its own simulation attacks, and workload `consensus` in lock services. */
import type { FaultRow } from "./fault-row.ts";

const simulation = "packages/raft/src/simulation.test.ts";

export const consensusRows: readonly FaultRow[] = [
  {
    fault: "a member of a Raft cluster forgets its vote in a crash, or a candidate lacks a committed entry",
    rules: ["raftVoteAfterSync", "raftVoteChecksLog"],
    tests: ["packages/raft/src/paper.test.ts", simulation],
    faults: ["crash", "power-loss", "failpoints"],
  },
  {
    fault: "a Raft leader counts copies that are not on disk, or copies of an entry of an earlier term",
    rules: ["raftAckAfterSync", "raftCommitsOwnTerm"],
    tests: ["packages/raft/src/paper.test.ts", simulation],
    faults: ["crash", "power-loss"],
  },
  {
    fault: "a member of a Raft cluster is cut off, and comes back",
    rules: ["raftPreVote"],
    tests: ["packages/raft/src/cluster.test.ts", simulation],
    faults: ["partition", "cut-pair"],
  },
  {
    fault: "a deposed Raft leader answers a read, or renews a lease",
    rules: ["raftReadConfirmed"],
    tests: ["packages/raft/src/cluster.test.ts", simulation],
    faults: ["pause", "cut-pair"],
  },
  {
    fault: "two changes of the members of a Raft cluster are under way at once",
    rules: ["raftOneChangeAtATime"],
    tests: ["packages/raft/src/cluster.test.ts", simulation],
    faults: [],
  },
  {
    fault: "the folder of a member of a Raft cluster is lost, or an older one is put back",
    rules: ["raftReturningHasNoVote"],
    tests: ["packages/raft/src/cluster.test.ts", "packages/raft/src/dialogues.test.ts", simulation],
    faults: ["member-folder"],
  },
  {
    fault: "power fails at all lock services that replicate the metadata store at once",
    rules: ["consensusWritesSynced"],
    tests: ["services/lock-service/src/store/replicated.test.ts"],
    faults: ["power-loss"],
  },
  {
    fault: "the folder of a lock service is put into another stamp, and speaks with a higher term",
    rules: ["consensusSameLineage"],
    tests: ["services/lock-service/src/consensus/member-folders.test.ts"],
    faults: [],
  },
];
