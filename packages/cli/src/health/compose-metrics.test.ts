/** The profile `metrics` of docker-compose.yml: the scrape configuration names every process, the dashboard is one, and asks for what exists. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { composeCluster } from "@stamp/cluster";
import { scrapeText } from "./guide.ts";
import { registry } from "./testing/metric-registry.ts";
import { selectorsOf } from "./testing/promql.ts";

const root = join(import.meta.dirname, "../../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const dashboardPath = "compose/grafana/stamp-dashboard.json";
const columns = 24;

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly Target[];
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly time: { readonly from: string; readonly to: string };
  readonly panels: readonly Panel[];
}

const dashboard = JSON.parse(read(dashboardPath)) as Dashboard;
/** Without its first line, which says what the file is. */
const bodyOf = (text: string): string => text.slice(text.indexOf("\n"));

test("compose, scrape configuration, asks every process of the compose file", () => {
  const list = /STAMP_PROCESSES: >-\n((?: {8}\S+\n)+)/.exec(read("docker-compose.yml"))?.[1] ?? "";
  const processes = composeCluster({ STAMP_PROCESSES: list })?.processes ?? [];
  assert.equal(processes.length, 14);
  assert.equal(bodyOf(read("compose/prometheus.yml")), bodyOf(scrapeText(processes)));
});

test("compose, files that containers are given, are there", () => {
  const mounted = [...read("docker-compose.yml").matchAll(/^ {6}- (\.\/[^:]+):/gm)].map(([, path = ""]) => path);
  assert.equal(mounted.length, 5);
  for (const path of mounted) assert.ok(existsSync(join(root, path)), path);
});

test("dashboard, every field that Grafana needs, has its type", () => {
  assert.deepEqual(
    [typeof dashboard.uid, typeof dashboard.title, typeof dashboard.schemaVersion, typeof dashboard.time.from, typeof dashboard.time.to],
    ["string", "string", "number", "string", "string"],
  );
  const source = /uid: (\w+)/.exec(read("compose/grafana/datasource.yml"))?.[1];
  for (const { id, type, title, description, datasource, fieldConfig, targets } of dashboard.panels) {
    assert.ok(Number.isInteger(id) && title !== "" && description.endsWith("."), `${id} ${title}`);
    assert.ok(["timeseries", "stat"].includes(type), title);
    assert.deepEqual(datasource, { type: "prometheus", uid: source }, title);
    assert.ok(["short", "s", "bytes", "reqps"].includes(fieldConfig.defaults.unit), title);
    assert.ok(targets.length > 0 && targets.every(({ refId, legendFormat }) => /^[A-Z]$/.test(refId) && legendFormat !== ""), title);
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
});

test("dashboard, panels, lie beside one another and never over one another", () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    const { x, y, w, h } = gridPos;
    assert.ok(x >= 0 && w > 0 && h > 0 && x + w <= columns, title);
    for (let column = x; column < x + w; column++) {
      for (let row = y; row < y + h; row++) {
        assert.ok(!taken.has(`${column} ${row}`), `${title} covers another panel`);
        taken.add(`${column} ${row}`);
      }
    }
  }
});

test("dashboard, every expression, is PromQL and asks for metrics and labels that exist", () => {
  const known = new Map([...registry(), ["ALERTS", new Set(["alertname", "alertstate", "severity"])]]);
  for (const { title, targets } of dashboard.panels) {
    for (const { expr, legendFormat } of targets) {
      const selectors = selectorsOf(expr);
      assert.ok(selectors.length > 0, expr);
      for (const { metric, labels, groupedBy } of selectors) {
        const own = known.get(metric);
        assert.ok(own !== undefined, `${title}: no process tells ${metric}`);
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
        for (const label of [...labels.filter((each) => each !== "job"), ...groupedBy.flat(), ...shown])
          assert.ok(own.has(label), `${title}: ${metric} has no label ${label}`);
      }
    }
  }
});
