/** Findings about processes and managers, each with a change that gives it. */
import { featureLevel } from "@stamp/base";
import type { ProcessAnswer, ProcessFacts } from "../../facts.ts";
import type { processKinds } from "../../kinds/kinds-of-processes.ts";
import { all, type Change, down, everyProcess, nowMs, paused, slow, withAnswer, withFacts, withLevel, withProcess } from "../healthy.ts";
import type { FindingCase } from "./finding-case.ts";

const away = { pid: null, state: "not answering", answer: undefined, absence: "late", silence: "no route" } as const;
const onHostB = ["extent-node-1", "stream-manager-2", "partition-server-2"];
const withoutSecret: Change = (facts) => ({ ...facts, asker: { ...facts.asker, problem: "it is not there" } });

/** Gives each of three lock services metadata of a lineage; empty: it has none. */
const ofLineages =
  (...lineages: readonly string[]): Change =>
  (facts) => {
    const first = facts.processes.find(({ name }) => name === "lock-service-1") as ProcessFacts;
    const others = facts.processes.filter(({ role }) => role !== "lock-service");
    const made = lineages.map((lineage, i) => ({
      ...first,
      name: `lock-service-${i + 1}`,
      answer: { ...(first.answer as ProcessAnswer), facts: { consensus: { full: true, lag: {}, lineage } } },
    }));
    return { ...facts, processes: [...made, ...others] };
  };

