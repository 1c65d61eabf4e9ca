/** Tables and summaries for people. */
import type { ClusterStatus } from "@stamp/cluster";
import Table from "cli-table3";

const plain = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};

export function table(head: readonly string[], rows: readonly (readonly (string | number | bigint)[])[]): string {
  const made = new Table({ head: [...head], chars: plain, style: { head: [], border: [], "padding-left": 0, "padding-right": 0 } });
  for (const row of rows) made.push(row.map(String));
  return made
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

const portOf = (address: string): string => address.slice(address.lastIndexOf(":") + 1);

export function processTable(status: ClusterStatus): string {
  return table(
    ["PROCESS", "PID", "GRPC", "HTTP", "STATE", "WAITING FOR"],
    status.processes.map((each) => [
      each.name,
      each.pid ?? "-",
      portOf(each.grpc),
      portOf(each.http),
      each.restarts > 0 ? `${each.state} (restarted ${each.restarts}×)` : each.state,
      each.waitingFor.join(", "),
    ]),
  );
}

export function endpointLines(status: ClusterStatus): string {
  const { blob, queue, table: tables } = status.endpoints;
  return [`  blob   ${blob}`, `  queue  ${queue}`, `  table  ${tables}`].join("\n");
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

/** As JSON for tools: 64-bit numbers that a double can hold as numbers, others as text; protobuf's own marks left out. */
export function toJson(value: unknown): string {
  return JSON.stringify(
    value,
    (key, inner: unknown) => {
      if (key === "$typeName" || key === "$unknown") return undefined;
      if (typeof inner === "bigint") return inner <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(inner) : inner.toString();
      if (inner instanceof Uint8Array) return Buffer.from(inner).toString("base64");
      return inner;
    },
    2,
  );
}
