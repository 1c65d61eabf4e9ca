/**
 * `stamp logs`: the logs of all processes of a data folder as one, in the order of time. Works on a running cluster and on a stopped
 * one, because it reads the files only.
 */
import { readdirSync } from "node:fs";
import { composeCluster, DataFolder, roles } from "@stamp/cluster";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { advisedText, sayAtPace, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { kindOf, NotExpected, oneOf } from "../values.ts";
import { isAtLeast, isAudit, type LogEntry, type LogLevel, logLevels, personText, toolText } from "./log-entry.ts";
import { LogSource } from "./log-source.ts";
import { inOrder, lastOf } from "./merge.ts";

const followEveryMs = 250;
/** Lines with which `--follow` begins if nothing says where to begin. */
const followedLines = 100;

interface LogsOptions {
  readonly follow?: boolean;
  readonly role?: readonly string[];
  readonly level?: LogLevel;
  readonly since?: string;
  readonly tail?: string;
  readonly json?: boolean;
  readonly audit?: boolean;
}

export function addLogs(program: Command): void {
  const command = topLevel(program, "logs")
    .option("-f, --follow", "go on with what is written from now on, until Ctrl-C")
    .option("--role <name...>", `only of these: a role (${roles.join(", ")}), a process (extent-node-2), or supervisor`)
    .option("--level <level>", `only from this level on: ${logLevels.join(", ")}; what has no level is always shown`, oneOf(logLevels))
    .option("--since <time>", "only from then on: 90s, 10m, 2h, 1d ago, or a time such as 2026-11-25T18:00:00Z", sinceKind)
    .option(
      "--tail <lines>",
      `only so many of the last lines, or all (default: all; with --follow and without --since ${followedLines})`,
      tailKind,
    )
    .option("--audit", "only the audit log: who signed in to the console, and what was changed there")
    .option("--json", "for tools: one object a line, as in the file, with the name of the process");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    if (composeCluster() !== undefined)
      throw new CommandError("containers have no log files; outside of them: docker compose logs [--follow] [NAME]", exitCodes.usage);
    await showLogs(new DataFolder(configOf(command, { withoutRecord: true }).dataDir), command.opts<LogsOptions>());
  });
}

async function showLogs(folder: DataFolder, options: LogsOptions): Promise<void> {
  const { follow = false, json = false, audit = false, level: least, role = audit ? ["console"] : [] } = options;
  const sinceMs = options.since === undefined ? undefined : sinceMsOf(options.since, Date.now());
  const fromStart = !follow || options.since !== undefined;
  const lines = tailOf(options.tail ?? (fromStart ? "all" : String(followedLines)));
  const logs = new Logs(folder, role, sinceMs);
  if (logs.sources.length === 0) {
    const there = logs.namesThere();
    if (!audit || options.role !== undefined || there.length === 0) throw new CommandError(noLogs(folder, there, role));
    warn("the audit log is empty: no console has run on this folder (./stamp console)");
    if (!follow) return;
  }
  const chosen = (entries: Iterable<LogEntry>): Iterable<LogEntry> =>
    Iterator.from(entries).filter((entry) => (least === undefined || isAtLeast(entry, least)) && (!audit || isAudit(entry)));
  const text = (entry: LogEntry): string => (json ? toolText(entry) : advisedText(personText(entry, logs.width)));
  const present = chosen(inOrder(logs.sources));
  let shown = await print(lines === undefined ? present : lastOf(present, lines), text);
  while (follow) {
    await new Promise((resolve) => setTimeout(resolve, followEveryMs));
    logs.lookForMore();
    shown += await print(chosen(inOrder(logs.sources)), text);
    for (const name of logs.mayHaveMissed())
      warn(`stamp: the log of ${name} was rotated more than once since it was read; lines may be missing`);
  }
  if (shown === 0) warn(`stamp: no line in ${folder.logs} is as asked for (${logs.sources.length} logs were read)`);
}

/** Logs of a folder, also those that appear later. */
class Logs {
  readonly #folder: DataFolder;
  readonly #wanted: readonly string[];
  readonly #sinceMs: number | undefined;
  readonly sources: LogSource[] = [];

  constructor(folder: DataFolder, wanted: readonly string[], sinceMs: number | undefined) {
    this.#folder = folder;
    this.#wanted = wanted;
    this.#sinceMs = sinceMs;
    this.lookForMore();
  }

  /** Width of the longest name of a process. */
  get width(): number {
    return Math.max(...this.sources.map(({ name }) => name.length));
  }

  lookForMore(): void {
    const known = new Set(this.sources.map(({ name }) => name));
    for (const name of this.namesThere()) {
      if (known.has(name) || !isWanted(name, this.#wanted)) continue;
      this.sources.push(new LogSource({ folder: this.#folder.logs, name, sinceMs: this.#sinceMs }));
    }
  }

  /** Returns the processes of whose logs lines may be missing, each once. */
  mayHaveMissed(): string[] {
    return this.sources.flatMap((source) => {
      if (!source.mayHaveMissed) return [];
      source.mayHaveMissed = false;
      return [source.name];
    });
  }

  namesThere(): string[] {
    try {
      const names = readdirSync(this.#folder.logs).flatMap((file) => /^(.+)\.log(\.1)?$/.exec(file)?.[1] ?? []);
      return [...new Set(names)].sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }
}

const isWanted = (name: string, wanted: readonly string[]): boolean =>
  wanted.length === 0 || wanted.includes(name) || wanted.includes(name.replace(/-\d+$/, ""));

function noLogs(folder: DataFolder, there: readonly string[], wanted: readonly string[]): string {
  if (there.length > 0) return `no log of ${wanted.join(", ")} is in ${folder.logs}; there are: ${there.join(", ")}`;
  return `there are no logs in ${folder.logs}: no cluster was started on this folder. Start one: ./stamp up -d; or name its folder: --data DIR`;
}

const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Returns a time in milliseconds since 1970. */
export function sinceMsOf(since: string, nowMs: number): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(since) ?? [];
  if (count !== undefined) return nowMs - Number(count) * unitsMs[unit as keyof typeof unitsMs];
  const atMs = /^\d{4}-\d\d-\d\d/.test(since) ? Date.parse(since) : Number.NaN;
  if (Number.isNaN(atMs)) throw new NotExpected("90s, 10m, 2h, 1d, or a time such as 2026-11-25T18:00:00Z");
  return Math.max(atMs, 0);
}

const sinceKind = kindOf("10m", (text) => void sinceMsOf(text, 0));
const linesMax = 9_999_999;
const tailKind = kindOf(
  "all",
  (text) => (text === "all" || /^0*[1-9]\d{0,6}$/.test(text) ? undefined : `all, or a whole number, 1 to ${linesMax}`),
  {
    bounds: { min: 1, max: linesMax },
  },
);

/** Returns the number of lines; undefined: all. */
const tailOf = (tail: string): number | undefined => (tail === "all" ? undefined : Number(tail));

/** Returns how many lines were printed. Waits for a slow reader, and ends when the reader has gone (`| head`). */
async function print(entries: Iterable<LogEntry>, text: (entry: LogEntry) => string): Promise<number> {
  let shown = 0;
  for (const entry of entries) {
    shown++;
    await sayAtPace(text(entry));
  }
  return shown;
}
