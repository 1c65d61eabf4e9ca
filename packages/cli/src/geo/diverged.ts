/**
 * `stamp geo diverged`: what only a primary had that a forced failover deposed, as that stamp has reported it
 * (docs/guides/geo.md). A stamp that does not answer is told with its reason; the reports of the others are shown.
 */
import { entityJson } from "@stamp/azure-rest";
import { type Outcome, toHex } from "@stamp/base";
import {
  type DivergedRow,
  type ForgetDivergedResponse,
  type ListDivergedResponse,
  type LocatedAccount,
  propertyFromWire,
} from "@stamp/wire";
import type { Command } from "commander";
import { call, onLocation } from "../accounts/location-command.ts";
import { table } from "../print.ts";
import { tell } from "../running.ts";
import { type LocationClient, locationAt } from "./operation.ts";

/** Report of what only one stamp had of an account. */
export interface Report {
  /** True if the report is complete; false: the stamp still makes it. */
  readonly complete: boolean;
  /** Reason why the report makes no progress; empty: it does. */
  readonly trouble: string;
  readonly rows: readonly DivergedRow[];
}

interface StampReport extends Report {
  readonly stamp: string;
}

/** Deletes the report of one stamp, page by page. Repeated, it goes on. */
export async function forgetDiverged(command: Command, account: string, stamp: string): Promise<void> {
  const forgotten = await onLocation(command, async (transport, { at }): Promise<Outcome<number>> => {
    const client = locationAt(transport, at);
    let rows = 0;
    for (let marker: string | undefined = ""; marker !== undefined; ) {
      const page: Outcome<ForgetDivergedResponse> = await client.forgetDiverged({ account, stamp, marker }, call);
      if (!page.ok) return page;
      rows += page.value.rows;
      marker = page.value.nextMarker === "" ? undefined : page.value.nextMarker;
    }
    return { ok: true, value: rows };
  });
  tell(command, { account, stamp, forgotten }, () => `${stamp}: ${forgotten} rows of the report about account ${account} are deleted`);
}

export async function showDiverged(command: Command, account: string, stamp: string): Promise<void> {
  const reports = await onLocation(command, async (transport, { at }): Promise<Outcome<StampReport[]>> => {
    const client = locationAt(transport, at);
    const found = await client.getAccount({ account }, call);
    if (!found.ok) return found;
    const stamps = stamp === "" ? reportingStamps(found.value) : [stamp];
    const read: StampReport[] = [];
    for (const name of stamps) {
      const report = await reportOf(client, account, name);
      if (report.ok) read.push(report.value);
      else if (stamp !== "") return report;
      else if (report.failure.code !== "notFound") {
        read.push({ stamp: name, complete: false, trouble: `it does not tell its report: ${report.failure.message}`, rows: [] });
      }
    }
    return { ok: true, value: read };
  });
  tell(
    command,
    reports.map((report) => ({ ...report, rows: report.rows.map((row) => rowFacts(account, row)) })),
    () => reportsText(reports),
  );
}

/** Stamps that may have a report: after a failover the deposed one has the copy; after the way back it is primary again. */
export const reportingStamps = ({ stamp, secondary, target }: LocatedAccount): string[] =>
  [...new Set([stamp, secondary, target])].filter((name) => name !== "");

async function reportOf(client: LocationClient, account: string, stamp: string): Promise<Outcome<StampReport>> {
  const report = await allPages((marker) => client.listDiverged({ account, stamp, marker }, call));
  return report.ok ? { ok: true, value: { stamp, ...report.value } } : report;
}

/** Reads a report, whose page after `marker` `ask` gives. */
export async function allPages(ask: (marker: string) => Promise<Outcome<ListDivergedResponse>>): Promise<Outcome<Report>> {
  const rows: DivergedRow[] = [];
  for (let marker = ""; ; ) {
    const page = await ask(marker);
    if (!page.ok) return page;
    rows.push(...page.value.rows);
    const { nextMarker, complete, trouble } = page.value;
    if (nextMarker === "") return { ok: true, value: { complete, trouble, rows } };
    marker = nextMarker;
  }
}

