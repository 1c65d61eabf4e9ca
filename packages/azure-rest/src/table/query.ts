/** Query options of Query Entities, Get Entity and Query Tables. */
import { badQuery, notImplemented, type Parsed, parsed } from "../rest-error.ts";
import { type Query, queryValue } from "../target.ts";
import { type FilterStep, parseFilter } from "./filter.ts";

/** Number of entities or tables in one page, at most. */
export const tablePageMax = 1000;
export const selectMax = 255;

export interface TableQuery {
  readonly filter: readonly FilterStep[];
  /** Names of the properties that are shown; empty: all. */
  readonly select: readonly string[];
  /** Number of entities or tables in the page, at most. 0: an empty page. */
  readonly top: number;
}

/** Options that OData has and the service does not. */
const refused = ["$orderby", "$skip", "$expand", "$inlinecount", "$count", "$search", "$apply", "$skiptoken"] as const;

export function parseTableQuery(query: Query): Parsed<TableQuery> {
  for (const name of refused) if (query.has(name)) return notImplemented(`The query option ${name}`);
  const filter = parseFilter(queryValue(query, "$filter") ?? "");
  if (!filter.ok) return filter;
  const select = [...new Set((queryValue(query, "$select") ?? "").split(",").map((name) => name.trim()))].filter((name) => name !== "");
  if (select.length > selectMax) return badQuery("$select", String(select.length), `At most ${selectMax} properties.`);
  const text = queryValue(query, "$top");
  const top = text === undefined ? tablePageMax : /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(top <= tablePageMax)) return badQuery("$top", text ?? "", `A number from 0 to ${tablePageMax}.`);
  // The star stands for everything.
  return parsed({ filter: filter.value, select: select.includes("*") ? [] : select, top });
}
