/**
 * Starts and supervises the processes of a stamp on one machine. Start at `Supervisor`; `ClusterConfig` has every setting
 * with its default. The caller owes: one supervisor for a data folder, held by its lock, and `stop` at the end.
 */

export * from "./config.ts";
export { ownCredential, ownTransport } from "./own-transport.ts";
export { type Endpoints, isPublic, type Plan, type PlannedProcess, type RemoteProcess } from "./plan.ts";
export { planCluster } from "./plan-cluster.ts";
export { type ReservedPorts, reservePorts } from "./port-base.ts";
export { internalReachOf, noAccountServed, reachRemarks, restReachOf } from "./reach.ts";
export { type ClusterRecord, clusterRecordPath, readClusterRecord, recordSealedBy, writeClusterRecord } from "./record/cluster-record.ts";
export { DataFolder, type RunningOnFolder, type SupervisorRecord } from "./record/data-folder.ts";
export { changesSince, nodesLeftOut, refuseRemoval, remarksOf, rememberedLine, rememberedOf } from "./record/remembered.ts";
export { masterKeyPath } from "./record/sealed-accounts.ts";
export { type RoleName, roles } from "./roles.ts";
export { secretFilesOf } from "./secret-files.ts";
export { StartError } from "./start-error.ts";
export type { ClusterStatus, ProcessStatus } from "./status.ts";
export { type ControlRequest, control } from "./supervise/control.ts";
export { detach } from "./supervise/detach.ts";
export { LogFile } from "./supervise/log-file.ts";
export type { ProcessEvent } from "./supervise/managed-process.ts";
export { identityOf, isAlive, type ProcessIdentity } from "./supervise/process-identity.ts";
export { type RunningSupervisor, runSupervisor } from "./supervise/run-supervisor.ts";
export { Supervisor, type SupervisorOptions } from "./supervise/supervisor.ts";
export { type Addresses, bindsBeyondLoopback, isBeyondLoopback, olderKey } from "./topology/addresses.ts";
export { missingPeer, operatorName, peerFilesOf, peerFolder } from "./topology/peer-files.ts";
export { type NamedProcess, processesOf, readTopology, type Topology, type TopologyHost, topologySchema } from "./topology/topology.ts";
export { type Listed, StampInspector, type StampView } from "./view.ts";
