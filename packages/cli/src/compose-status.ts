/**
 * Status of a cluster that no supervisor of ours runs: containers, or processes started by hand. Its processes are named in
 * STAMP_PROCESSES, a list of name=host:grpc-port:http-port; each is asked itself.
 */
import { type ClusterStatus, type ProcessStatus, roles } from "@stamp/cluster";
import type { Transport } from "@stamp/ports";
import { Status } from "@stamp/wire";

const askTimeoutMs = 1_500;

export async function composeStatus(transport: Transport): Promise<ClusterStatus | undefined> {
  const list = process.env.STAMP_PROCESSES ?? "";
  if (list === "") return undefined;
  const processes = await Promise.all(
    list
      .split(/[\s,]+/)
      .filter((each) => each !== "")
      .map((each) => ask(transport, each)),
  );
  const connectionString = process.env.STAMP_CONNECTION_STRING ?? "";
  const endpoint = (name: string): string => new RegExp(`${name}Endpoint=([^;]+)`, "i").exec(connectionString)?.[1] ?? "";
  return {
    running: true,
    ready: processes.every((each) => each.ready),
    supervisorPid: null,
    dataDir: "a volume per container",
    processes,
    endpoints: { blob: endpoint("Blob"), queue: endpoint("Queue"), table: endpoint("Table") },
    connectionString,
    lockService: processes.find((each) => each.role === "lock-service")?.grpc ?? "",
  };
}

async function ask(transport: Transport, entry: string): Promise<ProcessStatus> {
  const [name = "", address = ""] = entry.split("=");
  const [host = "", grpcPort = "", httpPort = ""] = address.split(":");
  const role = roles.find((each) => name.startsWith(each)) ?? name;
  const grpc = `${host}:${grpcPort}`;
  const answer = await transport.client(grpc, Status).getStatus({ withoutFacts: true }, { timeoutMs: askTimeoutMs });
  const found = answer.ok
    ? { pid: answer.value.pid, state: answer.value.state, ready: answer.value.ready, waitingFor: answer.value.waitingFor }
    : { pid: null, state: `down; bring it back: docker compose up -d ${host}`, ready: false, waitingFor: [] };
  return { role, name, grpc, http: `${host}:${httpPort}`, restarts: 0, lastExit: "", ...found };
}
