/**
 * The page `/metrics`, in the text format of Prometheus (version 0.0.4): the process, and the numbers among the facts of its role under the
 * names that the role's table gives them. A number that has no line there is told as `stamp_fact_…`, untyped.
 */
import type { ELDHistogram } from "node:perf_hooks";
import { bucketsMs, Histogram, type Labels, type Metric, type Metrics, release } from "@stamp/base";
import type { Role, SecretFacts } from "@stamp/ports";

/** Ranges on a page at most. */
const rangesMax = 1_000;

interface Family {
  readonly type: Metric["type"] | "untyped";
  readonly help: string;
  readonly lines: string[];
}

/** Lines of each name together, as the format wants them. */
class Page {
  readonly #families = new Map<string, Family>();

  add(name: string, type: Family["type"], help: string, labels: Labels, value: number, suffix = ""): void {
    const family = this.#families.get(name) ?? { type, help, lines: [] };
    this.#families.set(name, family);
    const inside = Object.entries(labels).map(([label, of]) => `${label}="${escapedLabel(of)}"`);
    family.lines.push(`${name}${suffix}{${inside.join(",")}} ${value}\n`);
  }

  addHistogram(name: string, help: string, labels: Labels, histogram: Histogram): void {
    const add = (value: number, suffix: string, more: Labels = {}): void =>
      this.add(name, "histogram", help, { ...labels, ...more }, value, suffix);
    const { cumulative, sumMs } = histogram;
    const count = cumulative.at(-1) ?? 0;
    for (const [at, boundMs] of bucketsMs.entries()) add(cumulative[at] ?? 0, "_bucket", { le: String(boundMs / 1_000) });
    add(count, "_bucket", { le: "+Inf" });
    add(sumMs / 1_000, "_sum");
    add(count, "_count");
  }

  get text(): string {
    const families = [...this.#families];
    return families
      .map(([name, { type, help, lines }]) => `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`)
      .join("");
  }
}

const escapedHelp = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const escapedLabel = (text: string): string => escapedHelp(text).replaceAll('"', '\\"');

/** Figures of the process besides its role's; embedded roles share a process and have none. */
export interface ProcessFigures {
  readonly lag: ELDHistogram;
  /** How far the wall clock was set since the process started, in milliseconds; below zero: back. */
  readonly wallSetMs: number;
  readonly certificates: readonly ServedCertificate[];
  /** Facts about the stamp's secret; undefined where nothing is proven. */
  readonly secret?: SecretFacts | undefined;
  /** Figures of the certificate for other processes; undefined without TLS between them. */
  readonly peer?: PeerFigures | undefined;
}

export interface PeerFigures {
  readonly tls: { readonly endsAtMs: number };
  /** Reason why the certificate's files can't be used; empty: they can. */
  readonly problem: string;
}

/** Certificate of a door that is in use. */
export interface ServedCertificate {
  readonly door: string;
  /** End of the certificate, in milliseconds since 1970. */
  readonly endsAtMs: number;
  /** True if the files hold another certificate by now, which can't be used. */
  readonly successorUnusable: boolean;
}

export function metricsText(roleName: string, name: string, role: Pick<Role, "status" | "metrics">, figures?: ProcessFigures): string {
  const page = new Page();
  const labels = { role: roleName, name };
  const { ready, state, facts } = role.status;
  addProcess(page, labels, figures?.lag);
  page.add("stamp_build_info", "gauge", "Always 1; its release is in the label.", { ...labels, release }, 1);
  page.add("stamp_state", "gauge", "Always 1; the state in which the process says to be is in the label.", { ...labels, state }, 1);
  if (figures !== undefined) addFigures(page, labels, figures);
  page.add("stamp_ready", "gauge", "Whether the process is ready to do its work.", labels, ready ? 1 : 0);
  new FactsPage(page, role.metrics ?? {}).add([], facts, labels, []);
  return page.text;
}

/** Adds the metrics of the process under the names that Prometheus libraries use. */
function addProcess(page: Page, labels: Labels, lag: ELDHistogram | undefined): void {
  const memory = process.memoryUsage();
  const cpu = process.cpuUsage();
  const gauge = (name: string, help: string, value: number): void => page.add(name, "gauge", help, labels, value);
  page.add("process_cpu_seconds_total", "counter", "Processor time, user and system.", labels, (cpu.user + cpu.system) / 1e6);
  gauge("process_resident_memory_bytes", "Resident size.", memory.rss);
  gauge("process_start_time_seconds", "When the process started, since 1970.", Math.round(performance.timeOrigin) / 1_000);
  gauge("nodejs_heap_size_used_bytes", "Used part of the JavaScript heap.", memory.heapUsed);
  gauge("nodejs_array_buffers_bytes", "Buffers outside of the heap.", memory.arrayBuffers);
  if (lag === undefined) return;
  const since = "since the page was asked for before";
  gauge("nodejs_eventloop_lag_p50_seconds", `Median delay of the event loop ${since}.`, lag.percentile(50) / 1e9);
  gauge("nodejs_eventloop_lag_p99_seconds", `99th percentile of the delay of the event loop ${since}.`, lag.percentile(99) / 1e9);
  gauge("nodejs_eventloop_lag_max_seconds", `Longest delay of the event loop ${since}.`, lag.max / 1e9);
  lag.reset();
}

function addFigures(page: Page, labels: Labels, { wallSetMs, certificates, secret, peer }: ProcessFigures): void {
  page.add("stamp_wall_clock_seconds", "gauge", "Wall clock of its machine, since 1970.", labels, Date.now() / 1_000);
  const set = "How far the wall clock was set forward (below zero: back) since the process started.";
  page.add("stamp_wall_clock_set_seconds", "gauge", set, labels, wallSetMs / 1_000);
  if (secret?.madeMs !== undefined) {
    const made = "When the file of the stamp's secret was written last, since 1970.";
    page.add("stamp_cluster_secret_made_time_seconds", "gauge", made, labels, secret.madeMs / 1_000);
  }
  if (secret !== undefined) {
    const unusable = "1 if the files of the stamp's secret can't be used; the secrets that were read before stay in use.";
    page.add("stamp_cluster_secret_unusable", "gauge", unusable, labels, secret.problem === "" ? 0 : 1);
  }
  if (peer !== undefined) {
    const ends = "When the certificate ends with which the process proves who it is to others, since 1970.";
    page.add("stamp_cluster_certificate_end_time_seconds", "gauge", ends, labels, peer.tls.endsAtMs / 1_000);
    const unusable = "1 if the files of that certificate can't be used; the one before stays in use.";
    page.add("stamp_cluster_certificate_unusable", "gauge", unusable, labels, peer.problem === "" ? 0 : 1);
  }
  for (const { door, endsAtMs, successorUnusable } of certificates) {
    const ends = "When the certificate that is in use ends, since 1970.";
    page.add("stamp_certificate_end_time_seconds", "gauge", ends, { ...labels, door }, endsAtMs / 1_000);
    const unusable = "1 if the files hold a new certificate or key that can't be used; the one before stays in use.";
    page.add("stamp_certificate_unusable", "gauge", unusable, { ...labels, door }, successorUnusable ? 1 : 0);
  }
}

class FactsPage {
  readonly #page: Page;
  readonly #metrics: Metrics;

