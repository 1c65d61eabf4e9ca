import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inContainers } from "@stamp/cluster";
import { findingsOf, healthOf } from "./findings.ts";
import { healthText } from "./health-text.ts";
import { helpAt } from "./help-text.ts";
import { type Code, kinds } from "./kinds/kinds.ts";
import { diskCases } from "./testing/finding-cases/cases-of-disks.ts";
import { extentCases } from "./testing/finding-cases/cases-of-extents.ts";
import { processCases } from "./testing/finding-cases/cases-of-processes.ts";
import { rangeCases } from "./testing/finding-cases/cases-of-ranges.ts";
import { setUpCases } from "./testing/finding-cases/cases-of-set-up.ts";
import type { FindingCase } from "./testing/finding-cases/finding-case.ts";
import {
  all,
  type Change,
  down,
  everyProcess,
  healthy,
  paused,
  withAnswer,
  withFacts,
  withNode,
  withNodes,
  without,
  withProcess,
  withRange,
  withRepair,
  withServer,
  withSetUp,
} from "./testing/healthy.ts";

const cases: Readonly<Record<Code, FindingCase>> = { ...processCases, ...diskCases, ...extentCases, ...rangeCases, ...setUpCases };

describe("findings of health", () => {
  it("a healthy stamp has none, and says what it is made of", () => {
    const health = healthOf(healthy);
    assert.deepEqual(health.findings, []);
    assert.equal(health.sentence, "healthy: 12 of 12 processes are ready, 2 ranges are served, 4 extent nodes keep the data");
  });

  it("a node that answers and that the stream manager does not hear: the cause has what the node waits for", () => {
    const why = "the disk is that of node extent-node-1";
    const facts = all(withNode(2, { up: false }), withAnswer("extent-node-2", { ready: false, waitingFor: [why] }))(healthy);
    const found = findingsOf(facts).filter(({ code }) => code === "node-down");
    assert.deepEqual([found.length, found[0]?.cause.endsWith(`; it waits for ${why}`)], [1, true]);
  });

  for (const [code, { change, subject = "", cause, help, notYet }] of Object.entries(cases) as [Code, FindingCase][]) {
    it(`${code}: is found, with its cause and what helps`, () => {
      const found = findingsOf(change(healthy)).filter((each) => each.code === code);
      assert.equal(found.length, 1, JSON.stringify(findingsOf(change(healthy))));
      assert.equal(found[0]?.subject, subject);
      assert.match(found[0]?.cause ?? "", cause);
      assert.equal(found[0]?.severity, kinds[code].severity);
      assert.doesNotMatch(found[0]?.help ?? "SUBJECT", /SUBJECT|PID/);
      assert.doesNotMatch(found[0]?.help ?? "", /--init/);
      if (help !== undefined) assert.match(found[0]?.help ?? "", help);
      const not = notYet === undefined ? [] : findingsOf(notYet(healthy)).filter((each) => each.code === code);
      assert.deepEqual(not, []);
    });
  }

  it("one of something is told as one", () => {
    const one = all(
      ...[
        withRepair({ replicasWaiting: 1n, replicasInGrace: 1n, endangered: 1n, unreachable: 1n }),
        withNode(2, { up: false, replicas: 1n }),
      ],
      ...[withSetUp({ extentNodes: 1, copies: 3 }), withProcess("front-end-1", { restarts: 3 }), withRange({ server: "" })],
      ...[
        withFacts("front-end-1", {
          admission: { standing: true, atWork: 1, waiting: 1 },
          took: { read: { "5xx": { recent: { count: 1 } } } },
        }),
      ],
      ...[withFacts("extent-node-1", { extents: { damaged: 1 }, scrub: { enabled: true, findings: 1 } })],
      withFacts("stream-manager-1", { sealedWithLoss: 1 }),
    );
    const causes = findingsOf(one(healthy)).map(({ cause }) => cause);
    assert.ok(causes.length >= 12, causes.join("\n"));
    const words = "nodes|replicas|extents|ranges|requests|others|findings|attempts|processes|days|domains";
    assert.deepEqual(
      causes.filter((cause) => new RegExp(`(^|[^\\d.])1 (\\w+ )?(${words})\\b`).test(cause)),
      [],
    );
    const alone = without(...["extent-node-2", "extent-node-3", "extent-node-4"]);
    const sentence = healthOf({ ...alone(healthy), streamLayer: undefined, partitionLayer: undefined, processes: [] }).sentence;
    assert.equal(sentence, "healthy: 0 of 0 processes are ready, 0 ranges are served, 0 extent nodes keep the data");
    assert.match(healthOf(all(alone, (facts) => ({ ...facts, streamLayer: undefined }))(healthy)).sentence, /in time/);
    const single = healthOf(
      all(
        alone,
        withSetUp({ extentNodes: 1, copies: 1, minCopies: 1 }),
        withNodes((node) => node.nodeId === "extent-node-1"),
      )(healthy),
    );
    assert.match(single.sentence, /9 processes are ready, 2 ranges are served, 1 extent node keeps the data$/);
  });

  it("what an extent node is late with is told by its own finding, and not again as process-late", () => {
    const late = { ageMs: 130_000, failures: 4, failure: "no room", kept: 3 };
    const change = all(
      withAnswer("extent-node-1", { waitingFor: ["a copy of the metadata, for 130 s: no room"] }),
      withFacts("extent-node-1", { metadataCopy: late }),
    );
    assert.deepEqual(
      findingsOf(change(healthy)).map(({ code }) => code),
      ["metadata-copy-old"],
    );
  });

  it("a process that is down or paused is told once, with what depends on it", () => {
    const codes = (change: Change): string[] => findingsOf(change(healthy)).map((each) => each.code);
    assert.deepEqual(codes(down("extent-node-2")), ["node-down"]);
    const leftOut = all(without("extent-node-4"), withNode(4, { up: false }), withSetUp({ notStarted: ["extent-node-4"], extentNodes: 3 }));
    assert.deepEqual(codes(leftOut), ["node-not-started", "no-spare-node"]);
    assert.deepEqual(codes(paused("partition-server-1")), ["process-silent"], "the partition manager hears it");
    assert.deepEqual(codes(all(paused("partition-server-1"), withServer({ up: false }))), ["range-server-away", "process-silent"]);
    assert.deepEqual(codes(paused("extent-node-2")), ["process-silent"], "the stream manager hears it");
    assert.deepEqual(codes(all(paused("extent-node-2"), withNode(2, { up: false }))).includes("node-down"), true);
    assert.deepEqual(codes(all(down("stream-manager-1"), (facts) => ({ ...facts, streamLayer: undefined }))), [
      "no-stream-manager",
      "process-down",
    ]);
  });
});

