/**
 * Reads files of entities: JSON lines, an entity each as the REST API takes it (`"Count@odata.type": "Edm.Int64"`), or CSV (RFC 4180) whose
 * first line has the names, with a column `NAME@type` for each property that is no String.
 *
 * Invariants:
 * - Memory holds one entity. A line longer than any entity can be ends the reading, e.g. behind a quote that is never closed.
 * - Whatever is wrong is told with the number of its line.
 */
import type { EntityRow, Value } from "./data-model.ts";

export type FileEntity = Pick<EntityRow, "partitionKey" | "rowKey" | "properties"> & {
  /** Number of its first line, from 1. */
  readonly line: number;
};

export type EntityFormat = "jsonl" | "csv";

/** Characters of a line. An entity has 1 MiB, which CSV and JSON write with up to six characters each. */
const lineMax = 8 * 1_024 * 1_024;
const keys = ["PartitionKey", "RowKey"];
/** Fields that the service sets itself. */
const dropped = ["Timestamp", "odata.etag", "odata.metadata"];

/** Returns the format that the name of a file tells; undefined if it tells none. */
export function formatOf(name: string): EntityFormat | undefined {
  if (/\.csv$/i.test(name)) return "csv";
  return /\.(jsonl|ndjson|json)$/i.test(name) ? "jsonl" : undefined;
}

/** Yields the entities in pieces of a file's text. */
export async function* entitiesIn(text: AsyncIterable<string>, format: EntityFormat): AsyncGenerator<FileEntity> {
  if (format === "csv") {
    let columns: readonly string[] | undefined;
    for await (const { line, cells } of csvRecords(text)) {
      if (columns === undefined) columns = columnsIn(cells);
      else if (cells.length === 1 && cells[0] === "") continue;
      else yield { line, ...csvEntity(line, columns, cells) };
    }
    return;
  }
  for await (const { line, content } of linesOf(text)) {
    if (content.trim() !== "") yield { line, ...jsonEntity(line, content) };
  }
}

const wrong = (line: number, words: string): Error => new Error(`line ${line}: ${words}`);

function columnsIn(cells: readonly string[]): readonly string[] {
  for (const key of keys) if (!cells.includes(key)) throw wrong(1, `no column ${key}: the first line has the names of the columns`);
  const twice = cells.find((name, at) => cells.indexOf(name) !== at);
  if (twice !== undefined) throw wrong(1, `column ${JSON.stringify(twice)} is there twice`);
  const alone = cells.find((name) => name.endsWith("@type") && !cells.includes(name.slice(0, -"@type".length)));
  if (alone !== undefined) throw wrong(1, `column ${alone} has no column of values beside it`);
  return cells;
}

function csvEntity(line: number, columns: readonly string[], cells: readonly string[]): Omit<FileEntity, "line"> {
  if (cells.length !== columns.length) throw wrong(line, `${cells.length} cells, but the first line has ${columns.length}`);
  const byName = new Map(columns.map((name, at) => [name, cells[at] ?? ""]));
  const properties = columns.flatMap((name) => {
    if (keys.includes(name) || dropped.includes(name) || name.endsWith("@type")) return [];
    const [value = "", type = ""] = [byName.get(name), byName.get(`${name}@type`)];
    // Neither a value nor a type: the entity has no such property.
    return value === "" && type === "" ? [] : [{ name, type: type.replace(/^Edm\./, "") || "String", value }];
  });
  return { partitionKey: byName.get("PartitionKey") ?? "", rowKey: byName.get("RowKey") ?? "", properties };
}

/** A number as it is written: JSON.parse makes 5 of 5.0. */
class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const withDigits = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
  typeof value === "number" ? new Digits(context?.source ?? String(value)) : value;

function jsonEntity(line: number, content: string): Omit<FileEntity, "line"> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(content, withDigits);
  } catch {
    throw wrong(line, "no JSON: a line has one entity, {…}, and no comma behind it");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed) || parsed instanceof Digits)
    throw wrong(line, "no entity: a line is an object, {…}");
  const byName = new Map(Object.entries(parsed));
  const key = (name: string): string => {
    const value = byName.get(name);
    if (typeof value !== "string") throw wrong(line, `the entity has no ${name} that is a text`);
    return value;
  };
  const properties = [...byName].flatMap(([name, value]) => {
    if (keys.includes(name) || dropped.includes(name) || name.includes("@") || value === null) return [];
    return [{ name, ...typedOf(line, name, value, byName.get(`${name}@odata.type`)) }];
  });
  return { partitionKey: key("PartitionKey"), rowKey: key("RowKey"), properties };
}

function typedOf(line: number, name: string, value: unknown, told: unknown): Value {
  const type = typeof told === "string" ? told.replace(/^Edm\./, "") : undefined;
  if (typeof value === "string") return { type: type ?? "String", value };
  if (typeof value === "boolean") return { type: type ?? "Boolean", value: String(value) };
  if (!(value instanceof Digits)) throw wrong(line, `${name} is a list or an object: a property is a text, a number, true or false`);
  return { type: type ?? (/[.eE]/.test(value.text) ? "Double" : "Int32"), value: value.text };
}

async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<{ readonly line: number; readonly content: string }> {
  let rest = "";
  let line = 1;
  for await (const piece of text) {
    const parts = `${rest}${piece}`.split("\n");
    rest = parts.pop() ?? "";
    for (const content of parts) yield { line: line++, content };
    if (rest.length > lineMax) throw wrong(line, tooLong);
  }
  yield { line, content: rest };
}

const tooLong = "longer than an entity can be; is a quote or the end of the line missing?";

/** Yields the records of a CSV. Line ends inside quotes stay as they are. */
async function* csvRecords(text: AsyncIterable<string>): AsyncGenerator<{ readonly line: number; readonly cells: readonly string[] }> {
  let cells: string[] = [];
  let cell = "";
  let state: "plain" | "quoted" | "behind" = "plain";
  let [line, first, length] = [1, 1, 0];
  for await (const piece of text) {
    for (const each of piece) {
      if (each === "\n") line++;
      if (++length > lineMax) throw wrong(first, tooLong);
      if (state === "quoted") {
        if (each === '"') state = "behind";
        else cell += each;
      } else if (each === '"' && (state === "behind" || cell === "")) {
        // Behind a quote a second one is a quote of the text.
        if (state === "behind") cell += each;
        state = "quoted";
      } else if (each === "," || each === "\n") {
        cells.push(each === "\n" && state === "plain" ? cell.replace(/\r$/, "") : cell);
        [cell, state] = ["", "plain"];
        if (each === ",") continue;
        yield { line: first, cells };
        [cells, first, length] = [[], line, 0];
      } else if (state === "plain") cell += each;
      else if (each !== "\r") throw wrong(line, "a text behind a closing quote; a quote inside of quotes is written twice");
    }
  }
  if (state === "quoted") throw wrong(first, "a quote is never closed");
  if (length > 0) yield { line: first, cells: [...cells, cell] };
}
