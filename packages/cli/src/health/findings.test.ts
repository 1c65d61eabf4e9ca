import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findingsOf, healthOf } from "./findings.ts";
import { healthText } from "./health-text.ts";
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
    assert.deepEqual(codes(paused("partition-server-1")), ["range-server-away", "process-silent"]);
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
    const text = healthText(healthOf(down("partition-server-1")(healthy)), "/data");
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
    };
    return { ...facts, processes: [...facts.processes, other] };
  };

  it("one of two lock services is away: a warning that names its host, because the other one serves", () => {
    const found = findingsOf(standby(healthy)).filter(({ subject }) => subject.startsWith("lock-service"));
    assert.deepEqual(
      found.map(({ code, subject, cause, help }) => [code, subject, cause, help.slice(0, 10)]),
      [["process-down", "lock-service-2", "it does not answer on host b (no connection)", "on host b:"]],
    );
  });

  it("none of two lock services answers: requests stop soon", () => {
    const found = findingsOf(standby(paused("lock-service-1")(healthy))).filter(({ code }) => code === "lock-service-away");
    assert.deepEqual(
      found.map(({ subject }) => subject),
      ["lock-service-1", "lock-service-2"],
    );
  });
});
