/** Counters of a door; histograms have classes of requests, because operations would be too many. */
import { Histogram } from "@stamp/base";
import type { Clock } from "@stamp/ports";

export type OperationClass = "read" | "write" | "list" | "other";

const statusClasses: readonly (string | undefined)[] = [undefined, "1xx", "2xx", "3xx", "4xx", "5xx"];

const byName = new Map<string, OperationClass>();

/** Returns the class of an operation, by its name in the REST reference; undefined: it was not recognized. */
export function classOf(operation: string | undefined): OperationClass {
  if (operation === undefined) return "other";
  const known = byName.get(operation);
  if (known !== undefined) return known;
  const found = find(operation);
  byName.set(operation, found);
  return found;
}

function find(operation: string): OperationClass {
  // Operations without an object.
  if (operation === "Preflight" || /Service|AccountInformation|UserDelegationKey/.test(operation)) return "other";
  if (/^(List|Query|Find)/.test(operation)) return "list";
  // Messages are taken by it.
  if (operation === "GetMessages") return "write";
  return /^(Get|Peek)/.test(operation) ? "read" : "write";
}

export interface DoorCounters {
  requests: number;
  inProgress: number;
  refusedBusy: number;
  clientErrors: number;
  serverErrors: number;
  /** Times from the arrival of a request to the head of its answer, by class of the operation and of the status. */
  took: Record<string, Record<string, Histogram>>;
  byOperation: Record<string, number>;
}

export const noCounts = (): DoorCounters => ({
  requests: 0,
  inProgress: 0,
  refusedBusy: 0,
  clientErrors: 0,
  serverErrors: 0,
  took: {},
  byOperation: {},
});

/** Name under which requests count that were no operation. */
export const unrecognized = "unrecognized";

/** Counts an answer, and returns the histogram that its time goes into. */
export function countAnswer(counters: DoorCounters, clock: Clock, operation: string | undefined, status: number): Histogram {
  if (status >= 500) counters.serverErrors++;
  else if (status >= 400) counters.clientErrors++;
  const name = operation ?? unrecognized;
  counters.byOperation[name] = (counters.byOperation[name] ?? 0) + 1;
  const of = classOf(operation);
  const ofClass = counters.took[of] ?? {};
  counters.took[of] = ofClass;
  const code = statusClasses[Math.floor(status / 100)] ?? "other";
  const held = ofClass[code] ?? new Histogram(clock);
  ofClass[code] = held;
  return held;
}
