/** Headers of Lease Blob and Lease Container. */
import { canonicalGuid, type HttpHeaders } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";

export const leaseActions = ["acquire", "renew", "change", "release", "break"] as const;
export type LeaseActionName = (typeof leaseActions)[number];

export interface LeaseHeaders {
  readonly action: LeaseActionName;
  /** Lease id for acquire and change; if empty, acquire makes one. */
  readonly proposedLeaseId: string;
  /** Duration for acquire, in seconds; -1 for a lease without end. */
  readonly durationSeconds: number;
  /** Period for break, in seconds; undefined: the rest of the lease. */
  readonly breakPeriodSeconds?: number;
}

const missing = (name: string): ReturnType<typeof rejected> => rejected("MissingRequiredHeader", { HeaderName: name });

export function parseLease(headers: HttpHeaders): Parsed<LeaseHeaders> {
  const asked = headers["x-ms-lease-action"];
  if (asked === undefined) return missing("x-ms-lease-action");
  const action = leaseActions.find((known) => known === asked.toLowerCase());
  if (action === undefined) return badHeader("x-ms-lease-action", asked);
  const proposed = headers["x-ms-proposed-lease-id"];
  const proposedLeaseId = proposed === undefined ? "" : canonicalGuid(proposed);
  if (proposedLeaseId === undefined) return badHeader("x-ms-proposed-lease-id", proposed ?? "");
  if (action === "change" && proposedLeaseId === "") return missing("x-ms-proposed-lease-id");
  const namesLease = action === "renew" || action === "change" || action === "release";
  if (namesLease && headers["x-ms-lease-id"] === undefined) return missing("x-ms-lease-id");
  const durationSeconds = action === "acquire" ? secondsOf(headers, "x-ms-lease-duration", 15, true) : parsed(undefined);
  if (!durationSeconds.ok) return durationSeconds;
  if (action === "acquire" && durationSeconds.value === undefined) return missing("x-ms-lease-duration");
  const period = action === "break" ? secondsOf(headers, "x-ms-lease-break-period", 0, false) : parsed(undefined);
  if (!period.ok) return period;
  const lease: LeaseHeaders = { action, proposedLeaseId, durationSeconds: durationSeconds.value ?? 0 };
  return parsed(period.value === undefined ? lease : { ...lease, breakPeriodSeconds: period.value });
}

/** Parses a number of seconds, up to 60. */
function secondsOf(headers: HttpHeaders, name: string, least: number, infinite: boolean): Parsed<number | undefined> {
  const text = headers[name];
  if (text === undefined) return parsed(undefined);
  if (infinite && text === "-1") return parsed(-1);
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return seconds >= least && seconds <= 60 ? parsed(seconds) : badHeader(name, text);
}
