/**
 * Processes of a cluster that no supervisor of ours runs: containers, or processes started by hand. They are named in
 * STAMP_PROCESSES, a list of name=host:grpc-port:http-port; each is asked itself.
 */
import { roles } from "./roles.ts";
import { ConfigError } from "./start-error.ts";
import type { ClusterStatus, ProcessStatus } from "./status.ts";

/** Text in place of the data folder where each process has a container with a volume. */
export const inContainers = "a volume per container";

/** Returns the processes that STAMP_PROCESSES names; undefined: it names none. */
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
    endpoints: {
      blob: endpoint("Blob"),
      queue: endpoint("Queue"),
      table: endpoint("Table"),
      ...(endpoint("File") === "" ? {} : { file: endpoint("File") }),
    },
    connectionString,
    lockService: processes.flatMap((each) => (each.role === "lock-service" ? [each.grpc] : [])).join(","),
  };
}

const entryShape = /^(?<name>[a-z][a-z0-9-]*)=(?<host>[A-Za-z0-9_.-]+):(?<grpcPort>\d{1,5}):?(?<httpPort>\d{0,5})$/;
const isPort = (text: string): boolean => text === "" || (Number(text) >= 1 && Number(text) <= 65_535);

function processOf(entry: string): ProcessStatus {
  const { name = "", host = "", grpcPort = "", httpPort = "" } = entryShape.exec(entry)?.groups ?? {};
  if (name === "" || ![grpcPort, httpPort].every(isPort))
    throw new ConfigError(`STAMP_PROCESSES: ${JSON.stringify(entry)} is not allowed: name=host:grpc-port:http-port`);
  const role = roles.find((each) => name.startsWith(each)) ?? name;
  const unknown = { pid: null, state: "not answering", ready: false, waitingFor: [], restarts: 0, lastExit: "" };
  return { role, name, grpc: `${host}:${grpcPort}`, http: `${host}:${httpPort}`, ...unknown };
}
