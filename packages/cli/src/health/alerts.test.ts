/**
 * The rules for alerts: each is in the language of Prometheus and asks for metrics and labels that exist. If promtool is there
 * (in PATH, or named by PROMTOOL), it checks rules and scrape configuration, and every rule fires and is quiet
 * as it should.
 */
import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { alertName } from "./guide.ts";
import type { FindingKind } from "./kinds/kind.ts";
import { type Code, kinds } from "./kinds/kinds.ts";
import { alertCases, type Series } from "./testing/alert-cases.ts";
import { registry } from "./testing/metric-registry.ts";
import { selectorsOf } from "./testing/promql.ts";
import { noPromtool, promtool, ruleFolder, testRules } from "./testing/promtool.ts";

const alerts = Object.entries<FindingKind>(kinds).flatMap(([code, kind]) =>
  kind.alert === undefined ? [] : [{ ...kind, code: code as Code, alert: kind.alert }],
);

describe("rules for alerts", () => {
  const known = registry();
  for (const { code, alert } of alerts) {
    it(`${code}: asks for metrics and labels that exist`, () => {
      for (const { metric, labels, groupedBy } of selectorsOf(alert.expr)) {
        const own = known.get(metric);
        assert.ok(own !== undefined, `no process tells ${metric}`);
        for (const label of [...labels, ...groupedBy.flat()]) assert.ok(own.has(label), `${metric} has no label ${label}`);
      }
      assert.match(alert.lasts, /^\d+[smh]$/);
    });
  }

  it("name the process of the label in what helps, or nothing", () => {
    for (const { code, alert, help } of alerts) {
      const subject = alertCases[code]?.labels.name;
      const text = alert.help ?? help;
      if (text.includes("SUBJECT")) assert.ok(subject !== undefined, `${code}: ${text}, but the alert has no label name`);
      // A manager that tells of others is not what its log is asked for.
      if (/--role SUBJECT/.test(text)) assert.doesNotMatch(subject ?? "", /manager/, code);
    }
  });

  it("have figures to fire by, each", () => {
    assert.deepEqual(Object.keys(alertCases).sort(), alerts.map(({ code }) => code).sort());
  });

  it("what PromQL does not allow is refused by the reader of this test", () => {
    for (const wrong of [
      "a >",
      "rate(a[5m]",
      "rate(a)",
      "a[5m] > 1",
      "sum by (x (a)",
      'a{b="c} > 1',
      "nothing(a)",
      "1 > 2",
      "a or 1",
      "a b",
    ])
      assert.throws(() => selectorsOf(wrong), /./, wrong);
    assert.deepEqual(selectorsOf('sum by (x) (rate(a{y=~"z"}[5m])) / b > 0.5 * 2^3'), [
      { metric: "a", labels: ["y"], groupedBy: [["x"]] },
      { metric: "b", labels: [], groupedBy: [] },
    ]);
  });
});

/** Returns what `promtool test rules` has to find of an alert after 70 minutes. */
function expected(code: Code, fires: boolean): object {
  const { severity, means, help, alert }: FindingKind = kinds[code];
  const labels = alertCases[code]?.labels ?? {};
  const action = (alert?.help ?? help).replaceAll("SUBJECT", labels.name ?? "");
  const told = { exp_labels: { severity, ...labels }, exp_annotations: { summary: means, action } };
  return { eval_time: "70m", alertname: alertName(code), exp_alerts: fires ? [told] : [] };
}

/** Codes whose rules ask for no metric that another of the group asks for: their figures can stand side by side. */
function groups(): Code[][] {
  const made: { readonly codes: Code[]; readonly metrics: Set<string> }[] = [];
  for (const { code, alert } of alerts) {
    const metrics = selectorsOf(alert.expr).map(({ metric }) => metric);
    const group = made.find((each) => metrics.every((metric) => !each.metrics.has(metric))) ?? { codes: [], metrics: new Set() };
    if (group.codes.length === 0) made.push(group);
    group.codes.push(code);
    for (const metric of metrics) group.metrics.add(metric);
  }
  return made.map(({ codes }) => codes);
}

function ruleTest(codes: readonly Code[], fires: boolean): object {
  const series = codes.flatMap((code): readonly Series[] => alertCases[code]?.[fires ? "fires" : "quiet"] ?? []);
  return {
    interval: "30s",
    name: fires ? "firing" : "quiet",
    input_series: series.map(([name, values]) => ({ series: name, values })),
    alert_rule_test: codes.map((code) => expected(code, fires)),
  };
}

test("promtool accepts the rules and the scrape configuration; every rule fires and is quiet as it should", {
  skip: noPromtool(),
  timeout: 120_000,
}, (t) => {
  const folder = ruleFolder(t);
  promtool(folder, "check", "config", "prometheus.yml");
  promtool(folder, "check", "rules", "stamp-alerts.yml");
  testRules(
    folder,
    "30s",
    groups().flatMap((codes) => [ruleTest(codes, true), ruleTest(codes, false)]),
  );
});
