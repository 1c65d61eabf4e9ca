/**
 * Starts and supervises the processes of a stamp on one machine. Start at `Supervisor`; `ClusterConfig` has every setting
 * with its default. The caller owes: one supervisor for a data folder, held by its lock, and `stop` at the end.
 */
export { type Addresses, bindsBeyondLoopback, isBeyondLoopback, olderKey } from "./addresses.ts";
export { type ClusterRecord, clusterRecordPath, readClusterRecord, writeClusterRecord } from "./cluster-record.ts";
export * from "./config.ts";
export { type ControlRequest, control } from "./control.ts";
export { DataFolder, type RunningOnFolder, type SupervisorRecord } from "./data-folder.ts";
export { detach } from "./detach.ts";
export { LogFile } from "./log-file.ts";
export type { ProcessEvent } from "./managed-process.ts";
export { ownCredential, ownTransport } from "./own-transport.ts";
export { missingPeer, operatorName, peerFilesOf, peerFolder } from "./peer-files.ts";
export { type Endpoints, isPublic, type Plan, type PlannedProcess, planCluster, type RemoteProcess } from "./plan.ts";
export { identityOf, isAlive, type ProcessIdentity } from "./process-identity.ts";
export { internalReachOf, noAccountServed, reachRemarks, restReachOf } from "./reach.ts";
export { changesSince, nodesLeftOut, refuseRemoval, remarksOf, rememberedLine, rememberedOf } from "./remembered.ts";
export { type RoleName, roles } from "./roles.ts";
export { type RunningSupervisor, runSupervisor } from "./run-supervisor.ts";
export { secretFilesOf } from "./secret-files.ts";
export { StartError } from "./start-error.ts";
export type { ClusterStatus, ProcessStatus } from "./status.ts";
export { Supervisor, type SupervisorOptions } from "./supervisor.ts";
export { type NamedProcess, processesOf, readTopology, type Topology, type TopologyHost, topologySchema } from "./topology.ts";
export { type Listed, StampInspector, type StampView } from "./view.ts";