describe("the sentence of health", () => {
  const sentenceOf = (...changes: readonly Change[]): string => healthOf(all(...changes)(healthy)).sentence;

  it("says first what is not served, then what is in danger, then what needs attention", () => {
    const degraded = withSetUp({ copies: 5 });
    const danger = withRepair({ endangered: 1n });
    const stops = withRange({ server: "" });
    assert.match(sentenceOf(degraded), /^serving, and needs attention: copies is 5/);
    assert.match(sentenceOf(degraded, danger), /^serving, and IN DANGER: .*one intact copy left \(and 1 more finding\)$/);
    assert.match(sentenceOf(degraded, danger, stops), /^NOT SERVING EVERYTHING: blob-1: .* \(and 2 more findings\)$/);
  });

  it("stays healthy with notes", () => {
    const health = healthOf(withFacts("stream-manager-1", { sealedWithLoss: 1 })(healthy));
    assert.equal(health.state, "healthy");
    assert.equal(health.findings.length, 1);
  });

  it("text: each finding has its severity, code, cause, and a command with the data folder in it", () => {
    const text = healthText(healthOf(down("partition-server-1")(healthy)));
    assert.match(
      text,
      /WARNING {2}process-down\n {2}partition-server-1: it is being started again.*\n {2}→ .*\.\/stamp logs --role partition-server-1 --data \/data/,
    );
  });
});

