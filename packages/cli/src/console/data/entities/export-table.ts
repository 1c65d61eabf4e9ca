/**
 * Entities of a table as a file: JSON lines, an entity each as the REST API takes it, or CSV (RFC 4180) with a column `NAME@type` beside each
 * property.
 *
 * Invariants:
 * - The first page is read before the answer begins: what fails then is told in words. What fails later breaks the file off.
 * - Memory holds a page, and for CSV the names of the properties: they are collected first, in a pass of its own.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { EntityRow, Page } from "@stamp/console-page";
import type { DataClients } from "../clients.ts";
import { entities } from "../data-lists.ts";

const pageTimeoutMs = 10_000;
const attemptsMax = 5;
const againMs = 500;
/** More columns open in no spreadsheet, and each row has all of them. */
const columnsMax = 4_000;

export const exportFormats = ["jsonl", "csv"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Returns the pieces of the file. Throws if its first page can't be had. */
export async function exportTable(
  clients: DataClients,
  query: URLSearchParams,
  format: ExportFormat,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const load = (after: string): Promise<Page<EntityRow>> => {
    const asked = new URLSearchParams(query);
    asked.set("after", after);
    return entities(clients, asked, AbortSignal.any([signal, AbortSignal.timeout(pageTimeoutMs)]));
  };
  const first = await load("");
  const columns = format === "csv" ? await columnsOf(pagesFrom(first, load, signal)) : [];
  return piecesOf(pagesFrom(first, load, signal), columns, format);
}

async function* pagesFrom(
  first: Page<EntityRow>,
  load: (after: string) => Promise<Page<EntityRow>>,
  signal: AbortSignal,
): AsyncGenerator<readonly EntityRow[]> {
  yield first.items;
  for (let after = first.next; after !== null; ) {
    const page = await loadAgain(after, load, signal);
    yield page.items;
    after = page.next;
  }
}

/** A page that does not come is asked for again: a stamp that changes its ranges refuses for a moment. */
async function loadAgain(after: string, load: (after: string) => Promise<Page<EntityRow>>, signal: AbortSignal): Promise<Page<EntityRow>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await load(after);
    } catch (error) {
      if (attempt === attemptsMax || signal.aborted) throw error;
      await delay(againMs * attempt);
    }
  }
}

async function* piecesOf(
  pages: AsyncIterable<readonly EntityRow[]>,
  columns: readonly string[],
  format: ExportFormat,
): AsyncGenerator<Uint8Array> {
  if (format === "csv") yield Buffer.from(csvLine([...keyColumns, ...columns.flatMap((name) => [name, `${name}@type`])]));
  for await (const rows of pages) yield Buffer.from(rows.map((row) => (format === "csv" ? csvRow(row, columns) : jsonLine(row))).join(""));
}

async function columnsOf(pages: AsyncIterable<readonly EntityRow[]>): Promise<readonly string[]> {
  const names = new Set<string>();
  for await (const rows of pages) {
    for (const { properties } of rows) for (const { name } of properties) names.add(written(name));
    if (names.size > columnsMax)
      throw new Error(`the table has more than ${columnsMax} names of properties, too many columns for CSV: export JSON lines`);
  }
  return [...names];
}

/** `entity-answers.ts` has put an "@" before names that the SDK takes for fields of its own. No property begins with one. */
const written = (name: string): string => name.replace(/^@/, "");

/** Types that JSON has itself, and that an import finds without a name beside the value. */
const plainTypes = ["String", "Boolean", "Int32"];

/** Line of JSON with the entity as the REST API takes it. */
export function jsonLine({ partitionKey, rowKey, timestamp, properties }: EntityRow): string {
  const typed = properties.flatMap(({ name, type, value }): (readonly [string, unknown])[] => {
    const named = written(name);
    const number = Number(value);
    const isNumber = (type === "Double" || type === "Int32") && Number.isFinite(number);
    const told = isNumber ? number : type === "Boolean" ? value === "true" : value;
    return [[named, told], ...(plainTypes.includes(type) ? [] : [[`${named}@odata.type`, `Edm.${type}`] as const])];
  });
  const entity = new Map<string, unknown>([["PartitionKey", partitionKey], ["RowKey", rowKey], ["Timestamp", timestamp], ...typed]);
  // An object would put names that are numbers first, and take "__proto__" for something else.
  return `{${[...entity].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}\n`;
}

const keyColumns = ["PartitionKey", "RowKey", "Timestamp"];

const csvLine = (cells: readonly string[]): string =>
  `${cells.map((cell) => (/[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")}\r\n`;

/** Throws if the entity has a property without a column: it was written while the file was made. */
export function csvRow({ partitionKey, rowKey, timestamp, properties }: EntityRow, columns: readonly string[]): string {
  const byName = new Map(properties.map((property) => [written(property.name), property]));
  const known = new Set(columns);
  for (const name of byName.keys())
    if (!known.has(name)) throw new Error(`property ${name} was added during the export: export again, or as JSON lines`);
  return csvLine([
    ...[partitionKey, rowKey, timestamp],
    ...columns.flatMap((name) => [byName.get(name)?.value ?? "", byName.get(name)?.type ?? ""]),
  ]);
}
