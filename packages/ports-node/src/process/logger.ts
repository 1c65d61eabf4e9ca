/**
 * JSON lines on standard output, or lines for people when that is a terminal. Written synchronously: the last line before a crash counts. A
 * pipe whose reader has no time is not waited for (log-pipe.ts).
 */
import { createRequire } from "node:module";
import type { LogFields, Logger } from "@stamp/ports";
import type { Logger as Pino } from "pino";
import { destination, pino, stdSerializers } from "pino";
import { isPipe, LogPipe } from "./log-pipe.ts";
import { withSourcePlaces } from "./source-places.ts";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

function serializedError(error: Error): unknown {
  const serialized = stdSerializers.err(error) as { readonly stack?: unknown };
  return typeof serialized.stack === "string" ? { ...serialized, stack: withSourcePlaces(serialized.stack) } : serialized;
}

class NodeLogger implements Logger {
  readonly #pino: Pino;

  constructor(inner: Pino) {
    this.#pino = inner;
  }

  debug(message: string, fields?: LogFields): void {
    this.#pino.debug(fields ?? {}, message);
  }
  info(message: string, fields?: LogFields): void {
    this.#pino.info(fields ?? {}, message);
  }
  warn(message: string, fields?: LogFields): void {
    this.#pino.warn(fields ?? {}, message);
  }
  error(message: string, fields?: LogFields): void {
    this.#pino.error(fields ?? {}, message);
  }
  child(fields: LogFields): Logger {
    return new NodeLogger(this.#pino.child(fields));
  }
}

export interface NodeLoggerOptions {
  readonly level?: LogLevel;
  /** Fields that are added to every line. */
  readonly fields?: LogFields;
  /** A file to append to instead of standard output. */
  readonly file?: string;
}

export function nodeLogger(options: NodeLoggerOptions = {}): Logger {
  const settings = {
    level: options.level ?? "info",
    base: { ...options.fields },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: serializedError, err: serializedError },
  };
  if (options.file === undefined && process.stdout.isTTY) {
    // Only here: it is large, and a terminal is seldom there.
    const pretty = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
    return new NodeLogger(pino(settings, pretty({ colorize: true, sync: true, ignore: "pid,hostname", translateTime: "HH:MM:ss.l" })));
  }
  if (options.file === undefined && isPipe(1)) return new NodeLogger(pino(settings, LogPipe.of(1)));
  return new NodeLogger(
    pino(settings, destination({ dest: options.file ?? 1, sync: true, append: true, mkdir: options.file !== undefined })),
  );
}
