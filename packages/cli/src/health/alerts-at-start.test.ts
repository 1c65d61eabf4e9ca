/**
 * Rules for alerts about what no process tells (`absent`), while Prometheus starts: it asks its targets one after another, and no rule
 * fires about a process that it has not asked yet. What stays missing fires, also if every target is gone.
 */
import assert from "node:assert/strict";
import { it, test } from "node:test";
import { alertName } from "./guide.ts";
import type { FindingKind } from "./kinds/kind.ts";
import { type Code, kinds } from "./kinds/kinds.ts";
import { noPromtool, ruleFolder, testRules } from "./testing/promtool.ts";

const absents = Object.entries<FindingKind>(kinds).flatMap(([code, { alert }]) =>
  alert?.expr.includes("absent(") === true ? [{ code: code as Code, alert }] : [],
);
/** Seconds between two values of a series here. */
const step = 5;
const endSeconds = 900;

interface Asked {
  readonly role: string;
  /** Time of the first answer, in seconds after Prometheus started. */
  readonly first: number;
  readonly every: number;
  /** Time from which nothing is asked any more. */
  readonly until?: number;
  /** False if the process does not answer when it is asked. */
  readonly answers?: boolean;
}

/** Returns what Prometheus has of a process: `up`, and if it answers, that it is ready and leads. */
function seriesOf({ role, first, every, until = endSeconds, answers = true }: Asked): object[] {
  const values = (value: number): string => {
    const all: string[] = [];
    for (let at = 0; at <= endSeconds; at += step)
      all.push(at >= first && at < until && (at - first) % every === 0 ? String(value) : at >= until ? "stale" : "_");
    return all.join(" ");
  };
  const labels = `role="${role}",name="${role}-1"`;
  const told = [`stamp_ready{${labels}}`];
  if (/manager/.test(role)) told.push(`stamp_${role.replace("-", "_")}_term{${labels}}`);
  return [
    { series: `up{job="stamp",instance="${role}:1",${labels}}`, values: values(answers ? 1 : 0) },
    ...(answers ? told : []).map((series) => ({ series, values: values(1) })),
  ];
}

const others = ["front-end", "partition-server", "stream-manager", "partition-manager"];
const cluster = (every: number, firsts: readonly number[], more: Partial<Asked> = {}): object[] =>
  ["lock-service", ...others].flatMap((role, at) => seriesOf({ role, first: firsts[at] ?? 0, every, ...more }));

/** Expects of each rule that it fires, or not, at these seconds. */
const expects = (seconds: readonly number[], fires: readonly Code[]): object[] =>
  seconds.flatMap((second) =>
    absents.map(({ code, alert }) => {
      const { severity, means, help } = kinds[code];
      const told = { exp_labels: { severity }, exp_annotations: { summary: means, action: alert.help ?? help } };
      return { eval_time: `${second}s`, alertname: alertName(code), exp_alerts: fires.includes(code) ? [told] : [] };
    }),
  );
const seconds = (from: number, to: number): number[] => Array.from({ length: (to - from) / step + 1 }, (_, at) => from + at * step);
const scenario = (name: string, series: readonly object[], tests: readonly object[]): object => ({
  name,
  interval: `${step}s`,
  input_series: series,
  alert_rule_test: tests,
});

it("rules about what is missing are these", () => {
  assert.deepEqual(
    absents.map(({ code }) => code),
    ["lock-service-away", "role-absent", "no-stream-manager", "no-partition-manager"],
  );
});

test("Prometheus starts: no rule fires before every process was asked; what stays missing fires", { skip: noPromtool() }, (t) => {
  const folder = ruleFolder(t);
  const all = absents.map(({ code }) => code);
  for (const every of ["5s", "10s"])
    testRules(folder, every, [
      scenario("asked every 10 s, the first answer after 15 s", cluster(10, [25, 15, 20, 20, 15]), expects(seconds(0, 300), [])),
      scenario("asked every 30 s, the lock service last", cluster(30, [35, 5, 10, 25, 20]), expects(seconds(0, 300), [])),
      scenario("asked every 60 s, the front-end last", cluster(60, [40, 60, 10, 5, 30]), expects(seconds(0, 600), [])),
      scenario(
        "the lock service does not answer from the beginning on",
        [
          ...others.flatMap((role) => seriesOf({ role, first: 10, every: 10 })),
          ...seriesOf({ role: "lock-service", first: 5, every: 10, answers: false }),
        ],
        [...expects(seconds(0, 40), []), ...expects(seconds(60, 600), ["lock-service-away"])],
      ),
      scenario("nothing is asked any more", cluster(10, [5, 5, 5, 5, 5], { until: 200 }), [
        ...expects(seconds(0, 225), []),
        ...expects(seconds(245, 900), all),
      ]),
    ]);
});
