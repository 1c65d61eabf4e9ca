/** The table of peers: ratios, what is behind, and the page that is written from them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, nameOf } from "../cases.ts";
import type { Measurement } from "../measure.ts";
import { scenarioNamed, scenariosOf } from "../scenarios/all.ts";
import { chartOf } from "./chart.ts";
import { beginMark, endMark, withMeasured } from "./page.ts";
import { peerGoals } from "./reach.ts";
import { lineOf, markdownOf, type Row, ratioOf } from "./table.ts";

const measurement = (operations: number, contentBytes: number, cpu: Readonly<Record<string, number>>): Measurement => ({
  operations,
  seconds: 2,
  failed: 0,
  p50Ms: 1.25,
  p99Ms: 9,
  contentBytes,
  cpuMs: 10,
  firstFailure: "",
  serverCpuMs: new Map(Object.entries(cpu)),
});
const put = "put 4 MiB × 64";
const rows: readonly Row[] = [
  {
    case: put,
    target: "cluster",
    result: measurement(100, 4_194_304, { "front-end-1": 2_000, "extent-node-1": 3_000, "extent-node-2": 1_000 }),
  },
  { case: put, target: "azurite", result: measurement(200, 4_194_304, { azurite: 4_000 }) },
];

test("peers, table: half of the emulator's throughput is 0.5, and processor time is told for one operation and by role", () => {
  assert.deepEqual(
    rows.map((row) => ratioOf(row, rows)),
    [0.5, undefined],
  );
  assert.match(lineOf(rows[0] as Row), /^put 4 MiB × 64 +cluster +210 MB\/s +p50 1\.3 ms +p99 9\.0 ms +60\.0 ms of processor time each$/);
  const [first = "", second = ""] = markdownOf(rows)
    .split("\n")
    .filter((line) => line.startsWith(`| ${put}`));
  assert.equal(first, `| ${put} | 210 MB/s | 1.3, 9.0 | 60.0 ms | 419 MB/s | 1.3, 9.0 | 20.0 ms | 0.5 | ratio 1.3, 36.0 ms |`);
  assert.equal(second, `| ${put} | 20.0 ms | 0 µs | 40.0 ms | 0 µs |`);
});

test("peers, chart: a bar behind the emulator ends at the line of 1 and is drawn as behind; without a peer there is no chart", () => {
  const chart = chartOf(rows);
  assert.match(chart, /<rect class="behind"/);
  assert.match(chart, /<line class="wanted"/);
  assert.equal(chartOf(rows.slice(0, 1)), "");
});

test("peers, page: only what stands between the marks is replaced", () => {
  const page = `# Title\n\n${beginMark}\n\nold\n\n${endMark}\n\nafter\n`;
  const once = withMeasured(page, "new");
  assert.equal(once, `# Title\n\n${beginMark}\n\nnew\n\n${endMark}\n\nafter\n`);
  assert.equal(withMeasured(once, "new"), once);
  assert.throws(() => withMeasured("# Title\n", "new"), /needs the lines/);
});

test("peers, cases: each has its scenario, and what is to be reached is that of a case", () => {
  const account = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;";
  const endpoints = ["Blob", "Queue", "Table"].map((service) => `${service}Endpoint=http://127.0.0.1:1/a;`).join("");
  const scenarios = scenariosOf(account + endpoints, { shared: "s", own: "o" });
  for (const { scenario } of cases) assert.equal(scenarioNamed(scenarios, scenario).name, scenario);
  scenarios.close();
  const names = cases.map(nameOf);
  for (const name of Object.keys(peerGoals)) assert.ok(names.includes(name), name);
});
