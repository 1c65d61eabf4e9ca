/** Query parameters of operations on messages: numbers within limits that the service names in its refusal. */
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import { type Query, queryValue } from "../target.ts";
import { behaves } from "../version.ts";

export const messagesMax = 32;
export const visibilityTimeoutSecondsMax: number = 7 * 24 * 3600;
export const timeToLiveSecondsDefault: number = 7 * 24 * 3600;
/** About 68 years; -1 is for ever. */
export const timeToLiveSecondsMax: number = 2 ** 31 - 1;

interface Limits {
  readonly min: number;
  readonly max: number;
}

const outOfRange = (name: string, value: string, { min, max }: Limits) =>
  rejected("OutOfRangeQueryParameterValue", {
    QueryParameterName: name,
    QueryParameterValue: value,
    MinimumAllowed: String(min),
    MaximumAllowed: String(max),
  });

/** A whole number; undefined when it is not there. */
function numberOf(query: Query, name: string): Parsed<number | undefined> {
  const text = queryValue(query, name);
  if (text === undefined) return parsed(undefined);
  return /^-?\d{1,15}$/.test(text) ? parsed(Number(text)) : badQuery(name, text, "Not a whole number.");
}

function within(query: Query, name: string, limits: Limits): Parsed<number | undefined> {
  const number = numberOf(query, name);
  if (!number.ok || number.value === undefined) return number;
  return number.value < limits.min || number.value > limits.max ? outOfRange(name, String(number.value), limits) : number;
}

export function parseMessageCount(query: Query): Parsed<number> {
  const count = within(query, "numofmessages", { min: 1, max: messagesMax });
  return count.ok ? parsed(count.value ?? 1) : count;
}

/** Of Get Messages: 30 seconds when not said. */
export function parseTakeTimeout(query: Query): Parsed<number> {
  const seconds = within(query, "visibilitytimeout", { min: 1, max: visibilityTimeoutSecondsMax });
  return seconds.ok ? parsed(seconds.value ?? 30) : seconds;
}

export interface PutTimes {
  readonly visibilityTimeoutSeconds: number;
  /** -1: for ever. */
  readonly timeToLiveSeconds: number;
}

/** Of Put Message. A message must become visible before it expires. */
export function parsePutTimes(query: Query, version: string): Parsed<PutTimes> {
  const visibility = within(query, "visibilitytimeout", { min: 0, max: visibilityTimeoutSecondsMax });
  if (!visibility.ok) return visibility;
  const asked = numberOf(query, "messagettl");
  if (!asked.ok) return asked;
  const timeToLiveSeconds = asked.value ?? timeToLiveSecondsDefault;
  const unbounded = behaves(version, "anyTimeToLive");
  const max = unbounded ? timeToLiveSecondsMax : timeToLiveSecondsDefault;
  const forEver = unbounded && timeToLiveSeconds === -1;
  if (!forEver && (timeToLiveSeconds < 1 || timeToLiveSeconds > max)) {
    return outOfRange("messagettl", String(timeToLiveSeconds), { min: unbounded ? -1 : 1, max });
  }
  const visibilityTimeoutSeconds = visibility.value ?? 0;
  if (!forEver && visibilityTimeoutSeconds >= timeToLiveSeconds) {
    return outOfRange("visibilitytimeout", String(visibilityTimeoutSeconds), { min: 0, max: timeToLiveSeconds - 1 });
  }
  return parsed({ visibilityTimeoutSeconds, timeToLiveSeconds });
}

/** Of Update Message, where it must be said. */
export function parseUpdateTimeout(query: Query): Parsed<number> {
  const seconds = within(query, "visibilitytimeout", { min: 0, max: visibilityTimeoutSecondsMax });
  if (!seconds.ok) return seconds;
  if (seconds.value !== undefined) return parsed(seconds.value);
  return rejected("MissingRequiredQueryParameter", { QueryParameterName: "visibilitytimeout" });
}

export function parsePopReceipt(query: Query): Parsed<string> {
  const receipt = queryValue(query, "popreceipt");
  if (receipt === undefined || receipt === "") return rejected("MissingRequiredQueryParameter", { QueryParameterName: "popreceipt" });
  return parsed(receipt);
}
