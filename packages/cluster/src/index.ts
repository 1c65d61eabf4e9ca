/**
 * Starts and supervises the processes of a stamp on one machine. Start at `Supervisor`; `ClusterConfig` has every setting
 * with its default. The caller owes: one supervisor for a data folder, held by its lock, and `stop` at the end.
 */
export { programFileOf } from "./bundle/bundle.ts";
export { consolePage } from "./bundle/console-page.ts";
export { composeCluster, inContainers } from "./compose-status.ts";
export {
  type ClusterConfig,
  type ClusterConfigKey,
  checkFlag,
  clusterConfigSchema,
  configKeys,
  developmentAccount,
  environmentName,
  flagName,
  loadConfig,
  metadataStoreOf,
} from "./config.ts";
export { LocationSupervisor } from "./location/location-supervisor.ts";
export { type LocationConfig, stampSecretsIn } from "./location/plan-location.ts";
export { ownCredential, ownTransport } from "./own-transport.ts";
export { isPublic, type PlannedProcess } from "./plan.ts";
export { planCluster } from "./plan-cluster.ts";
export { outgoingRemark, type SystemPorts, systemPorts } from "./ports/outgoing-ports.ts";
export { portsOfBase, type ReservedPorts, reservePorts } from "./ports/port-base.ts";
export { internalReachOf, noAccountServed, reachRemarks, restReachOf } from "./reach.ts";
export { clusterRecordPath, DamagedRecordError, readClusterRecord, recordSealedBy, writeClusterRecord } from "./record/cluster-record.ts";
export { DataFolder } from "./record/data-folder.ts";
export { lockServicesIn, replicatesIn } from "./record/lock-service-folders.ts";
export { changesSince, nodesLeftOut, refuseRemoval, remarksOf, rememberedLine } from "./record/remembered.ts";
export { masterKeyPath } from "./record/sealed-accounts.ts";
export { homeFolder, isPackage, repositoryRoot } from "./repository-root.ts";
export { timesText } from "./reshape-text.ts";
export { type RoleName, roles } from "./roles.ts";
export { secretFilesOf } from "./secret-files.ts";
export { ConfigError, StartError } from "./start-error.ts";
export type { ClusterStatus, ProcessStatus } from "./status.ts";
export { type ControlRequest, control } from "./supervise/control.ts";
export { detach, detachLocation } from "./supervise/detach.ts";
export { LogFile } from "./supervise/log-file.ts";
export type { ProcessEvent } from "./supervise/managed-process.ts";
export { identityOf, isAlive, type ProcessIdentity } from "./supervise/process-identity.ts";
export { type Running, runSupervisor, superviseUntilStopped } from "./supervise/run-supervisor.ts";
export { Supervisor } from "./supervise/supervisor.ts";
export { olderKey } from "./topology/addresses.ts";
export { missingPeer, operatorName, peerFilesOf, peerFolder } from "./topology/peer-files.ts";
export { processesOf, readTopology, type Topology } from "./topology/topology.ts";
export { type ListedPart, StampInspector, type StampView } from "./view.ts";
