/**
 * Tables for `/metrics`: each number among a role's facts has one line in the role's table, with its name, kind and
 * help by the conventions of Prometheus. Facts keep the units that the code counts in. If a fact's name ends with `Ms`
 * and its metric is one of seconds, the renderer divides by 1,000.
 */

export interface Metric {
  /** Name without the prefix `stamp_`; the base unit is last (`_seconds`, `_bytes`), a counter ends with `_total`. */
  readonly name: string;
  /** A counter only grows while its process (its range's engine, its leader's term) lives; a summary is a count and a sum of the same things. */
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  /** One sentence, for people. */
  readonly help: string;
  /** Part of a summary that the fact is. */
  readonly part?: "count" | "sum";
  /**
   * For a histogram: the fact holds objects of objects …, and the innermost hold histograms. One label for the names of
   * each level.
   */
  readonly by?: readonly string[];
  /** Labels besides `role` and `name` of the process. A value `*` is what stands for the `*` of the path. */
  readonly labels?: Labels;
}

export type Labels = Readonly<Record<string, string>>;

/**
 * By path of the fact: names with dots between them; `*` is any name, or the `rangeId` of each of a list of ranges; `length` of a list is a
 * number as well. Booleans are told as 0 and 1, if they are in the table.
 */
export type Metrics = Readonly<Record<string, Metric>>;

export const counter = (name: string, help: string, labels: Labels = {}): Metric => ({ name, type: "counter", help, labels });
export const gauge = (name: string, help: string, labels: Labels = {}): Metric => ({ name, type: "gauge", help, labels });

/** Returns the two facts of a summary: how many, and their sum. */
export const summary = (
  paths: { readonly count: string; readonly sum: string },
  name: string,
  help: string,
  labels: Labels = {},
): Metrics => ({
  [paths.count]: { name, type: "summary", part: "count", help, labels },
  [paths.sum]: { name, type: "summary", part: "sum", help, labels },
});

/** Declares a fact that is a `Histogram`, or holds some by names that are the values of labels. In seconds. */
export const histogram = (name: string, help: string, by: readonly string[] = [], labels: Labels = {}): Metric => ({
  name,
  type: "histogram",
  help,
  by,
  labels,
});

/** Returns the table for facts that lie inside of the fact at `path`, with labels that all of them get. */
export function insideFacts(path: string, metrics: Metrics, labels: Labels = {}): Metrics {
  const moved = Object.entries(metrics).map(([inner, metric]) => [`${path}.${inner}`, labelled(metric, labels)] as const);
  return Object.fromEntries(moved);
}

export const allLabelled = (metrics: Metrics, labels: Labels): Metrics =>
  Object.fromEntries(Object.entries(metrics).map(([path, metric]) => [path, labelled(metric, labels)]));

const labelled = (metric: Metric, labels: Labels): Metric => ({ ...metric, labels: { ...metric.labels, ...labels } });
