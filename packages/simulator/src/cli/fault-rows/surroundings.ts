/** Networks, slow and full disks, clocks, pauses, power, and requests that nobody should send. */
import type { FaultRow } from "./fault-row.ts";

export const surroundingRows: readonly FaultRow[] = [
  {
    fault: "network cut between SM and an EN that a client still reaches",
    closedBy: "seal on what answers; the cut replica's reads are at acknowledged places only, which are the same everywhere",
    rules: ["fenceBeforeLength"],
    tests: ["services/stream-manager/src/chaos.test.ts"],
    faults: ["cut-pair", "split"],
  },
  {
    fault: "network cut in one direction; slow network; slow disk",
    closedBy: "deadlines everywhere; a late answer is a failure; no retry without a limit and jitter",
    rules: [],
    tests: ["services/extent-node/src/append/faults.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["partition-one-way", "bad-network", "slow-disk"],
  },
  {
    fault: "one read or write hangs, or the disk favours some over others",
    closedBy:
      "no new operation while over 100 ms of work are in hand or one takes over 200 ms; who waited longest goes first, of any class",
    rules: [
      { name: "diskWorkBounded", workload: "disks", why: "liveness: a disk that favours one file keeps all who want another waiting" },
    ],
    tests: ["packages/extent/src/disk/io-scheduler.test.ts"],
    faults: ["slow-disk", "unfair disks that hang"],
  },
  {
    fault: "a read that can't be answered in time",
    closedBy: "refused at once, so that another replica is asked",
    rules: [{ name: "lateReadsRefused", workload: "disks", why: "liveness: a reader waits for a disk that hangs until his time is over" }],
    tests: ["services/extent-node/src/disk/io.test.ts"],
    faults: ["slow-disk", "unfair disks that hang"],
  },
  {
    fault: "disk full on one EN, on all",
    closedBy: "clean refusal → other nodes; with none left, writes get 503 with the reason, reads go on",
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
    closedBy:
      "the commit log's append is taken back only if its primary refused it before it took a byte; what waits behind goes with it, and what was decided by it meanwhile is refused",
    rules: [
      {
        name: "takenBackTogether",
        unnoticed:
          "the stream refuses the next group at once, too, as long as no node has room: 0 of 40 seeds of queues and 60 of writers with focus full-disks",
      },
      {
        name: "decidedByLostRefused",
        unnoticed:
          "a transaction must be decided from before the refusal until there is room again; until then it finds none itself: 0 of 40 seeds of queues and 60 of writers with focus full-disks",
      },
    ],
    tests: ["packages/range-partition/src/commit/group-commit.test.ts", "packages/range-partition/src/disk-full.test.ts"],
    faults: ["full-disk"],
  },
  {
    fault: "clock jumps",
    closedBy:
      "leases and deadlines use monotonic time, so no step ends a lease; wall time only for what users see (Last-Modified, lease expiry shown, TTL)",
    rules: [],
    tests: ["services/lock-service/src/leases.test.ts", "tests/hosts/clocks.slow.ts"],
    faults: ["clock-jump"],
  },
  {
    fault: "a machine is suspended and resumed",
    closedBy:
      "a lease counts the time of the suspend as passed: monotonic time alone stands still meanwhile. A step of the wall clock is none",
    rules: [
      {
        name: "leaseCountsSuspends",
        workload: "registers",
        focus: "suspends",
        why: "a server whose machine was suspended believes in a lease that ended meanwhile",
      },
    ],
    tests: [
      "packages/lease/src/lease.test.ts",
      "packages/ports-node/src/process/suspend.test.ts",
      "services/lock-service/src/leases.test.ts",
    ],
    faults: ["suspend"],
  },
  {
    fault: "the wall clock of a queue's server is set back, or the queue moves to a server with an earlier one",
    closedBy: "the queue never acts at an earlier time than before; while it is ahead its time goes at half speed",
    rules: [
      { name: "queueClockNeverBack", workload: "queues", focus: "clocks", why: "a message is put before the head of the queue: lost" },
    ],
    tests: ["packages/objects/src/queues/messages.test.ts", "packages/objects/src/queues/model.test.ts"],
    faults: ["clock-jump", "crash"],
  },
  {
    fault: "two take from one queue or write to one blob at once, and the server dies in between",
    closedBy:
      "takes and writes are decided one after another, each seeing what those before it decided; none is durable without them, and an answer waits until what it was made from is durable; others that change the same rows wait until these are durable",
    rules: [
      {
        name: "pipelineSeesPending",
        workload: "queues",
        why: "two take the same message before the first taking is durable",
        also: { workload: "writers", why: "an append takes the place of one that is decided and not durable" },
      },
      {
        name: "pipelineAnswersDurable",
        workload: "queues",
        focus: "held-commits",
        why: "somebody is told of a message whose put is lost",
        also: { workload: "writers", focus: "held-commits", why: "an append at the end is refused because of one that is lost" },
      },
      { name: "plainAfterPipelined", workload: "writers", why: "a collector's rewritten row takes the place of what was acknowledged" },
    ],
    tests: ["packages/range-partition/src/commit/pipelined.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "process paused for long (GC, SIGSTOP) and resumed",
    closedBy: "its lease is checked after each wait, before each ack of a read; writes are fenced",
    rules: ["leaseRecheckedAfterAnswer", "dropBeforeNewLease"],
    tests: ["services/partition-server/src/ranges/moves.test.ts"],
    faults: ["pause"],
  },
  {
    fault: "the whole cluster loses power",
    closedBy: "everything acknowledged is there after restart",
    rules: ["ackOnlyDurable"],
    tests: ["packages/simulator/src/cluster.test.ts"],
    faults: ["power-loss", "whole restarts"],
  },
  {
    fault: "a poisoned request (huge header, bad XML, endless body, bad protobuf)",
    closedBy: "refused with the right error code; the process does not grow or die",
    rules: [],
    tests: ["packages/azure-rest/src/fuzz.test.ts", "packages/ports-node/src/http/http-noise.test.ts"],
    faults: [],
  },
];
