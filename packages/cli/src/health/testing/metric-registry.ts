/** The metrics of all processes, for tests of what asks for them: rules for alerts, dashboards. */
import type { Metrics } from "@stamp/base";
import { extentNodeMetrics } from "@stamp/extent-node";
import { frontEndMetrics } from "@stamp/front-end";
import { locationServiceMetrics } from "@stamp/location-service";
import { lockServiceMetrics } from "@stamp/lock-service";
import { partitionManagerMetrics } from "@stamp/partition-manager";
import { partitionServerMetrics } from "@stamp/partition-server";
import { metricsText } from "@stamp/ports-node";
import { streamManagerMetrics } from "@stamp/stream-manager";

/** Labels of every metric that a process tells, by its name as Prometheus stores it. */
export function registry(): ReadonlyMap<string, ReadonlySet<string>> {
  const labels = new Map<string, Set<string>>([["up", new Set(["job", "instance", "role", "name"])]]);
  const add = (name: string, own: Iterable<string>): void => {
    const known = labels.get(name) ?? new Set(["role", "name"]);
    for (const label of own) known.add(label);
    labels.set(name, known);
  };
  const tables = [
    extentNodeMetrics,
    frontEndMetrics,
    locationServiceMetrics,
    lockServiceMetrics,
    partitionManagerMetrics,
    partitionServerMetrics,
    streamManagerMetrics,
  ] satisfies Metrics[];
  for (const { name, type, by = [], labels: own = {}, part } of tables.flatMap((table) => Object.values<Metrics[string]>(table))) {
    const given = [...by, ...Object.keys(own)];
    if (type === "histogram") {
      for (const suffix of ["sum", "count"]) add(`stamp_${name}_${suffix}`, given);
      add(`stamp_${name}_bucket`, [...given, "le"]);
    } else add(`stamp_${name}${part === undefined ? "" : `_${part}`}`, given);
  }
  const role = { status: { ready: true, waitingFor: [], state: "serving", facts: {} } };
  const lag = { percentile: () => 0, max: 0, reset: () => {} } as unknown as NonNullable<Parameters<typeof metricsText>[3]>["lag"];
  const certificates = [{ door: "blob", endsAtMs: 0, successorUnusable: false }];
  const secret = { ids: ["3abd5a03c10e8859"], madeMs: 0, problem: "" };
  for (const [, name = "", inside = ""] of metricsText("r", "n", role, {
    lag,
    wallSetMs: 0,
    certificates,
    secret,
    peer: { tls: { endsAtMs: 0 }, problem: "" },
  }).matchAll(/^(\w+)\{(.*?)\} /gm))
    add(
      name,
      [...inside.matchAll(/(\w+)="/g)].map(([, label = ""]) => label),
    );
  return labels;
}
