/** Findings about configuration and files, each with a change that gives it. */
import type { setUpKinds } from "../../kinds/kinds-of-set-up.ts";
import { all, endsIn, nowMs, open, withAnswer, withFacts, withSetUp } from "../healthy.ts";
import type { FindingCase } from "./finding-case.ts";

export const setUpCases: Readonly<Record<keyof typeof setUpKinds, FindingCase>> = {
  "public-key-reachable": {
    change: withSetUp({ ...open, developmentAccountForOthers: true }),
    subject: "0.0.0.0",
    cause: /allowDevelopmentAccount/,
    notYet: withSetUp({ developmentAccountForOthers: true }),
  },
  "reachable-by-others": {
    change: withSetUp(open),
    subject: "0.0.0.0",
    cause: /REST on 10000-10002/,
  },
  "internal-ports-reachable": {
    change: withSetUp({ internalBind: "10.1.2.3", internalReach: "gRPC on 10100-10111" }),
    subject: "10.1.2.3",
    cause: /gRPC on 10100-10111/,
    notYet: withSetUp(open),
  },
  "no-tls": { change: withSetUp(open), subject: "0.0.0.0", cause: /tlsCert/ },
  "no-account": { change: withSetUp({ ...open, noAccount: "only devstoreaccount1" }), cause: /only devstoreaccount1/ },
  "certificate-ended": {
    change: withSetUp(endsIn(-1)),
    subject: "/server.pem",
    cause: /ended at 2026-11-24/,
    notYet: withSetUp(endsIn(1)),
  },
  "certificate-ends": { change: withSetUp(endsIn(12)), subject: "/server.pem", cause: /in 12 days/, notYet: withSetUp(endsIn(31)) },
  "certificate-unreadable": {
    change: withSetUp({ tls: { certificate: "/server.pem", endsAtMs: undefined, problem: "not a certificate" } }),
    subject: "/server.pem",
    cause: /not a certificate/,
  },
  "cluster-certificate-ended": {
    change: withSetUp({ peers: endsIn(-1).tls }),
    subject: "/server.pem",
    cause: /ended at 2026-11-24/,
    notYet: withSetUp({ peers: endsIn(1).tls }),
  },
  "cluster-certificate-ends": {
    change: withSetUp({ peers: endsIn(12).tls }),
    subject: "/server.pem",
    cause: /in 12 days/,
    help: /certs cluster rotate/,
    notYet: withSetUp({ peers: endsIn(31).tls }),
  },
  "cluster-certificate-unusable": {
    change: withSetUp({ peers: { certificate: "/server.pem", endsAtMs: undefined, problem: "not the one of" } }),
    subject: "/server.pem",
    cause: /not the one of/,
  },
  "secret-unusable": {
    change: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs, problem: "/data/cluster-secret is a folder" } }),
    subject: "front-end-1",
    cause: /is a folder/,
    notYet: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs, problem: "" } }),
  },
  "secret-rotation-open": {
    change: withAnswer("front-end-1", { secret: { ids: ["aa", "bb"], madeMs: nowMs, problem: "" } }),
    cause: /1 process accepts two: front-end-1/,
    help: /secret rotate/,
    notYet: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs, problem: "" } }),
  },
  "secret-old": {
    change: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs - 366 * 86_400_000, problem: "" } }),
    cause: /made 366 days ago/,
    notYet: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs - 365 * 86_400_000, problem: "" } }),
  },
  "master-key-unusable": {
    change: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "/data/master-key is gone" }),
    subject: "partition-server-1",
    cause: /is gone/,
    notYet: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
  },
  "master-keys-differ": {
    change: all(
      withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
      withFacts("partition-server-2", { masterKeys: [], masterKeyProblem: "" }),
    ),
    cause: /partition-server-1 with aa; partition-server-2 with none/,
    notYet: all(
      withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
      withFacts("partition-server-2", { masterKeys: ["aa"], masterKeyProblem: "" }),
    ),
  },
  "master-key-rotation-open": {
    change: withFacts("partition-server-1", { masterKeys: ["aa", "bb"], masterKeyProblem: "" }),
    cause: /1 partition server with several: partition-server-1/,
    notYet: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
  },
  "master-key-old": {
    change: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "", masterKeyMadeMs: nowMs - 366 * 86_400_000 }),
    cause: /made 366 days ago/,
    notYet: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "", masterKeyMadeMs: nowMs - 365 * 86_400_000 }),
  },
  "fault-rules-on": {
    change: withFacts("front-end-1", { faultRules: { rules: 2, hits: 17 } }),
    subject: "front-end-1",
    cause: /2 rules at front-end-1; 17 requests met one/,
    help: /faults remove --all/,
    notYet: withFacts("front-end-1", { faultRules: { rules: 0, hits: 17 } }),
  },
  "fault-rules-taken": {
    change: withFacts("front-end-1", { faultRules: { rules: 0, hits: 0 } }),
    subject: "front-end-1",
    cause: /no rule acts/,
    notYet: withFacts("front-end-1", {}),
  },
  "copies-not-possible": { change: withSetUp({ copies: 5 }), cause: /copies is 5, and 4 extent nodes run/ },
  "domains-too-few": {
    change: withSetUp({ faultDomains: ["a", "b"] }),
    cause: /2 fault domains for 3 copies/,
    notYet: withSetUp({ faultDomains: ["a", "b", "c"] }),
  },
  "files-open": { change: withSetUp({ openPaths: ["/data/logs"] }), subject: "/data/logs", cause: /\/data\/logs/ },
};
