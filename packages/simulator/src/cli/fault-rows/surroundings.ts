/** Networks, slow and full disks, clocks, pauses, power, and requests that nobody should send. */
import type { FaultRow } from "./fault-row.ts";

export const surroundingRows: readonly FaultRow[] = [
  {
    fault: "network cut between SM and an EN that a client still reaches",
    rules: ["fenceBeforeLength"],
    tests: ["services/stream-manager/src/chaos.test.ts"],
    faults: ["cut-pair", "split"],
  },
  {
    fault: "network cut in one direction; slow network; slow disk",
    rules: [],
    tests: ["services/extent-node/src/append/faults.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["partition-one-way", "bad-network", "slow-disk"],
  },
  {
    fault: "one read or write hangs, or the disk favours some over others",
    rules: ["diskWorkBounded"],
    tests: ["packages/extent/src/disk/io-scheduler.test.ts"],
    faults: ["slow-disk", "unfair disks that hang"],
  },
  {
    fault: "a read that can't be answered in time",
    rules: ["lateReadsRefused"],
    tests: ["services/extent-node/src/disk/io.test.ts"],
    faults: ["slow-disk", "unfair disks that hang"],
  },
  {
    fault: "disk full on one EN, on all",
    rules: [],
    tests: [
      "services/extent-node/src/disk/disk-full.test.ts",
      "packages/stream-client/src/disk-full.test.ts",
      "tests/drills/disk-full.slow.ts",
    ],
    faults: ["full-disk"],
  },
  {
    fault: "no node has room for a commit that others were decided by",
    rules: ["takenBackTogether", "decidedByLostRefused"],
    tests: ["packages/range-partition/src/commit/group-commit.test.ts", "packages/range-partition/src/disk-full.test.ts"],
    faults: ["full-disk"],
  },
  {
    fault: "clock jumps",
    rules: [],
    tests: ["services/lock-service/src/leases.test.ts", "tests/hosts/clocks.slow.ts"],
    faults: ["clock-jump"],
  },
  {
    fault: "a machine is suspended and resumed",
    rules: ["leaseCountsSuspends"],
    tests: [
      "packages/lease/src/lease.test.ts",
      "packages/ports-node/src/process/suspend.test.ts",
      "services/lock-service/src/leases.test.ts",
    ],
    faults: ["suspend"],
  },
  {
    fault: "the wall clock of a queue's server is set back, or the queue moves to a server with an earlier one",
    rules: ["queueClockNeverBack"],
    tests: ["packages/objects/src/queues/messages.test.ts", "packages/objects/src/queues/model.test.ts"],
    faults: ["clock-jump", "crash"],
  },
  {
    fault: "two take from one queue or write to one blob at once, and the server dies in between",
    rules: ["pipelineSeesPending", "pipelineAnswersDurable", "plainAfterPipelined"],
    tests: ["packages/range-partition/src/commit/pipelined.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "process paused for long (GC, SIGSTOP) and resumed",
    rules: ["leaseRecheckedAfterAnswer", "dropBeforeNewLease"],
    tests: ["services/partition-server/src/ranges/moves.test.ts"],
    faults: ["pause"],
  },
  {
    fault: "the whole cluster loses power",
    rules: ["ackOnlyDurable"],
    tests: ["packages/simulator/src/cluster.test.ts"],
    faults: ["power-loss", "whole restarts"],
  },
  {
    fault: "a poisoned request (huge header, bad XML, endless body, bad protobuf)",
    rules: [],
    tests: ["packages/azure-rest/src/fuzz.test.ts", "packages/ports-node/src/http/http-noise.test.ts"],
    faults: [],
  },
];