describe("findings: a stamp of several hosts", () => {
  const standby: Change = (facts) => {
    const lock = facts.processes.find(({ role }) => role === "lock-service");
    if (lock === undefined) throw new Error("no lock service");
    const other = {
      ...lock,
      name: "lock-service-2",
      host: "b",
      pid: null,
      state: "not answering",
      answer: undefined,
      silence: "no connection",
      absence: "late" as const,
    };
    return { ...facts, place: { ...facts.place, host: "a", hostDirs: { b: "/on/b" } }, processes: [...facts.processes, other] };
  };

  it("one of two lock services is away: a warning that names its host, because the other one serves", () => {
    const found = findingsOf(standby(healthy)).filter(({ subject }) => subject.startsWith("lock-service"));
    assert.deepEqual(
      found.map(({ code, subject, cause, help }) => [code, subject, cause, help]),
      [
        [
          "process-silent",
          "lock-service-2",
          "it did not answer in time on host b (no connection)",
          "on host b: ask again: ./stamp health --data /on/b",
        ],
      ],
    );
  });

  const hostB = ["extent-node-1", "stream-manager-2", "partition-server-1"];
  const gone = { pid: null, state: "not answering", answer: undefined, absence: "late", silence: "no route", host: "b" } as const;
  const hostAway = all(
    ...hostB.map((name) => withProcess(name, gone)),
    ...[withNode(1, { up: false }), withServer({ up: false }), withSetUp({ copies: 4 })],
    withRepair({ replicasInGrace: 3n, endangered: 1n }),
  );
  const codesOf = (...changes: readonly Change[]): string[] => findingsOf(all(...changes)(healthy)).map(({ code }) => code);

  it("a host that is away is one finding: what follows from it stands in its cause, and its severity is the worst of them", () => {
    const found = findingsOf(hostAway(healthy));
    assert.deepEqual(
      found.map(({ code, severity, stops, subject }) => [code, severity, stops, subject]),
      [["host-away", "critical", true, "b"]],
    );
    for (const code of ["nodes-below-copies", "replicas-awaited", "extents-endangered", "range-server-away"])
      assert.ok((found[0]?.cause ?? "").includes(`${code}: `), String(found[0]?.cause));
  });

  it("where another cause exists as well nothing of its kind is folded", () => {
    const ofNodes = ["nodes-below-copies", "replicas-awaited", "extents-endangered"];
    for (const other of [withNode(3, { up: false }), withFacts("extent-node-3", { extents: { damaged: 1 } }), down("extent-node-3")]) {
      const codes = codesOf(hostAway, other);
      for (const code of ofNodes) assert.ok(codes.includes(code), `${code} is not among ${codes.join(", ")}`);
      assert.ok(!codes.includes("range-server-away"));
    }
    const servers = codesOf(hostAway, down("partition-server-2"));
    assert.ok(servers.includes("range-server-away"), servers.join());
    assert.ok(!servers.includes("nodes-below-copies"), servers.join());
  });

  it("none of two lock services answers, and partition servers miss them: requests stop soon", () => {
    const missed = withAnswer("partition-server-1", { ready: false });
    const found = findingsOf(all(paused("lock-service-1"), standby, missed)(healthy)).filter(({ code }) => code === "lock-service-away");
    assert.deepEqual(
      found.map(({ subject }) => subject),
      ["lock-service-1", "lock-service-2"],
    );
  });
});