  constructor(page: Page, metrics: Metrics) {
    this.#page = page;
    this.#metrics = metrics;
  }

  /** Adds facts; `ranges`: values that the `*` of lists in the path stand for. */
  add(path: readonly string[], value: unknown, labels: Labels, ranges: readonly string[]): void {
    if (typeof value === "number" || typeof value === "bigint") this.#number(path, Number(value), labels, ranges);
    else if (typeof value === "boolean") this.#known(path, value ? 1 : 0, labels, ranges);
    else if (Array.isArray(value)) {
      this.#known([...path, "length"], value.length, labels, ranges);
      for (const item of value.slice(0, rangesMax))
        if (typeof item?.rangeId === "string") this.add([...path, "*"], item, labels, [...ranges, item.rangeId]);
    } else if (value instanceof Histogram) this.#histogram(path, value, labels, ranges);
    else if (typeof value === "object" && value !== null)
      for (const [name, inner] of Object.entries(value)) this.add([...path, name], inner, labels, ranges);
  }

  #number(path: readonly string[], value: number, labels: Labels, ranges: readonly string[]): void {
    if (this.#known(path, value, labels, ranges)) return;
    const told = ranges.length === 0 ? labels : { ...labels, range: ranges.join("/") };
    const names = path.filter((part) => part !== "*").map(snake);
    this.#page.add(`stamp_fact_${names.join("_")}`, "untyped", "A fact that has no line in the role's table.", told, value);
  }

  #histogram(path: readonly string[], value: Histogram, labels: Labels, ranges: readonly string[]): void {
    for (let levels = 0; levels < path.length; levels++) {
      const metric = this.#metrics[path.slice(0, path.length - levels).join(".")];
      if (metric?.type !== "histogram" || metric.by?.length !== levels) continue;
      const names = path.slice(path.length - levels);
      const by = Object.fromEntries(metric.by.map((label, at) => [label, names[at] ?? ""]));
      this.#page.addHistogram(`stamp_${metric.name}`, metric.help, { ...labels, ...metric.labels, ...by }, value);
      return;
    }
    this.#number([...path, "count"], value.count, labels, ranges);
  }

  /** Adds a number if the table has a line for its path; false: it has none. */
  #known(path: readonly string[], value: number, labels: Labels, ranges: readonly string[]): boolean {
    const last = path.at(-1) ?? "";
    const exact = this.#metrics[path.join(".")];
    const metric = exact ?? this.#metrics[[...path.slice(0, -1), "*"].join(".")];
    if (metric === undefined) return false;
    const star = exact === undefined ? last : ranges.at(-1);
    const own = Object.entries(metric.labels ?? {}).map(([label, of]) => [label, of === "*" ? (star ?? "") : of]);
    const { type, help, part } = metric;
    const told = /Ms(Max)?$/.test(last) && metric.name.includes("_seconds") ? value / 1_000 : value;
    const suffix = part === undefined ? "" : `_${part}`;
    this.#page.add(`stamp_${metric.name}`, type, help, { ...labels, ...Object.fromEntries(own) }, told, suffix);
    return true;
  }
}

const snake = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toLowerCase();
