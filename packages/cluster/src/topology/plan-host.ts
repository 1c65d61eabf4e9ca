/**
 * One host's part of a stamp: what `planCluster` returns where the configuration names a topology. Ports follow from the name of a process
 * (`topology.ts`), so that every host knows those of all others:
 *
 *   portBase, + 1, + 2      blob, queue, table (a second front-end of the same host: + 10, …)
 *   portBase + 1000 + slot  gRPC of each process
 *   portBase + 2000 + slot  readiness and liveness of each process
 *
 * Processes listen on the address of their host, or on `internalBind` and `httpBind` if those are given, and are called at the address.
 */
import { join } from "node:path";
import type { ClusterConfig } from "../config.ts";
import {
  type ClusterPlan,
  connectionStringOf,
  endpointsOf,
  hostOf,
  type LockServiceAddress,
  type PlannedPorts,
  type PlannedProcess,
  portsPerFrontEnd,
  processAt,
  type RemoteProcess,
} from "../plan.ts";
import type { ClusterRecord } from "../record/cluster-record.ts";
import { type NamedProcess, processesOf, type Topology, type TopologyHost } from "./topology.ts";

const grpcPorts = 1_000;
const httpPorts = 2_000;

export function planHost(config: ClusterConfig, topology: Topology, known?: Pick<ClusterRecord, "retired">): ClusterPlan {
  const all = Object.entries(topology.hosts);
  const addressOf = (host: TopologyHost, port: number): string => `${hostOf(host.address)}:${config.portBase + port}`;
  const lockServices = all.flatMap(([, host]) =>
    processesOf(host).flatMap(({ role, name, slot }): LockServiceAddress[] =>
      role === "lock-service" ? [{ name, address: addressOf(host, grpcPorts + slot) }] : [],
    ),
  );
  const lockService = lockServices.map(({ address }) => address).join(",");
  const elsewhere = all.flatMap(([name, host]): RemoteProcess[] =>
    name === config.host
      ? []
      : processesOf(host).map((each) => ({
          role: each.role,
          name: each.name,
          host: name,
          grpc: addressOf(host, grpcPorts + each.slot),
          http: addressOf(host, httpPorts + each.slot),
        })),
  );
  const own = config.host === undefined ? undefined : topology.hosts[config.host];
  const ports: PlannedPorts = { http: new Map(), internal: new Map() };
  const retired = known?.retired ?? [];
  const mine = own === undefined ? [] : processesOf(own).filter(({ name }) => !retired.includes(name));
  const processes = mine.map((named) => planned(named, own as TopologyHost, config, lockServices, ports));
  // A command on a machine that is no host names the first host with front-ends.
  const served = own !== undefined && hasFrontEnd(own) ? own : all.map(([, host]) => host).find(hasFrontEnd);
  const door = served === undefined ? hostOf(config.httpBind) : hostOf(served.address);
  const endpoints = Array.from({ length: served === undefined ? 1 : frontEndsOf(served).length }, (_, i) =>
    endpointsOf(config, door, config.portBase + i * portsPerFrontEnd),
  );
  const connectionStrings = endpoints.map((each) => connectionStringOf(config, each));
  return {
    processes,
    elsewhere,
    lockService,
    endpoints: endpoints[0] as ClusterPlan["endpoints"],
    connectionString: connectionStrings[0] as string,
    connectionStrings,
    httpPorts: ports.http,
    internalPorts: ports.internal,
  };
}

function planned(
  named: NamedProcess,
  host: TopologyHost,
  config: ClusterConfig,
  lockServices: readonly LockServiceAddress[],
  ports: PlannedPorts,
): PlannedProcess {
  const frontEnd = frontEndsOf(host).findIndex(({ name }) => name === named.name);
  return processAt(
    {
      ...named,
      listen: hostOf(config.internalBind),
      called: hostOf(host.address),
      grpcPort: config.portBase + grpcPorts + named.slot,
      httpPort: config.portBase + httpPorts + named.slot,
      dataDir: join(config.dataDir, named.name),
      lockServices,
      faultDomain: host.faultDomain ?? config.host,
      blobPort: config.portBase + Math.max(frontEnd, 0) * portsPerFrontEnd,
      blobFor: frontEnd === 0 ? "" : ` of ${named.name}`,
    },
    config,
    ports,
  );
}

const frontEndsOf = (host: TopologyHost): NamedProcess[] => processesOf(host).filter(({ role }) => role === "front-end");
const hasFrontEnd = (host: TopologyHost): boolean => frontEndsOf(host).length > 0;