export const processCases: Readonly<Record<keyof typeof processKinds, FindingCase>> = {
  "supervisor-gone": { change: (facts) => ({ ...facts, supervisor: "gone", supervisorPid: null }), cause: /processes of the last one/ },
  "supervisor-silent": { change: (facts) => ({ ...facts, supervisor: "silent" }), subject: "999", cause: /999 did not answer/ },
  "supervisor-cannot-write": {
    change: (facts) => ({ ...facts, cluster: { ...facts.cluster, problems: ["run/processes.json: no room (ENOSPC)"] } }),
    cause: /^run\/processes\.json: no room \(ENOSPC\)$/,
    notYet: (facts) => ({ ...facts, cluster: { ...facts.cluster, problems: [] } }),
  },
  "lock-service-away": {
    change: all(paused("lock-service-1"), withAnswer("partition-server-2", { ready: false, waitingFor: ["a lease"] })),
    subject: "lock-service-1",
    cause: /1001 did not answer in time/,
    // Silence alone is no proof.
    notYet: paused("lock-service-1"),
  },
  "processes-silent": {
    change: everyProcess({ answer: undefined, absence: "late", silence: "no answer in time" }),
    cause: /^12 of 12 processes did not answer in time, so whether they serve is not known: lock-service-1, .* and 9 more/,
    help: /^see whether this machine is busy: uptime; then ask again: \.\/stamp health --data \/data$/,
    notYet: all(paused("front-end-1"), paused("extent-node-1")),
  },
  "host-away": {
    change: all(...onHostB.map((name) => withProcess(name, { ...away, host: "b" }))),
    subject: "b",
    cause: /^none of its 3 processes answers: extent-node-1, stream-manager-2, partition-server-2 \(no route\); 7 replicas are on it$/,
    help: /^on host b: see whether the host runs; .*\.\/stamp up -d --data \/data/,
    notYet: all(...onHostB.slice(1).map((name) => withProcess(name, { ...away, host: "b" })), withProcess("extent-node-1", { host: "b" })),
  },
  "secret-not-accepted": {
    change: all(everyProcess({ answer: undefined, absence: "refused", silence: "the server does not know the secret" }), withoutSecret),
    subject: "/data/cluster-secret",
    cause: /^it is not there, so no process answers this command and nothing is known of them$/,
    notYet: withProcess("front-end-1", { answer: undefined, absence: "refused" }),
  },
  "secret-differs": {
    change: withProcess("front-end-1", { answer: undefined, absence: "refused" }),
    subject: "front-end-1",
    cause: /while others accept it/,
  },
  "store-damaged": {
    change: withAnswer("stream-manager-1", { state: "damaged", ready: false, waitingFor: ["an older store was put back"] }),
    subject: "stream-manager-1",
    cause: /an older store.*; no copy of the metadata was found on the extent nodes$/,
    notYet: withAnswer("extent-node-1", { state: "damaged" }),
  },
  "store-empty": {
    change: all(
      withAnswer("lock-service-1", { state: "empty", ready: false, waitingFor: ["a stamp"] }),
      withFacts("extent-node-2", { metadataCopy: { version: 9, takenAtMs: nowMs - 5_000, path: "/data/9.snapshot" } }),
      down("extent-node-1"),
    ),
    subject: "lock-service-1",
    cause: /at extent-node-2: \/data\/9\.snapshot, up to transaction 9, taken 5\.0 s ago \(1 extent node does not answer\)$/,
    help: /^put the newest copy back: \.\/stamp down --data \/data; \.\/stamp metadata restore --replace \/data\/9\.snapshot --data \/data && \.\/stamp up/,
    notYet: withAnswer("lock-service-1", { state: "starting", ready: false }),
  },
  "store-of-another-stamp": {
    change: all(
      withFacts("lock-service-1", { stampId: "new" }),
      withFacts("extent-node-2", { stampId: "old", metadataCopy: { version: 9, takenAtMs: nowMs, path: "/data/files/9.snapshot" } }),
      (facts) => ({ ...facts, setUp: undefined }),
    ),
    subject: "lock-service-1",
    cause: /it is stamp new, but 1 extent node holds data of another: extent-node-2; the newest copy is at extent-node-2/,
    help: /docker compose cp extent-node-2:\/data\/files\/9\.snapshot/,
    notYet: all(withFacts("lock-service-1", { stampId: "new" }), withFacts("extent-node-2", { stampId: "new" })),
  },
  "role-absent": { change: down("front-end-1"), subject: "front-end", cause: /none of 1/, notYet: down("partition-server-1") },
  "process-down": { change: down("partition-server-1"), subject: "partition-server-1", cause: /started again; it ended last with signal/ },
  "process-silent": { change: paused("partition-server-2"), subject: "partition-server-2", cause: /process 1002 did not answer in time/ },
  "process-not-ready": {
    change: withAnswer("front-end-1", { ready: false, state: "starting", waitingFor: ["the map"] }),
    subject: "front-end-1",
    cause: /starting and waits for the map, 3600 s/,
    notYet: withAnswer("front-end-1", { ready: false, state: "starting", waitingFor: ["the map"], uptimeMs: 5_000 }),
  },
  "process-starting": {
    change: withAnswer("front-end-1", { ready: false, state: "starting", waitingFor: ["the map"], uptimeMs: 5_000 }),
    subject: "front-end-1",
    cause: /waits for the map, 5\.0 s/,
  },
  "process-late": {
    change: withAnswer("front-end-1", { waitingFor: ["the map of the ranges"] }),
    subject: "front-end-1",
    cause: /the map of the ranges/,
  },
  "process-cannot-start": {
    change: all(down("extent-node-1"), withProcess("extent-node-1", { restarts: 4, lastExit: "exit code 69: EACCES" })),
    subject: "extent-node-1",
    cause: /4 times and ended with exit code 69: EACCES/,
    notYet: all(down("extent-node-1"), withProcess("extent-node-1", { restarts: 2 })),
  },
  "process-restarts": {
    change: all(withProcess("front-end-1", { restarts: 3 }), withAnswer("front-end-1", { uptimeMs: 60_000 })),
    subject: "front-end-1",
    cause: /3 times, the last time 60 s ago/,
    notYet: withProcess("front-end-1", { restarts: 3 }),
  },
  "release-mix": {
    change: withAnswer("front-end-1", { release: "0.2.0" }),
    cause: new RegExp(`0\\.1\\.0 of level ${featureLevel}: lock-service-1.*; 0\\.2\\.0 of level ${featureLevel}: front-end-1`),
  },
  "process-too-old": {
    change: withAnswer("partition-server-2", { versions: undefined }),
    subject: "partition-server-2",
    cause: new RegExp(`^it knows level 0, and the stamp has level ${featureLevel}$`),
    notYet: all(withLevel(0), withAnswer("partition-server-2", { versions: undefined })),
  },
  "upgrade-open": {
    change: withLevel(0),
    cause: new RegExp(`^every process knows level ${featureLevel}, and the stamp has level 0$`),
    // A node that is in no plan, and one process that does not answer.
    notYet: all(withLevel(0, ["extent-node-9 (extent-node) is down"])),
  },
  "clock-set": {
    change: withAnswer("front-end-1", { wallSetMs: -3_000 }),
    subject: "front-end-1",
    cause: /set 3\.0 s back/,
    notYet: withAnswer("front-end-1", { wallSetMs: 900 }),
  },
  "clock-apart": {
    change: withAnswer("front-end-1", { wallAheadMs: 5_000 }),
    subject: "front-end-1",
    cause: /5\.0 s ahead/,
    notYet: withAnswer("front-end-1", { wallAheadMs: -1_900 }),
  },
  "no-stream-manager": { change: down("stream-manager-1"), cause: /stream-manager-1 does not answer, stream-manager-2 standby/ },
  "no-partition-manager": {
    change: withAnswer("partition-manager-1", { state: "starting", ready: false }),
    cause: /partition-manager-1 starting/,
  },
  "no-standby": { change: down("stream-manager-2"), subject: "stream-manager", cause: /leader, stream-manager-2 does not answer/ },
  "lease-ended": {
    change: withFacts("lock-service-1", { leases: [{ name: "ps/partition-server-1", ended: true, refused: false }] }),
    subject: "partition-server-1",
    cause: /has ended/,
    notYet: withFacts("lock-service-1", { leases: [{ name: "ps/one-of-long-ago", ended: true, refused: false }] }),
  },
  "lease-refused": {
    change: withFacts("lock-service-1", { leases: [{ name: "ps/partition-server-1", ended: false, refused: true }] }),
    subject: "partition-server-1",
    cause: /is refused/,
  },
  "etcd-member-away": {
    change: withFacts("lock-service-1", { etcd: { members: 3, silent: [{ member: "etcd-2:2379", why: "no answer" }], oldRevisions: 0 } }),
    subject: "etcd-2:2379",
    cause: /^it is 1 of 3 members and does not answer \(no answer\)$/,
    notYet: withFacts("lock-service-1", { etcd: { members: 3, silent: [], oldRevisions: 0 } }),
  },
  "etcd-history-grows": {
    change: withFacts("lock-service-1", { etcd: { members: 3, silent: [], oldRevisions: 90_000 } }),
    cause: /^90000 revisions older than two hours$/,
  },
  "metadata-copy-behind": {
    change: withFacts("lock-service-1", { consensus: { full: true, lag: { "lock-service-2": 5_000 } } }),
    subject: "lock-service-2",
    cause: /^it lacks 5000 entries of the log$/,
    notYet: withFacts("lock-service-1", { consensus: { full: true, lag: { "lock-service-2": 500 } } }),
  },
  "metadata-members-differ": {
    change: withFacts("lock-service-1", { consensus: { role: "leader", members: ["a", "b", "c"], voters: ["a", "c"] } }),
    subject: "b",
    cause: /^it has no vote\. 2 lock services vote: the loss of 0 is survived$/,
    help: /^let it vote: \.\/stamp lock-service add b/,
    notYet: withFacts("lock-service-1", { consensus: { role: "leader", members: ["a", "b", "c"], voters: ["a", "b", "c"] } }),
  },
  "metadata-copy-foreign": {
    change: ofLineages("aa", "bb", "bb"),
    subject: "lock-service-1",
    cause: /^its metadata are not those of lock-service-2 and lock-service-3$/,
    notYet: ofLineages("", "bb", "bb"),
  },
  "metadata-keys-many": {
    change: withFacts("lock-service-1", { keys: 801 }),
    subject: "lock-service-1",
    cause: /801 of 1000/,
    notYet: withFacts("lock-service-1", { keys: 799 }),
  },
  "metadata-disk-full": { change: withFacts("lock-service-1", { diskFull: true }), subject: "lock-service-1", cause: /0 B are free/ },
  "metadata-slow": {
    change: withFacts("lock-service-1", { wrote: slow }),
    subject: "lock-service-1",
    cause: /900 ms/,
    notYet: withFacts("lock-service-1", { wrote: { recent: { count: 5, p99Ms: 900 } } }),
  },
};
