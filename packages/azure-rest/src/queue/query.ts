/** Query parameters of operations on messages: numbers within limits that the service names in its refusal. */
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import { type Query, queryValue } from "../target.ts";
import { behavesAs } from "../version.ts";

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

/** Returns a whole number; undefined when it is not there. */
function numberOf(query: Query, name: string): Parsed<number | undefined> {
  const text = queryValue(query, name);
  if (text === undefined) return parsed(undefined);
  return /^-?\d{1,15}$/.test(text) ? parsed(Number(text)) : badQuery(name, text, "Not a whole number.");
}

function checked(name: string, value: number, limits: Limits): Parsed<number> {
  return value < limits.min || value > limits.max ? outOfRange(name, String(value), limits) : parsed(value);
}

function within(query: Query, name: string, limits: Limits): Parsed<number | undefined> {
  const number = numberOf(query, name);
  return !number.ok || number.value === undefined ? number : checked(name, number.value, limits);
}

export const checkMessageCount = (count: number): Parsed<number> => checked("numofmessages", count, { min: 1, max: messagesMax });

export function parseMessageCount(query: Query): Parsed<number> {
  const count = numberOf(query, "numofmessages");
  return count.ok ? checkMessageCount(count.value ?? 1) : count;
}

export const takeTimeoutSecondsDefault = 30;

export const checkTakeTimeout = (seconds: number): Parsed<number> =>
  checked("visibilitytimeout", seconds, { min: 1, max: visibilityTimeoutSecondsMax });

/** Parses the visibility timeout of Get Messages. */
export function parseTakeTimeout(query: Query): Parsed<number> {
  const seconds = numberOf(query, "visibilitytimeout");
  return seconds.ok ? checkTakeTimeout(seconds.value ?? takeTimeoutSecondsDefault) : seconds;
}

export interface PutTimes {
  readonly visibilityTimeoutSeconds: number;
  /** Time to live of the message, in seconds; -1: for ever. */
  readonly timeToLiveSeconds: number;
}

/** Refuses times by which a message would expire before it becomes visible. */
export function checkPutTimes(times: PutTimes, version: string): Parsed<PutTimes> {
  const { visibilityTimeoutSeconds, timeToLiveSeconds } = times;
  const visibility = checked("visibilitytimeout", visibilityTimeoutSeconds, { min: 0, max: visibilityTimeoutSecondsMax });
  if (!visibility.ok) return visibility;
  const unbounded = behavesAs(version, "anyTimeToLive");
  const max = unbounded ? timeToLiveSecondsMax : timeToLiveSecondsDefault;
  if (unbounded && timeToLiveSeconds === -1) return parsed(times);
  if (timeToLiveSeconds < 1 || timeToLiveSeconds > max) {
    return outOfRange("messagettl", String(timeToLiveSeconds), { min: unbounded ? -1 : 1, max });
  }
  if (visibilityTimeoutSeconds < timeToLiveSeconds) return parsed(times);
  return outOfRange("visibilitytimeout", String(visibilityTimeoutSeconds), { min: 0, max: timeToLiveSeconds - 1 });
}

/** Parses the times of Put Message. */
export function parsePutTimes(query: Query, version: string): Parsed<PutTimes> {
  const visibility = numberOf(query, "visibilitytimeout");
  if (!visibility.ok) return visibility;
  const live = numberOf(query, "messagettl");
  if (!live.ok) return live;
  const times = { visibilityTimeoutSeconds: visibility.value ?? 0, timeToLiveSeconds: live.value ?? timeToLiveSecondsDefault };
  return checkPutTimes(times, version);
}

/** Parses the visibility timeout of Update Message, where it is required. */
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
