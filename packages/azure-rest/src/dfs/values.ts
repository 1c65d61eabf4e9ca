/** Query parameters of Data Lake Storage as values. */
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import type { Query } from "../target.ts";
import { valueIn } from "./operations.ts";

export const listedMax = 5000;
/** Paths that one request of a recursive change of access control goes over. */
export const changedMax = 2000;

export const missingParameter = (name: string): ReturnType<typeof rejected> =>
  rejected("MissingRequiredQueryParameter", { QueryParameterName: name });

/** Returns undefined if the parameter is absent. */
export function flagOf(query: Query, name: string): Parsed<boolean | undefined> {
  const text = valueIn(query, name);
  const flag = text?.toLowerCase();
  if (flag === undefined) return parsed(undefined);
  return flag === "true" || flag === "false" ? parsed(flag === "true") : badQuery(name, text ?? "", "One of true, false.");
}

/** False if the parameter is absent. */
export function switchOf(query: Query, name: string): Parsed<boolean> {
  const flag = flagOf(query, name);
  return flag.ok ? parsed(flag.value ?? false) : flag;
}

export function requiredFlag(query: Query, name: string): Parsed<boolean> {
  const flag = flagOf(query, name);
  if (!flag.ok) return flag;
  return flag.value === undefined ? missingParameter(name) : parsed(flag.value);
}

/** Returns a number of results: at most `max`, and `max` if the parameter is absent. */
export function countOf(query: Query, name: string, max: number): Parsed<number> {
  const text = valueIn(query, name);
  if (text === undefined) return parsed(max);
  const count = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(count)) return badQuery(name, text, "Not a whole number.");
  if (count >= 1) return parsed(Math.min(count, max));
  const limits = { MinimumAllowed: "1", MaximumAllowed: String(max) };
  return rejected("OutOfRangeQueryParameterValue", { QueryParameterName: name, QueryParameterValue: text, ...limits });
}

/** Returns the offset in the file at which data is appended, or up to which it is flushed, in bytes. */
export function positionOf(query: Query): Parsed<number> {
  const text = valueIn(query, "position");
  if (text === undefined) return missingParameter("position");
  const position = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(position) ? parsed(position) : badQuery("position", text, "Not an offset in bytes.");
}

/** Returns one of the choices, whose case does not matter; undefined if the parameter is absent. */
export function choiceOf<const T extends string>(query: Query, name: string, choices: readonly T[]): Parsed<T | undefined> {
  const text = valueIn(query, name);
  if (text === undefined) return parsed(undefined);
  const choice = choices.find((known) => known === text.toLowerCase());
  return choice === undefined ? badQuery(name, text, `One of ${choices.join(", ")}.`) : parsed(choice);
}
