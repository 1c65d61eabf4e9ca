/** Lag of a copy while clients write, as the sending partition server tells it in `/metrics` and as the copy's stamp tells clients. */

/** One look at the sending server. */
export interface LagSample {
  /** Time of the look, in milliseconds of `performance.now()`. */
  readonly atMs: number;
  /** Time since Last Sync Time of the range that is furthest behind, in milliseconds; undefined while it is not known. */
  readonly lagMs: number | undefined;
  readonly pendingCommits: number;
  /** Rows of these commits and bytes of their blobs; an upper bound. */
  readonly pendingBytes: number;
  /** True if a range is being seeded. */
  readonly isSeeding: boolean;
  /** Calls to the other stamp that failed or were refused since the server started. */
  readonly failedCalls: number;
  /** Time since the Last Sync Time that Get Blob Service Stats tells, in milliseconds; undefined if that was not asked or is not known. */
  readonly toldLagMs: number | undefined;
}

const prefix = "stamp_partition_server_geo_";

/** Returns the sum of all lines of a metric. A text without the metric is an error: a renamed metric must not measure as 0. */
export function metric(text: string, name: string, labels = ""): number {
  const lines = text.split("\n").filter((line) => line.startsWith(name) && /^[ {]/.test(line.slice(name.length)) && line.includes(labels));
  if (lines.length === 0) throw new Error(`/metrics has no ${name} ${labels}`);
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

export function sampleOf(metrics: string, atMs: number, toldLagMs: number | undefined): LagSample {
  return {
    atMs,
    lagMs: metric(metrics, `${prefix}unsynced_ranges`) > 0 ? undefined : metric(metrics, `${prefix}lag_seconds`) * 1_000,
    pendingCommits: metric(metrics, `${prefix}pending_commits`),
    pendingBytes: metric(metrics, `${prefix}pending_bytes`),
    isSeeding: metric(metrics, `${prefix}ranges`, 'state="seeding"') > 0,
    failedCalls: metric(metrics, `${prefix}failed_calls_total`),
    toldLagMs,
  };
}

export interface LagSummary {
  readonly samples: number;
  /** Looks at which Last Sync Time was not known or a range was seeded again. */
  readonly unknown: number;
  readonly lagP50Ms: number;
  readonly lagMaxMs: number;
  readonly toldP50Ms: number;
  readonly toldMaxMs: number;
  readonly pendingCommitsMax: number;
  readonly pendingBytesMax: number;
  /** Medians of `pendingBytes` in the second and in the last quarter of the time: if the last one is much higher, the backlog grows under load. */
  readonly pendingBytesEarly: number;
  readonly pendingBytesLate: number;
  /** Calls to the other stamp that failed or were refused meanwhile. */
  readonly failedCalls: number;
}

const percentile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? Number.NaN;
const most = (values: readonly number[]): number => values.reduce((max, each) => Math.max(max, each), 0);

/** `samples`: looks while clients wrote, of one turn or of several one after the other. */
export function summaryOf(turns: readonly (readonly LagSample[])[]): LagSummary {
  const samples = turns.flat();
  const lags = samples.flatMap(({ lagMs }) => (lagMs === undefined ? [] : [lagMs]));
  const told = samples.flatMap(({ toldLagMs }) => (toldLagMs === undefined ? [] : [toldLagMs]));
  const pendingOf = (from: number, to: number): number =>
    percentile(
      turns.flatMap((turn) => turn.slice(Math.floor(turn.length * from), Math.floor(turn.length * to)).map((one) => one.pendingBytes)),
      0.5,
    );
  return {
    samples: samples.length,
    unknown: samples.filter(({ lagMs, isSeeding }) => lagMs === undefined || isSeeding).length,
    lagP50Ms: percentile(lags, 0.5),
    lagMaxMs: most(lags),
    toldP50Ms: percentile(told, 0.5),
    toldMaxMs: most(told),
    pendingCommitsMax: most(samples.map(({ pendingCommits }) => pendingCommits)),
    pendingBytesMax: most(samples.map(({ pendingBytes }) => pendingBytes)),
    pendingBytesEarly: pendingOf(0.25, 0.5),
    pendingBytesLate: pendingOf(0.75, 1),
    failedCalls: turns.reduce((sum, turn) => sum + (turn.at(-1)?.failedCalls ?? 0) - (turn[0]?.failedCalls ?? 0), 0),
  };
}
