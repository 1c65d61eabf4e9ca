/**
 * Processes of a cluster that no supervisor of ours runs: containers, or processes started by hand. They are named in
 * STAMP_PROCESSES, a list of name=host:grpc-port:http-port; each is asked itself.
 */
import { roles } from "./roles.ts";
import type { ClusterStatus, ProcessStatus } from "./status.ts";

/** Stands for the data folder where each process has a container, with a volume of its own. */
export const inContainers = "a volume per container";

/** Returns the processes as far as their names tell, undefined if STAMP_PROCESSES names none. */
export function composeCluster(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Pick<ClusterStatus, "dataDir" | "processes" | "endpoints" | "connectionString" | "lockService"> | undefined {
  const list = environment.STAMP_PROCESSES ?? "";
  if (list === "") return undefined;
  const processes = list
    .split(/[\s,]+/)
    .filter((each) => each !== "")
    .map(processOf);
  const connectionString = environment.STAMP_CONNECTION_STRING ?? "";
  const endpoint = (name: string): string => new RegExp(`${name}Endpoint=([^;]+)`, "i").exec(connectionString)?.[1] ?? "";
  return {
    dataDir: inContainers,
    processes,
    endpoints: { blob: endpoint("Blob"), queue: endpoint("Queue"), table: endpoint("Table") },
    connectionString,
    lockService: processes.flatMap((each) => (each.role === "lock-service" ? [each.grpc] : [])).join(","),
  };
}

function processOf(entry: string): ProcessStatus {
  const [name = "", address = ""] = entry.split("=");
  const [host = "", grpcPort = "", httpPort = ""] = address.split(":");
  const role = roles.find((each) => name.startsWith(each)) ?? name;
  const unknown = { pid: null, state: "not answering", ready: false, waitingFor: [], restarts: 0, lastExit: "" };
  return { role, name, grpc: `${host}:${grpcPort}`, http: `${host}:${httpPort}`, ...unknown };
}
