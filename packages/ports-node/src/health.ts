/** The HTTP health door of a process: `/live`, `/ready` (with whom it waits for), `/metrics` (Prometheus text). */
import type { ELDHistogram } from "node:perf_hooks";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { HttpHandler, HttpResponse, Role } from "@stamp/ports";

const json = (status: number, value: unknown): HttpResponse => ({
  status,
  headers: { "Content-Type": "application/json", "Cache-Control": "no-store" },
  body: Buffer.from(`${JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? inner.toString() : inner))}\n`),
});

/** That a page of metrics tells of. */
const rangesMax = 1_000;

const snake = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toLowerCase();

function metricsText(roleName: string, name: string, role: Role, lag: ELDHistogram): string {
  const labels = `{role="${roleName}",name="${name}"}`;
  const memory = process.memoryUsage();
  const cpu = process.cpuUsage();
  const values: [string, "gauge" | "counter", number][] = [
    ["process_resident_memory_bytes", "gauge", memory.rss],
    ["process_heap_used_bytes", "gauge", memory.heapUsed],
    ["process_array_buffers_bytes", "gauge", memory.arrayBuffers],
    ["process_cpu_seconds_total", "counter", (cpu.user + cpu.system) / 1e6],
    ["process_uptime_seconds", "gauge", process.uptime()],
    ["event_loop_lag_p50_seconds", "gauge", lag.percentile(50) / 1e9],
    ["event_loop_lag_p99_seconds", "gauge", lag.percentile(99) / 1e9],
    ["event_loop_lag_max_seconds", "gauge", lag.max / 1e9],
    ["ready", "gauge", role.status.ready ? 1 : 0],
  ];
  lag.reset();
  const text = values.map(([metric, type, value]) => `# TYPE stamp_${metric} ${type}\nstamp_${metric}${labels} ${value}\n`).join("");
  return text + factsText(role.status.facts, `role="${roleName}",name="${name}"`);
}

/** Numbers among the facts, also those inside of one; where a fact is a list of ranges, each has its `range` as a label. */
function factsText(facts: Readonly<Record<string, unknown>>, labels: string): string {
  const samples = new Map<string, string[]>();
  const add = (path: string, value: unknown, inside: string): void => {
    if (typeof value === "number" || typeof value === "bigint") {
      const metric = `stamp_fact_${path}`;
      const lines = samples.get(metric) ?? [];
      lines.push(`${metric}{${inside}} ${Number(value)}\n`);
      samples.set(metric, lines);
    } else if (Array.isArray(value)) {
      for (const item of value.slice(0, rangesMax))
        if (typeof item?.rangeId === "string") add(path, item, `${inside},range="${item.rangeId}"`);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, inner] of Object.entries(value)) add(`${path}_${snake(name)}`, inner, inside);
    }
  };
  for (const [fact, value] of Object.entries(facts)) add(snake(fact), value, labels);
  return [...samples].map(([metric, lines]) => `# TYPE ${metric} gauge\n${lines.join("")}`).join("");
}

export function healthHandler(roleName: string, name: string, role: Role): HttpHandler {
  const lag = monitorEventLoopDelay({ resolution: 20 });
  lag.enable();
  return async (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") return { status: 405, headers: { Allow: "GET, HEAD" } };
    const path = request.target.split("?")[0];
    if (path === "/live") return json(200, { live: true });
    if (path === "/ready") return json(role.status.ready ? 200 : 503, { role: roleName, name, ...role.status });
    if (path === "/metrics") {
      const text = metricsText(roleName, name, role, lag);
      return { status: 200, headers: { "Content-Type": "text/plain; version=0.0.4" }, body: Buffer.from(text) };
    }
    return json(404, { paths: ["/live", "/ready", "/metrics"] });
  };
}