/** Returns facts for tools; `entity` is as the Table service gives it, and can be inserted there again. */
function rowFacts(account: string, row: DivergedRow) {
  const { operation, sequence, kind, name, deleted, key } = row;
  const facts = { operation: Number(operation), sequence: Number(sequence), kind, table: name, deleted, writtenAt: writtenAt(row) ?? null };
  if (row.blob !== "" || kind === "container") return { ...facts, table: undefined, container: name, blob: row.blob || null };
  if (ofQueue.has(kind)) return { ...facts, table: undefined, queue: name, text: row.text ?? null, key: toHex(key) };
  if (row.entity?.key === undefined) return { ...facts, key: toHex(key) };
  const { partitionKey, rowKey } = row.entity.key;
  return { ...facts, partitionKey, rowKey, entity: entityOf(account, row) };
}

/** Returns the entity of a written row; null for a deletion. */
function entityOf(account: string, { name, deleted, entity }: DivergedRow): unknown {
  if (deleted || entity?.key === undefined) return null;
  const properties = entity.properties.map(propertyFromWire).filter((property) => property !== undefined);
  const { partitionKey, rowKey } = entity.key;
  const shown = { partitionKey, rowKey, timestamp: entity.timestamp, properties };
  const { "odata.metadata": _, ...body } = JSON.parse(entityJson({ metadata: "minimal", account, endpoint: "" }, name, shown, []));
  return body;
}

/** Returns the time of the write; undefined for a deletion, whose time the log lacks, and for a row without one. */
function writtenAt({ deleted, entity, modifiedMs }: DivergedRow): string | undefined {
  if (modifiedMs !== undefined) return new Date(Number(modifiedMs)).toISOString();
  return deleted || entity?.key === undefined ? undefined : new Date(Number(entity.timestamp / 10_000n)).toISOString();
}

/** Kinds of rows that belong to queues. */
const ofQueue: ReadonlySet<string> = new Set(["queue", "message", "message-part"]);

/** Leaves out rows of parts of a blob or message, unless there is nothing else of it; then one stays. */
function withoutParts(rows: readonly DivergedRow[]): readonly DivergedRow[] {
  const idOf = ({ operation, name, blob }: DivergedRow): string => `${operation} ${name}/${blob}`;
  const told = new Set(rows.filter(({ kind }) => kind === "blob" || kind === "message").map(idOf));
  return rows.filter((row) => {
    if (row.kind !== "blob-part" && row.kind !== "message-part") return true;
    const isFirst = !told.has(idOf(row));
    told.add(idOf(row));
    return isFirst;
  });
}

/** Returns table or container, blob or PartitionKey, and RowKey of a row. */
function pathOf({ kind, name, blob, entity, key }: DivergedRow): readonly [string, string, string] {
  if (kind === "row") return [toHex(key), "-", "-"];
  if (blob !== "") return [name, blob, "-"];
  return [name, entity?.key?.partitionKey ?? "-", entity?.key?.rowKey ?? "-"];
}

/** Returns rows for people: failover, event, table or container, blob or PartitionKey, RowKey, time of the write. */
export const rowTexts = (rows: readonly DivergedRow[]): string[][] =>
  withoutParts(rows).map((row) => {
    const what = `${row.kind} ${row.deleted ? "deleted" : "written"}`;
    return [String(row.operation), what, ...pathOf(row), writtenAt(row) ?? "-"];
  });

function reportsText(reports: readonly StampReport[]): string {
  const rows = reports.flatMap(({ stamp, rows: own }) => rowTexts(own).map((texts) => [stamp, ...texts]));
  const troubles = reports.flatMap(({ stamp, complete, trouble }) =>
    complete ? [] : [`${stamp}: the report is not complete${trouble === "" ? "" : `: ${trouble}`}`],
  );
  const shown =
    rows.length === 0
      ? []
      : [table(["STAMP", "FAILOVER", "WHAT", "TABLE, CONTAINER OR QUEUE", "BLOB OR PARTITION KEY", "ROW KEY", "WRITTEN"], rows)];
  const none = rows.length === 0 && troubles.length === 0 ? ["no stamp has reported anything that another one lacked"] : [];
  return [...shown, ...troubles, ...none].join("\n");
}
