/** The screen of `stamp top` at one moment: health, figures, and the busiest processes, accounts and ranges, as many as there is room for. Pure. */
import type { ProcessRow, RangeRow, Snapshot } from "@stamp/console-page";
import { counted } from "../health/counted.ts";
import { bytesText, table } from "../print.ts";
import { printable } from "../printable.ts";

/** Requests of one account per second, all front-ends together. */
export interface AccountLoad {
  readonly account: string;
  readonly requestsPerSecond: number;
  readonly clientErrorsPerSecond: number;
  readonly serverErrorsPerSecond: number;
  /** Mean time of the account's requests, in milliseconds. */
  readonly meanMs: number;
}

export interface Moment {
  readonly snapshot: Snapshot;
  readonly ranges: readonly RangeRow[];
  /** Load of the accounts; undefined until a front-end has answered twice. */
  readonly accounts: readonly AccountLoad[] | undefined;
}

/** Counts of an account at one front-end. */
export interface AccountCounts {
  readonly requests: number;
  readonly clientErrors: number;
  readonly serverErrors: number;
  readonly tookMs: number;
}

/** Counts by front-end and account. */
export interface Counts {
  readonly atMs: number;
  readonly byFrontEnd: ReadonlyMap<string, ReadonlyMap<string, AccountCounts>>;
}

/** Bound of the rows in a part of the screen without one by size. */
const rowsMax = 20;
const none: AccountCounts = { requests: 0, clientErrors: 0, serverErrors: 0, tookMs: 0 };
const names = Object.keys(none) as (keyof AccountCounts)[];

/**
 * Returns the load of each account between two answers, the busiest first. A front-end that did not answer both times does not count. Counts that
 * have fallen, even one of them, are those of a front-end that has started anew.
 */
export function accountLoads(before: Counts | undefined, now: Counts): AccountLoad[] | undefined {
  if (before === undefined || now.atMs <= before.atMs) return undefined;
  const seconds = (now.atMs - before.atMs) / 1_000;
  const sums = new Map<string, { -readonly [K in keyof AccountCounts]: number }>();
  for (const [frontEnd, accounts] of now.byFrontEnd) {
    const old = before.byFrontEnd.get(frontEnd);
    if (old === undefined) continue;
    for (const [account, counts] of accounts) {
      const last = old.get(account) ?? none;
      const from = names.some((name) => counts[name] < last[name]) ? none : last;
      const sum = sums.get(account) ?? { ...none };
      for (const name of names) sum[name] += counts[name] - from[name];
      sums.set(account, sum);
    }
  }
  return [...sums]
    .filter(([, { requests }]) => requests > 0)
    .map(([account, { requests, clientErrors, serverErrors, tookMs }]) => ({
      account,
      requestsPerSecond: requests / seconds,
      clientErrorsPerSecond: clientErrors / seconds,
      serverErrorsPerSecond: serverErrors / seconds,
      meanMs: tookMs / requests,
    }))
    .toSorted((one, other) => other.requestsPerSecond - one.requestsPerSecond);
}

/** `rows`: number of lines on the screen. */
export function topText(moment: Moment, rows: number): string {
  const { snapshot } = moment;
  const head = headLines(snapshot);
  const room = rows - head.length - 1;
  const [processes, accounts, ranges] = shares(room, [snapshot.processes.length, moment.accounts?.length ?? 1, moment.ranges.length]);
  const lines = [
    ...head,
    ...part("Processes", snapshot.processes.length, processes, () => processTable(snapshot, processes)),
    ...part("Accounts", moment.accounts?.length ?? 0, accounts, () => accountTable(moment.accounts, accounts)),
    ...part("Ranges", moment.ranges.length, ranges, () => rangeTable(moment.ranges, ranges)),
  ];
  return lines.map(printable).join("\n");
}

/** Number of lines above a list: an empty one, a title, the heads of columns. */
const headsOfPart = 3;

/** Returns the numbers of lines for the lists: all that fit, and fewer of the longest ones. */
function shares(room: number, wanted: readonly number[]): [number, number, number] {
  const left = Math.max(room - headsOfPart * wanted.length, 0);
  const got = wanted.map(() => 0);
  for (let given = 0; given < left; given++) {
    const hungry = got.findIndex((lines, index) => lines < Math.min(wanted[index] ?? 0, rowsMax) && lines === least(got, wanted));
    if (hungry < 0) break;
    got[hungry] = (got[hungry] ?? 0) + 1;
  }
  return got as [number, number, number];
}

