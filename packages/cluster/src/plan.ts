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
import { developmentAccount, environmentName } from "./config.ts";
import type { ClusterRecord } from "./record/cluster-record.ts";
import { type RoleName, roles } from "./roles.ts";
import { secretFilesOf } from "./secret-files.ts";
import { bindsBeyondLoopback } from "./topology/addresses.ts";
import { peerFilesOf } from "./topology/peer-files.ts";
import { planHost } from "./topology/plan-host.ts";
import { readTopology } from "./topology/topology.ts";

export interface PlannedProcess {
  readonly role: RoleName;
  /** Unique, e.g. `extent-node-2`. */
  readonly name: string;
  /** Where others call it, host:port. */
  readonly grpc: string;
  /** Where others ask for `/ready`, host:port. */
  readonly http: string;
  /** Number of its ports, from those of the first process on. */
  readonly slot: number;
  readonly dataDir: string;
  /** For the process, besides what the supervisor itself has. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A process of another host of the topology. */
export interface RemoteProcess extends Pick<PlannedProcess, "role" | "name" | "grpc" | "http"> {
  readonly host: string;
}

export interface Plan {
  /** Processes that a supervisor starts here. */
  readonly processes: readonly PlannedProcess[];
  /** Processes of the other hosts; none without a topology. */
  readonly elsewhere: readonly RemoteProcess[];
  /** Addresses of the lock services, separated by commas. */
  readonly lockService: string;
  readonly endpoints: Endpoints;
  /** For clients on this machine; empty if no account of the configuration is served. */
  readonly connectionString: string;
  /** Connection strings, one for each front-end. */
  readonly connectionStrings: readonly string[];
  /** Ports of the REST doors → what wants each. */
  readonly httpPorts: ReadonlyMap<number, string>;
  /** All other ports → what wants each. */
  readonly internalPorts: ReadonlyMap<number, string>;
}

export interface Endpoints {
  readonly blob: string;
  readonly queue: string;
  readonly table: string;
}

export const portsPerFrontEnd = 10;

/** `known`: what the data folder remembers; undefined for a folder that remembers nothing. */
export function planCluster(config: ClusterConfig, known?: Pick<ClusterRecord, "retired" | "slots">): Plan {
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
  const lockService = placed
    .flatMap(({ role, slot }) => (role === "lock-service" ? [`${called}:${config.portBase + 100 + slot}`] : []))
    .join(",");
  for (const { number, slot, ...named } of placed) {
    const blobFor = number === 1 ? "" : ` of ${named.name}`;
    const place = {
      ...{ ...named, slot, listen: host, called, lockService, blobFor },
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

/** Port → what wants it. */
export interface PlannedPorts {
  readonly http: Map<number, string>;
  readonly internal: Map<number, string>;
}

/** Where a process is started, and what differs from process to process of its role. */
export interface Place extends Pick<PlannedProcess, "role" | "name" | "slot" | "dataDir"> {
  /** Address that its internal ports are opened on, and the one at which others call it. */
  readonly listen: string;
  readonly called: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly lockService: string;
  readonly faultDomain: string | undefined;
  readonly blobPort: number;
  /** Follows "blob" where the use of a port is told. */
  readonly blobFor: string;
}

/** Plans one process, and notes its ports. */
export function processAt(place: Place, config: ClusterConfig, ports: PlannedPorts): PlannedProcess {
  const { role, name, slot, dataDir, listen, called, lockService } = place;
  ports.internal.set(place.grpcPort, `gRPC of ${name}`);
  ports.internal.set(place.httpPort, `readiness of ${name}`);
  const grpc = `${called}:${place.grpcPort}`;
  const secrets = secretFilesOf(config);
  const peer = peerFilesOf(config, name);
  const settings: Record<string, string | number | boolean> = {
    name,
    listen: `${listen}:${place.grpcPort}`,
    ...(called === listen ? {} : { advertise: grpc }),
    http: `${listen}:${place.httpPort}`,
    dataDir,
    logLevel: config.logLevel,
    clusterSecretFile: secrets.current,
    clusterSecretPreviousFile: secrets.previous,
    ...(config.tls === "cluster" ? { clusterCertFile: peer.cert, clusterKeyFile: peer.key, clusterCaFile: peer.ca } : {}),
    ...(role === "lock-service" ? {} : { lockService }),
    ...settingsOf(place, config, ports),
    ...config.roles[role],
  };
  const environment = Object.fromEntries(Object.entries(settings).map(([key, value]) => [environmentName(key), String(value)]));
  return { role, name, grpc, http: `${called}:${place.httpPort}`, slot, dataDir, environment };
}

interface Named {
  readonly role: RoleName;
  readonly number: number;
  readonly name: string;
}

/** Names the processes, in the order of a cold start. */
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

/** Gives each process its known slot, or else the lowest free one. */
function placedIn(named: readonly Named[], known: Readonly<Record<string, number>>): Placed[] {
  const held = new Set(named.flatMap(({ name }) => known[name] ?? []));
  let next = 0;
  return named.map((each) => {
    const own = known[each.name];
    if (own !== undefined) return { ...each, slot: own };
    while (held.has(next)) next++;
    return { ...each, slot: next++ };
  });
}

function settingsOf(place: Place, config: ClusterConfig, ports: PlannedPorts): Record<string, string | number | boolean> {
  const lease = { leaseTermMs: config.leaseTermMs, leaseMarginMs: config.leaseMarginMs, leaseRenewEveryMs: config.leaseRenewEveryMs };
  const accounts = JSON.stringify(config.accounts);
  switch (place.role) {
    case "lock-service":
      return {};
    case "extent-node": {
      const { faultDomain } = place;
      return { journalSegmentBytes: config.journalSegmentBytes, ...(faultDomain === undefined ? {} : { faultDomain }) };
    }
    case "stream-manager": {
      const { copies, minCopies, repairAfterMs, erasureCoding } = config;
      const policy = typeof erasureCoding === "string" ? erasureCoding : JSON.stringify(erasureCoding);
      return { ...lease, copies, minCopies, repairAfterMs, erasureCoding: policy };
    }
    case "partition-manager":
      return { ...lease, accounts };
    case "partition-server":
      return lease;
    case "front-end": {
      const { blobPort, blobFor } = place;
      const listen = hostOf(config.httpBind);
      for (const [i, door] of ["blob", "queue", "table"].entries()) ports.http.set(blobPort + i, `${door}${blobFor}`);
      return {
        blobListen: `${listen}:${blobPort}`,
        queueListen: `${listen}:${blobPort + 1}`,
        tableListen: `${listen}:${blobPort + 2}`,
        allowDevelopmentAccount: config.allowDevelopmentAccount,
        ownAccounts: !config.accounts.some(isPublic),
        ...(config.strictVersions ? { strictVersions: true } : {}),
        ...listsOf(config),
        ...(config.tlsCert === undefined || config.tlsKey === undefined ? {} : { tlsCert: config.tlsCert, tlsKey: config.tlsKey }),
      };
    }
  }
}

export const hostOf = (address: string): string => (address.includes(":") ? `[${address}]` : address);

/** Lists that are given to front-ends, as one text each; those that are empty are left out. */
function listsOf(config: ClusterConfig): Readonly<Record<string, string>> {
  const { copySources, trustedProxies, developmentAccountHosts } = config;
  const lists = Object.entries({ copySources, trustedProxies, developmentAccountHosts });
  return Object.fromEntries(lists.flatMap(([key, list]) => (list.length === 0 ? [] : [[key, list.join(",")]])));
}

/** Where processes of this machine call each other. */
const callable = (host: string): string => (host === "0.0.0.0" ? "127.0.0.1" : host === "[::]" ? "[::1]" : host);
/** Where clients on this machine call the REST doors. `[::]` takes IPv4, too, which more clients can name in a URL. */
const reachable = (host: string): string => (host === "0.0.0.0" || host === "[::]" ? "127.0.0.1" : host);

type Account = ClusterConfig["accounts"][number];

/** True for an account with the key that everybody knows. */
export const isPublic = ({ keys }: Account): boolean => keys.includes(developmentAccount.keys[0] as string);

/** The first account of the configuration that the front-ends serve to clients on this machine. */
export const servedAccount = (config: ClusterConfig): Account | undefined =>
  config.accounts.find((account) => !isPublic(account) || config.allowDevelopmentAccount || !bindsBeyondLoopback(config));
const schemeOf = (config: ClusterConfig): string => (config.tlsCert === undefined ? "http" : "https");

const blobPortOf = (config: ClusterConfig, frontEnd: number): number => config.portBase + (frontEnd - 1) * portsPerFrontEnd;

/** `blobPort`: port of the blob door; queue and table are on the next two. */
export function endpointsOf(config: ClusterConfig, host: string, blobPort: number): Endpoints {
  const account = (servedAccount(config) ?? config.accounts[0])?.name ?? "";
  const at = (port: number): string => `${schemeOf(config)}://${reachable(host)}:${port}/${account}`;
  return { blob: at(blobPort), queue: at(blobPort + 1), table: at(blobPort + 2) };
}

export function connectionStringOf(config: ClusterConfig, endpoints: Endpoints): string {
  const account = servedAccount(config);
  if (account === undefined) return "";
  return [
    `DefaultEndpointsProtocol=${schemeOf(config)}`,
    `AccountName=${account.name}`,
    `AccountKey=${account.keys[0]}`,
    `BlobEndpoint=${endpoints.blob}`,
    `QueueEndpoint=${endpoints.queue}`,
    `TableEndpoint=${endpoints.table}`,
  ]
    .join(";")
    .concat(";");
}
