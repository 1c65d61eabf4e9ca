/** Tables of an init file, with the lines that become their entities. */
import { entityPath } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { InitCounts, InitTarget } from "./applying.ts";
import { inParallel } from "./in-parallel.ts";
import { eachLine, type Init, InitError, type SeedLine } from "./load-init.ts";
import { applyPolicies } from "./policies.ts";
import type { InitTable } from "./schema.ts";

const atOnce = 16;
/** Lines that are held in memory at a time. */
const held = 256;
const json = { accept: "application/json;odata=nometadata", "content-type": "application/json", prefer: "return-no-content" };

export async function applyTable(applying: InitTarget, init: Init, account: string, table: InitTable, counts: InitCounts): Promise<void> {
  const { name, policies, overwrite, entities } = table;
  const { requests, files } = applying;
  const body = utf8(JSON.stringify({ TableName: name }));
  const made = await requests.ask("table", account, { method: "POST", path: "/Tables", headers: json, body }, [201, 204, 409]);
  const code = made.headers["x-ms-error-code"];
  if (made.status !== 409) counts.tables++;
  else if (code !== undefined && code !== "TableAlreadyExists") throw new InitError(`table ${name} of ${account} can't be made: ${code}`);
  const place = { service: "table", account, path: `/${name}?comp=acl`, what: `table ${name} of ${account}` } as const;
  await applyPolicies(applying, place, policies, overwrite, counts);
  if (entities === undefined) return;
  let lines: SeedLine[] = [];
  const put = async (): Promise<void> => {
    await inParallel(lines, atOnce, (line) => putEntity(applying, account, name, overwrite, line, counts));
    lines = [];
  };
  await eachLine(files, init.folder, entities, async (line) => {
    lines.push(line);
    if (lines.length === held) await put();
  });
  await put();
}

async function putEntity(
  { requests }: InitTarget,
  account: string,
  table: string,
  overwrite: boolean,
  { where, text, value }: SeedLine,
  counts: InitCounts,
): Promise<void> {
  const { PartitionKey: partitionKey, RowKey: rowKey } = value as { PartitionKey: string; RowKey: string };
  const body = utf8(text);
  const asked = overwrite
    ? { method: "PUT", path: `/${entityPath(table, { partitionKey, rowKey })}`, headers: json, body }
    : { method: "POST", path: `/${table}`, headers: json, body };
  try {
    const put = await requests.ask("table", account, asked, [201, 204, 409]);
    if (put.status !== 409) counts.entities++;
  } catch (error) {
    throw new InitError(`${where}: ${(error as Error).message}`);
  }
}
