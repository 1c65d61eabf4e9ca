/** A process's log lines, as entries of the event log. */
import type { LogFields, Logger } from "@stamp/ports";
import type { EventLog } from "../kernel/event-log.ts";
import type { Incarnation } from "../kernel/process.ts";

export class SimLogger implements Logger {
  readonly #log: EventLog;
  readonly #incarnation: Incarnation;
  readonly #fields: LogFields | undefined;

  constructor(log: EventLog, incarnation: Incarnation, fields?: LogFields) {
    this.#log = log;
    this.#incarnation = incarnation;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#add("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#add("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#add("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#add("error", message, fields);
  }

  child(fields: LogFields): Logger {
    return new SimLogger(this.#log, this.#incarnation, { ...this.#fields, ...fields });
  }

  #add(level: string, message: string, fields: LogFields | undefined): void {
    if (!this.#incarnation.alive) return;
    this.#log.add(
      this.#incarnation.nowUs,
      level,
      this.#incarnation.name,
      message,
      this.#fields || fields ? { ...this.#fields, ...fields } : undefined,
    );
  }
}