/** Returns the fewest lines among the lists that want more. */
const least = (got: readonly number[], wanted: readonly number[]): number =>
  Math.min(...got.filter((lines, index) => lines < Math.min(wanted[index] ?? 0, rowsMax)));

function part(title: string, all: number, shown: number, draw: () => string): string[] {
  if (all > 0 && shown === 0) return [];
  return ["", all > shown ? `${title}: ${shown} of ${all}, the busiest` : title, ...draw().split("\n")];
}

const rate = (perSecond: number | null): string => (perSecond === null ? "-" : `${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`);
const ms = (value: number | null | undefined): string =>
  value === null || value === undefined ? "-" : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const byteRate = (perSecond: number | null): string => (perSecond === null ? "-" : `${bytesText(Math.round(perSecond))}/s`);

function headLines({ atMs, sentence, findings, figures }: Snapshot): string[] {
  const { requestsPerSecond, errorsPerSecond, p50Ms, p99Ms, writtenPerSecond, readPerSecond } = figures;
  return [
    `${new Date(atMs).toISOString().slice(11, 19)} UTC  ${sentence}`,
    ...(findings.length === 0 ? [] : [`${counted(findings.length, "finding")}: ./stamp health`]),
    `requests ${rate(requestsPerSecond)}  server errors ${rate(errorsPerSecond)}  p50 ${ms(p50Ms)}  p99 ${ms(p99Ms)}  written ${byteRate(writtenPerSecond)}  read ${byteRate(readPerSecond)}`,
  ];
}

function processTable({ processes, latency, nodes }: Snapshot, count: number): string {
  const slowest = new Map<string, Snapshot["latency"][number]>();
  for (const row of latency) if (row.p99Ms > (slowest.get(row.process)?.p99Ms ?? -1)) slowest.set(row.process, row);
  const disks = new Map(nodes.map((node) => [node.name, node]));
  // Processes that do not serve come first, then slow ones.
  const ordered = processes.toSorted(
    (one, other) =>
      Number(one.ready) - Number(other.ready) || (slowest.get(other.name)?.p99Ms ?? -1) - (slowest.get(one.name)?.p99Ms ?? -1),
  );
  return table(
    ["PROCESS", "STATE", "UP", "RESTARTS", "P99", "OF", "SYNC P99", "FREE"],
    ordered.slice(0, count).map((process) => {
      const { name, uptimeMs, restarts } = process;
      const slow = slowest.get(name);
      const disk = disks.get(name);
      const free = disk === undefined || disk.totalBytes === 0 ? "-" : `${Math.round((100 * disk.freeBytes) / disk.totalBytes)}%`;
      return [name, stateText(process), spanText(uptimeMs), restarts, ms(slow?.p99Ms), slow?.what ?? "-", ms(disk?.syncP99Ms), free];
    }),
  );
}

const stateText = ({ state, waitingFor }: ProcessRow): string =>
  waitingFor.length === 0 ? state : `${state}, waits for ${waitingFor.join(", ")}`;

function spanText(uptimeMs: number | null): string {
  if (uptimeMs === null) return "-";
  const minutes = Math.floor(uptimeMs / 60_000);
  if (minutes < 1) return `${Math.floor(uptimeMs / 1_000)} s`;
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

function accountTable(accounts: readonly AccountLoad[] | undefined, count: number): string {
  if (accounts === undefined) return "counted from the next look on";
  if (accounts.length === 0) return "no requests of any account since the last look";
  return table(
    ["ACCOUNT", "REQUESTS", "4XX", "5XX", "MEAN"],
    accounts
      .slice(0, count)
      .map((each) => [
        each.account,
        rate(each.requestsPerSecond),
        rate(each.clientErrorsPerSecond),
        rate(each.serverErrorsPerSecond),
        ms(each.meanMs),
      ]),
  );
}

const loadOf = ({ readsPerSecond, writesPerSecond }: RangeRow): number => (readsPerSecond ?? 0) + (writesPerSecond ?? 0);

function rangeTable(ranges: readonly RangeRow[], count: number): string {
  return table(
    ["RANGE", "READS", "WRITES", "SERVER", "FROM", "STATE"],
    ranges
      .toSorted((one, other) => loadOf(other) - loadOf(one))
      .slice(0, count)
      .map(({ id, lowKey, server, loaded, change, readsPerSecond, writesPerSecond }) => [
        id,
        rate(readsPerSecond),
        rate(writesPerSecond),
        server || "-",
        lowKey || "start",
        change !== "" ? change : server === "" ? "unassigned" : loaded ? "served" : "loading",
      ]),
  );
}
