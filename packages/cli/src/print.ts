/** Tables and summaries for people. */
import type { ClusterStatus } from "@stamp/cluster";
import { printable, printableJson } from "./printable.ts";

/** Columns as wide as their widest cell, a line for each row whatever is in its cells. By hand: what draws tables takes seconds for thousands of rows. */
export function table(head: readonly string[], rows: readonly (readonly (string | number | bigint)[])[]): string {
  const lines = [head, ...rows.map((row) => row.map((cell) => printable(String(cell))))];
  const widths = head.map((_, column) => lines.reduce((widest, line) => Math.max(widest, line[column]?.length ?? 0), 0));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const portOf = (address: string): string => address.slice(address.lastIndexOf(":") + 1);

/** Returns a table of the processes; on several hosts with host and address. */
export function processTable(status: ClusterStatus): string {
  const hosts = status.processes.some(({ host }) => host !== undefined);
  const at = (address: string): string => (hosts ? address : portOf(address));
  return table(
    [...(hosts ? ["HOST"] : []), "PROCESS", "PID", "GRPC", "HTTP", "STATE", "WAITING FOR"],
    status.processes.map((each) => [
      ...(hosts ? [each.host ?? "-"] : []),
      each.name,
      each.pid ?? "-",
      at(each.grpc),
      at(each.http),
      each.restarts > 0 ? `${each.state} (restarted ${each.restarts}×)` : each.state,
      each.waitingFor.length === 0 && !each.ready && each.lastExit !== "" ? `ended with ${each.lastExit}` : each.waitingFor.join(", "),
    ]),
  );
}

export function endpointLines(status: ClusterStatus): string {
  const { blob, queue, table: tables, file, dfs } = status.endpoints;
  const ofDirectories = dfs === undefined ? [] : [`  dfs    ${dfs}`];
  const ofShares = file === undefined ? [] : [`  file   ${file}`];
  return [`  blob   ${blob}`, `  queue  ${queue}`, `  table  ${tables}`, ...ofShares, ...ofDirectories].join("\n");
}

/** Returns lines with the connection string. Accounts that a person made are not in the configuration. */
export function connectionLines({ connectionString }: Pick<ClusterStatus, "connectionString">): string {
  const none = "none: no account of the configuration is served (./stamp account list, ./stamp account create NAME)";
  return `Connection string\n  ${connectionString === "" ? none : connectionString}`;
}

export function bytesText(value: number | bigint): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = Number(value);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

/**
 * Returns JSON for tools: 64-bit numbers that a double can hold as numbers, others as text; protobuf's own marks left
 * out.
 */
export const toJson = (value: unknown): string => printableJson(JSON.stringify(value, plainValue, 2));

/** Returns the same on one line. */
export const toLine = (value: unknown): string => printableJson(JSON.stringify(value, plainValue));

function plainValue(key: string, inner: unknown): unknown {
  if (key === "$typeName" || key === "$unknown") return undefined;
  if (typeof inner === "bigint") return inner <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(inner) : inner.toString();
  if (inner instanceof Uint8Array) return Buffer.from(inner).toString("hex");
  return inner;
}

/** Returns a path as one word of a shell. */
export const word = (path: string): string => (/^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
