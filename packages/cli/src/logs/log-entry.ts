/** One line of a log: read from the file, chosen, and shown to a person or to a tool. Logs hold what clients sent. */

import { printable, printableJson } from "../printable.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogEntry {
  /** Name of the process whose log has the line, e.g. `extent-node-2`. */
  readonly process: string;
  /** Wall clock when the line was written, in milliseconds since 1970. For text it is a guess: see log-source.ts. */
  readonly atMs: number;
  /** Level of the line; undefined for text and for notes of the supervisor. */
  readonly level: LogLevel | undefined;
  readonly message: string;
  /** Other fields of the line, by name. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Line of the file, if it is JSON. */
  readonly json: string | undefined;
}

/** Beginning of the message of a line of the audit log, which the console writes. */
export const auditPrefix = "audit: ";

/** True for lines of the audit log. Messages of other processes can hold what clients sent, so that only the console's log counts. */
export const isAudit = ({ process, message }: Pick<LogEntry, "process" | "message">): boolean =>
  process === "console" && message.startsWith(auditPrefix);

/** A line without a time. The source finds one. */
export type UntimedEntry = Omit<LogEntry, "atMs"> & { readonly atMs: number | undefined };

const timeKey = '"time":"';
const timeLength = "2026-11-25T18:00:00.000Z".length;

/** Returns the time of a JSON line without parsing it, undefined if it has none. The time is its first or second key. */
export function timeOf(line: string): string | undefined {
  const at = line.indexOf(timeKey);
  if (at < 0 || !line.startsWith("{")) return undefined;
  return line.slice(at + timeKey.length, at + timeKey.length + timeLength);
}

/** Returns what a line says. A line that is no object in JSON is text: the output of Node or of a library, mostly of a crash. */
export function entryOf(process: string, line: string): UntimedEntry {
  const value = objectIn(line);
  if (value === undefined) return { process, atMs: undefined, level: undefined, message: line, fields: {}, json: undefined };
  const { time, level, name, msg, ...fields } = value;
  const atMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  return {
    process,
    atMs: Number.isNaN(atMs) ? undefined : atMs,
    level: logLevels.find((each) => each === level),
    message: typeof msg === "string" ? msg : "",
    fields: name === undefined || name === process ? fields : { by: name, ...fields },
    json: line,
  };
}

function objectIn(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

/** True if the line is at least as important as `least`. A line without a level always is. */
export const isAtLeast = ({ level }: Pick<LogEntry, "level">, least: LogLevel): boolean =>
  level === undefined || logLevels.indexOf(level) >= logLevels.indexOf(least);

/** Returns one object of JSON on a line: the line of the file, and first the process that wrote it. */
export function toolText({ process, atMs, message, json }: LogEntry): string {
  if (json === undefined) return printableJson(JSON.stringify({ process, time: new Date(atMs).toISOString(), text: message }));
  const rest = json.slice(1).trimStart();
  return printableJson(`{"process":${JSON.stringify(process)}${rest.startsWith("}") ? "" : ","}${rest}`);
}

/** Returns a line for people: time, process, level, message, fields, then an error's stack, indented. `width`: of the processes' column. */
export function personText({ process, atMs, level, message, fields }: LogEntry, width: number): string {
  const { error, ...others } = fields;
  const shown = Object.entries(others).map(([name, value]) => `${name}=${valueText(value)}`);
  if (error !== undefined) shown.push(`error=${valueText(messageOf(error))}`);
  const head = `${new Date(atMs).toISOString()}  ${process.padEnd(width)}  ${(level ?? "-").padEnd(5)}  `;
  const lines = [printable(`${head}${[message, ...shown].filter((each) => each !== "").join("  ")}`.trimEnd())];
  if (level === "error") for (const line of stackOf(error)) lines.push(`    ${printable(line)}`);
  return lines.join("\n");
}

const valueText = (value: unknown): string => {
  if (typeof value !== "string") return JSON.stringify(value) ?? String(value);
  return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
};

/** Errors are objects with type, message and stack in a log. */
const partOf = (error: unknown, part: "message" | "stack"): string => {
  const found = (error as Readonly<Record<string, unknown>> | null)?.[part];
  return typeof found === "string" ? found : "";
};

const messageOf = (error: unknown): unknown => partOf(error, "message") || error;
const stackOf = (error: unknown): string[] =>
  partOf(error, "stack")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim());
