/**
 * Plans the processes of a local cluster, and how each is started: a configuration in, a list out, in the order of a cold start.
 * If the configuration names a topology (which is read here), the list is one host's part of it (`plan-host.ts`).
 * The number of a decommissioned extent node is passed over: `extentNodes` counts those that run. A process that the record of the folder
 * gives a slot has the ports of that slot; the others take the lowest free ones, in order.
 *
 *   portBase         blob          (the second front-end: + 10, …)
 *   portBase + 1     queue
 *   portBase + 2     table
 *   portBase + 100…  gRPC of each process
 *   portBase + 200…  readiness and liveness of each process (`/ready`, `/live`)
 *
 * The REST doors are on `httpBind`, all other ports on `internalBind` (`addresses.ts`). If the processes listen on every address of the
 * machine, they reach each other over loopback: nobody can call 0.0.0.0.
 */
import { join } from "node:path";
import type { ClusterConfig } from "./config.ts";
import {
  type ClusterPlan,
  connectionStringOf,
  type Endpoints,
  endpointsOf,
  hostOf,
  type LockServiceAddress,
  type PlannedPorts,
  type PlannedProcess,
  portsPerFrontEnd,
  processAt,
} from "./plan.ts";
import type { ClusterRecord } from "./record/cluster-record.ts";
import { type RoleName, roles } from "./roles.ts";
import { planHost } from "./topology/plan-host.ts";
import { readTopology } from "./topology/topology.ts";

/** Plans the processes; `known`: what the data folder remembers, undefined for a folder that remembers nothing. */
export function planCluster(config: ClusterConfig, known?: Pick<ClusterRecord, "retired" | "slots">): ClusterPlan {
  if (config.topology !== undefined) return planHost(config, readTopology(config.topology), known);
  const counts: Readonly<Record<RoleName, number>> = {
    "lock-service": config.lockServices,
    "extent-node": config.extentNodes,
    "stream-manager": config.streamManagers,
    "partition-manager": config.partitionManagers,
    "partition-server": config.partitionServers,
    "front-end": config.frontEnds,
  };
  const host = hostOf(config.internalBind);
  const called = callable(host);
  const ports: PlannedPorts = { http: new Map(), internal: new Map() };
  const processes: PlannedProcess[] = [];
  const placed = placedIn(namesOf(counts, known?.retired ?? []), known?.slots ?? {});
  const lockServices = placed.flatMap(({ role, name, slot }): LockServiceAddress[] =>
    role === "lock-service" ? [{ name, address: `${called}:${config.portBase + 100 + slot}` }] : [],
  );
  const lockService = lockServices.map(({ address }) => address).join(",");
  for (const { number, slot, ...named } of placed) {
    const blobFor = number === 1 ? "" : ` of ${named.name}`;
    const place = {
      ...{ ...named, slot, listen: host, called, lockServices, blobFor },
      grpcPort: config.portBase + 100 + slot,
      httpPort: config.portBase + 200 + slot,
      dataDir: join(config.dataDir, named.name),
      faultDomain: config.faultDomains[(number - 1) % Math.max(config.faultDomains.length, 1)],
      blobPort: blobPortOf(config, number),
    };
    processes.push(processAt(place, config, ports));
  }
  const endpoints = Array.from({ length: config.frontEnds }, (_, i) =>
    endpointsOf(config, hostOf(config.httpBind), blobPortOf(config, i + 1)),
  );
  const [first] = endpoints as [Endpoints];
  const connectionStrings = endpoints.map((each) => connectionStringOf(config, each));
  const connectionString = connectionStrings[0] as string;
  return {
    processes,
    elsewhere: [],
    lockService,
    endpoints: first,
    connectionString,
    connectionStrings,
    httpPorts: ports.http,
    internalPorts: ports.internal,
  };
}

interface Named {
  readonly role: RoleName;
  readonly number: number;
  readonly name: string;
}

/** Returns the names of processes, in the order of a cold start. */
function namesOf(counts: Readonly<Record<RoleName, number>>, retired: readonly string[]): Named[] {
  return roles.flatMap((role) => {
    const named: Named[] = [];
    for (let number = 1; named.length < counts[role]; number++) {
      const name = `${role}-${number}`;
      if (!retired.includes(name)) named.push({ role, number, name });
    }
    return named;
  });
}

type Placed = Named & Pick<PlannedProcess, "slot">;

/**
 * Gives each process its known slot, or else the lowest free one. Lock services but the first come after all others, so that a port of these
 * depends on no number of lock services.
 */
function placedIn(named: readonly Named[], known: Readonly<Record<string, number>>): Placed[] {
  const held = new Set(named.flatMap(({ name }) => known[name] ?? []));
  const isLate = ({ role, number }: Named): boolean => role === "lock-service" && number > 1;
  let next = 0;
  const free = (): number => {
    while (held.has(next)) next++;
    return next++;
  };
  const slots = new Map<string, number>();
  for (const { name } of [...named.filter((each) => !isLate(each)), ...named.filter(isLate)]) slots.set(name, known[name] ?? free());
  return named.map((each) => ({ ...each, slot: slots.get(each.name) as number }));
}

/** Returns where processes of this machine call each other. */
const callable = (host: string): string => (host === "0.0.0.0" ? "127.0.0.1" : host === "[::]" ? "[::1]" : host);

const blobPortOf = (config: ClusterConfig, frontEnd: number): number => config.portBase + (frontEnd - 1) * portsPerFrontEnd;
