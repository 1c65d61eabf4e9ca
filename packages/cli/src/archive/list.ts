/** Prints what an archive has, by its containers, tables and queues. */
import { table, toJson } from "../print.ts";
import { say, sayRaw } from "../say.ts";
import type { Item } from "./items.ts";
import { type ImportSource, withWords } from "./run.ts";

interface Row {
  readonly kind: string;
  readonly name: string;
  /** Blobs with snapshots and versions, entities or messages. */
  things: number;
  bytes: number;
}

/** A row for each place: in memory are the rows, not what they count. */
export async function listed(source: ImportSource, asJson: boolean): Promise<void> {
  const rows: Row[] = [];
  await withWords(source.name, async () => {
    for await (const { item } of source.steps({})) {
      const { kind, name } = placeOf(item);
      const last = rows.at(-1);
      const row = last?.kind === kind && last.name === name ? last : { kind, name, things: 0, bytes: 0 };
      if (row !== last) rows.push(row);
      count(row, item);
    }
  });
  const shown = rows.map(({ kind, name, things, bytes }) => [kind, name, things, kind === "container" ? bytes : "-"]);
  if (asJson) sayRaw(toJson({ source: source.name, places: rows }));
  else say(`${source.name}\n${rows.length === 0 ? "nothing is in it" : table(["KIND", "NAME", "THINGS", "BYTES"], shown)}`);
}

function placeOf(item: Item): { readonly kind: string; readonly name: string } {
  if (item.kind === "blobs") return { kind: "container", name: item.container };
  if (item.kind === "entities") return { kind: "table", name: item.table };
  if (item.kind === "messages") return { kind: "queue", name: item.queue };
  if (item.kind === "service") return { kind: "settings", name: item.service };
  if (item.kind === "leftOut") return { kind: "left out", name: `${item.what}: ${item.why}` };
  return { kind: item.kind, name: item.name };
}

function count(row: Row, item: Item): void {
  if (item.kind === "blobs") {
    row.things += item.blobs.length;
    row.bytes += item.blobs.reduce((sum, { facts }) => sum + facts.length, 0);
  } else if (item.kind === "entities") row.things += item.entities.length;
  else if (item.kind === "messages") row.things += item.messages.length;
}
