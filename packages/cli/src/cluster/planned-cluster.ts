/** The cluster as it was planned: whom to ask where no supervisor tells, and the processes of other hosts. */
import { type ClusterConfig, type ClusterStatus, type ProcessStatus, planCluster } from "@stamp/cluster";
import { recordOf } from "./known-record.ts";

/** Returns the cluster as the folder, or the topology, says that it was started. Nothing is known of its processes. */
export function plannedCluster(config: ClusterConfig): ClusterStatus {
  const { endpoints, connectionString, lockService, ...plan } = planCluster(config, recordOf(config.dataDir));
  const here = config.host === undefined ? {} : { host: config.host };
  const own = plan.processes.map(({ role, name, grpc, http }) => ({ role, name, grpc, http, ...here }));
  const processes = [...own, ...plan.elsewhere].map((each): ProcessStatus => ({ ...each, ...unknown }));
  const { dataDir } = config;
  return { running: true, ready: false, supervisorPid: null, dataDir, endpoints, connectionString, lockService, processes };
}

/** Returns the processes of other hosts, without the facts that only their supervisors know. */
export const processesElsewhere = (config: ClusterConfig): ProcessStatus[] =>
  plannedCluster(config).processes.filter(({ host }) => host !== config.host);

const unknown = { pid: null, state: "not answering", ready: false, waitingFor: [], restarts: 0, lastExit: "" };
