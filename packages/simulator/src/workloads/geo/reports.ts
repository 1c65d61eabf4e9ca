/** Reads the report of a deposed primary: what only it had, commit by commit. */
import { toHex, utf8 } from "@stamp/base";
import type { DivergedRow } from "@stamp/wire";
import type { ReportedCommit } from "./history.ts";
import { account, type StampName, type TwoStamps } from "./location.ts";
import { isBlob, tableName } from "./stamp-door.ts";

export interface Report {
  readonly commits: readonly ReportedCommit[];
  readonly complete: boolean;
  /** Reason why it is not complete. */
  readonly trouble: string;
}

/** Returns every page of the report at a stamp; undefined: it is not told. */
export async function readReport(place: TwoStamps, stamp: StampName, names: readonly string[]): Promise<Report | undefined> {
  const rows: DivergedRow[] = [];
  for (let marker = ""; ; ) {
    const page = await place.call((client, options) => client.listDiverged({ account, stamp, marker }, options));
    if (!page.ok) return undefined;
    rows.push(...page.value.rows);
    marker = page.value.nextMarker;
    const { complete, trouble } = page.value;
    if (marker === "") return { commits: commitsOf(rows, names), complete, trouble };
  }
}

function commitsOf(rows: readonly DivergedRow[], names: readonly string[]): readonly ReportedCommit[] {
  const commits = new Map<string, { readonly name: string; readonly operation: number; readonly rows: Map<string, number | undefined> }>();
  for (const row of rows) {
    const { kind, entity, operation, sequence, deleted } = row;
    const isOfTable = kind === "entity" && row.name === tableName;
    const name = isOfTable ? entity?.key?.partitionKey : names.find((one) => isBlob(one) && toHex(row.key).includes(toHex(utf8(one))));
    if (name === undefined) continue;
    const key = `${name} ${operation} ${sequence}`;
    const commit = commits.get(key) ?? { name, operation: Number(operation), rows: new Map() };
    commits.set(key, commit);
    if (isOfTable) commit.rows.set(entity?.key?.rowKey ?? "", deleted ? undefined : writeOf(row));
  }
  return [...commits.values()];
}

const writeOf = ({ entity }: DivergedRow): number =>
  Number(entity?.properties.find(({ name }) => name === "write")?.value?.kind.value ?? Number.NaN);