describe("findings: what is not known is not told as down", () => {
  const late = { answer: undefined, absence: "late", silence: "no answer in time" } as const;
  const nothing: Change = (facts) => ({ ...facts, streamLayer: undefined, partitionLayer: undefined });
  const codesOf = (change: Change): string[] => findingsOf(change(healthy)).map(({ code }) => code);

  it("nobody answers in time: one finding, the state is not known, and nothing that helps ends a process", () => {
    for (const pid of [null, 17]) {
      const health = healthOf(all(everyProcess({ ...late, pid, state: "not answering" }), nothing)(healthy));
      assert.deepEqual([health.state, health.findings.map(({ code }) => code)], ["unknown", ["processes-silent"]]);
      assert.match(health.sentence, /^NOT KNOWN: 12 of 12/);
    }
  });

  it("no advice of any kind ends a process that may be serving", () => {
    for (const { help } of Object.values(kinds)) assert.doesNotMatch(help, /-KILL|kill -9|restart it/);
  });

  it("this command has no secret that is accepted: one finding, whoever was late beside", () => {
    const refused = everyProcess({ answer: undefined, absence: "refused", silence: "the server does not know the secret" });
    assert.deepEqual(codesOf(all(refused, withProcess("front-end-1", late), nothing)), ["secret-not-accepted"]);
    assert.equal(healthOf(all(refused, nothing)(healthy)).state, "unknown");
    // A file that can't be read ends each call before it is made: nobody refused anything, and nobody was late.
    const unasked = everyProcess(late);
    const unreadable: Change = (facts) => ({
      ...facts,
      asker: { ...facts.asker, problem: "the cluster secret is a folder", isMute: true },
    });
    assert.deepEqual(codesOf(all(unasked, unreadable, nothing)), ["secret-not-accepted"]);
    assert.deepEqual(codesOf(unreadable), []);
  });

  it("a file that all processes of a host can't use is one finding, of two hosts two", () => {
    const unusable =
      (change: (name: string) => object): Change =>
      (facts) => ({
        ...facts,
        processes: facts.processes.map((each) => ({
          ...each,
          ...change(each.name),
          answer: each.answer && {
            ...each.answer,
            secret: { ids: ["aa"], madeMs: healthy.nowMs, problem: "/data/cluster-secret is gone" },
          },
        })),
      });
    const [found, ...more] = findingsOf(unusable(() => ({}))(healthy));
    assert.deepEqual([found?.code, found?.subject, more], ["secret-unusable", "lock-service-1", []]);
    assert.match(found?.cause ?? "", /^\/data\/cluster-secret is gone; 11 more processes say so: extent-node-1, .* and 8 more$/);
    assert.equal(findingsOf(unusable((name) => ({ host: name.endsWith("1") ? "a" : "b" }))(healthy)).length, 2);
  });

  it("a wrong clock of a machine is one finding, of two hosts two", () => {
    const wrong: Change = (facts) => ({
      ...facts,
      processes: facts.processes.map((each) => ({
        ...each,
        answer: each.answer && { ...each.answer, wallSetMs: 5_000, wallAheadMs: 5_100 },
      })),
    });
    assert.deepEqual(codesOf(wrong), ["clock-apart"]);
    const [found] = findingsOf(wrong(healthy));
    assert.match(
      found?.cause ?? "",
      /^the clock of 12 processes is 5\.1 s ahead, and was set 5\.0 s forward .*may be the clock of this machine/,
    );
    const hosts: Change = (facts) => ({
      ...facts,
      processes: facts.processes.map((each, at) => ({ ...each, host: at % 2 === 0 ? "a" : "b" })),
    });
    assert.deepEqual(
      findingsOf(all(hosts, wrong)(healthy)).map(({ code, subject }) => `${code} ${subject}`),
      ["clock-apart a", "clock-apart b"],
    );
  });

  it("in containers what helps names the compose file, the project and the container", () => {
    const services = { "front-end-2": "north-front-end-2", "partition-server-1": "north-partition-server-1" };
    const composed: Change = (facts) => ({
      ...facts,
      setUp: undefined,
      place: {
        ...facts.place,
        dataDir: inContainers,
        compose: "docker compose -f compose.ha.yml -p two",
        container: "front-end-2",
        services,
      },
    });
    const gone = withProcess("partition-server-1", { answer: undefined, pid: null, state: "not answering", absence: "gone" });
    const helpOf = (change: Change, code: Code): string =>
      findingsOf(all(change, composed)(healthy)).find((each) => each.code === code)?.help ?? "";
    assert.equal(
      helpOf(gone, "process-down"),
      "start it: docker compose -f compose.ha.yml -p two up -d north-partition-server-1; read its log: docker compose -f compose.ha.yml -p two logs --tail 50 north-partition-server-1",
    );
    assert.equal(helpOf(withSetUp({}), "process-down"), "");
    assert.equal(
      helpOf(all(everyProcess(late), nothing), "processes-silent"),
      "see whether this machine is busy: uptime; then ask again: docker compose -f compose.ha.yml -p two exec north-front-end-2 stamp health",
    );
  });

  it("a lost store that lock services replicate is put back by one command, without etcd", () => {
    const lost = (facts: Record<string, unknown>): Change =>
      all(
        withAnswer("lock-service-1", { state: "empty", ready: false, waitingFor: ["the others"] }),
        withFacts("lock-service-1", facts),
        withFacts("extent-node-2", { metadataCopy: { version: 9, takenAtMs: 5, path: "/data/9.snapshot" } }),
        (all) => ({ ...all, cluster: { ...all.cluster, lockService: "a:1,b:1,c:1" } }),
      );
    const helpOf = (facts: Record<string, unknown>): string =>
      findingsOf(lost(facts)(healthy)).find(({ code }) => code === "store-empty")?.help ?? "";
    const replicated = helpOf({ consensus: { members: ["lock-service-1"] } });
    assert.match(replicated, /stamp down --data \/data; \.\/stamp metadata restore --replace \/data\/9\.snapshot --data \/data && /);
    assert.doesNotMatch(replicated, /etcd/);
    assert.match(helpOf({}), /metadata migrate --to etcd --replace/);
  });

  it("a lock service that votes and is not in the configuration is told of, and one without a vote is not told to wait", () => {
    const codes = (facts: Record<string, unknown>): readonly string[] =>
      findingsOf(withFacts("lock-service-1", { consensus: facts })(healthy)).map(({ code, subject }) => `${code} ${subject}`);
    const leads = { role: "leader", full: true, members: ["lock-service-1", "b"] };
    assert.deepEqual(
      codes({ ...leads, voters: ["lock-service-1", "b", "c"] }).filter((each) => each.startsWith("metadata")),
      ["metadata-members-differ c"],
    );
    const without = codes({ ...leads, full: false, voters: ["b", "c"] }).filter((each) => each.startsWith("metadata"));
    assert.deepEqual(without.toSorted(), ["metadata-members-differ c", "metadata-members-differ lock-service-1"]);
  });

  it("a follower whose disk is full is told of, though the others serve", () => {
    const full = findingsOf(withFacts("lock-service-1", { consensus: { full: true, lag: {}, diskFull: true } })(healthy));
    const found = full.find(({ code }) => code === "metadata-copy-behind");
    assert.deepEqual(
      [found?.subject, found?.help, found?.severity],
      ["lock-service-1", "make room on the disk of /data/lock-service-1", "warning"],
    );
  });

  it("in pods what helps is for kubectl, of no kind for docker", () => {
    const services = { "front-end-0": "shop-front-end-0.shop-front-end", "partition-server-1": "shop-partition-server-1.shop" };
    const place = {
      dataDir: inContainers,
      host: undefined,
      hostDirs: {},
      compose: "kubectl",
      container: "shop-front-end-0",
      services,
      location: "",
    };
    for (const { help } of Object.values(kinds)) assert.doesNotMatch(helpAt(help, place), /docker/);
    const gone = withProcess("partition-server-1", { answer: undefined, pid: null, state: "not answering", absence: "gone" });
    const inPods: Change = (facts) => ({ ...facts, setUp: undefined, place });
    const helpOf = (change: Change, code: Code): string =>
      findingsOf(all(change, inPods)(healthy)).find((each) => each.code === code)?.help ?? "";
    assert.equal(
      helpOf(gone, "process-down"),
      "see why it does not run: kubectl describe pod shop-partition-server-1; read its log: kubectl logs --tail 50 shop-partition-server-1",
    );
    assert.match(helpOf(paused("front-end-1"), "process-silent"), /kubectl exec shop-front-end-0 -- stamp health/);
    const lost = all(
      withAnswer("lock-service-1", { state: "empty", ready: false, waitingFor: ["a stamp"] }),
      withFacts("extent-node-2", { metadataCopy: { version: 9, takenAtMs: 5, path: "/data/9.snapshot" } }),
    );
    assert.match(helpOf(lost, "store-empty"), /kubectl exec extent-node-2 -- cat \/data\/9\.snapshot >copy\.snapshot/);
    assert.doesNotMatch(helpOf(lost, "store-empty"), /docker/);
  });

  it("every command in what helps names the data folder", () => {
    const place = {
      dataDir: "/else where",
      host: undefined,
      hostDirs: {},
      compose: "docker compose",
      container: "front-end-1",
      services: {},
      location: " --data '/else where'",
    };
    for (const { help } of Object.values(kinds))
      for (const [command] of helpAt(help, place).matchAll(/\.\/stamp [a-z][^;,&()]*/g)) assert.match(command, /--data '\/else where'/);
  });
});
