/**
 * Plans one process of a cluster: its addresses, its settings and the ports that it takes. `plan-cluster.ts` plans all processes of one
 * machine, `topology/plan-host.ts` one host's part of a stamp on several machines.
 */
import type { ClusterConfig } from "./config.ts";
import { developmentAccount, environmentName, metadataStoreOf } from "./config.ts";
import type { RoleName } from "./roles.ts";
import { secretFilesOf } from "./secret-files.ts";
import { bindsBeyondLoopback } from "./topology/addresses.ts";
import { peerFilesOf } from "./topology/peer-files.ts";

/** Process, with all that its supervisor needs to start it. */
export interface StartedProcess {
  /** Folder of the service below `services`. */
  readonly role: string;
  /** Unique among the processes of a supervisor, e.g. `extent-node-2`. */
  readonly name: string;
  /** Address that other processes call, host:port. */
  readonly grpc: string;
  /** Address at which others ask for `/ready`, host:port. */
  readonly http: string;
  /** Environment for the process, besides what the supervisor itself has. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface PlannedProcess extends StartedProcess {
  readonly role: RoleName;
  /** Slot of the process, which gives its ports. */
  readonly slot: number;
  readonly dataDir: string;
}

/** A process of another host of the topology. */
export interface RemoteProcess extends Pick<PlannedProcess, "role" | "name" | "grpc" | "http"> {
  readonly host: string;
}

export interface ClusterPlan {
  /** Processes that a supervisor starts here. */
  readonly processes: readonly PlannedProcess[];
  /** Processes of the other hosts; none without a topology. */
  readonly elsewhere: readonly RemoteProcess[];
  /** Addresses of the lock services, separated by commas. */
  readonly lockService: string;
  readonly endpoints: Endpoints;
  /** Connection string for clients on this machine; empty if no account of the configuration is served. */
  readonly connectionString: string;
  /** Connection strings, one for each front-end. */
  readonly connectionStrings: readonly string[];
  /** Ports of the REST doors, each with the name of what listens on it. */
  readonly httpPorts: ReadonlyMap<number, string>;
  /** All other ports, each with the name of its listener. */
  readonly internalPorts: ReadonlyMap<number, string>;
}

export interface Endpoints {
  readonly blob: string;
  readonly queue: string;
  readonly table: string;
  /** Serves accounts with directories. Undefined: no front-end opens it. */
  readonly dfs?: string | undefined;
  /** Serves shares. Undefined: no front-end opens it. */
  readonly file?: string | undefined;
}

export const portsPerFrontEnd = 10;

/** Planned ports, each with the name of the process that wants it. */
export interface PlannedPorts {
  readonly http: Map<number, string>;
  readonly internal: Map<number, string>;
}

/** Ports and folder of a process, and what else differs within a role. */
export interface ProcessPlace extends Pick<PlannedProcess, "role" | "name" | "slot" | "dataDir"> {
  /** Address at which internal ports are opened, and the one at which others call the process. */
  readonly listen: string;
  readonly called: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  /** All lock services of the stamp. */
  readonly lockServices: readonly LockServiceAddress[];
  readonly faultDomain: string | undefined;
  readonly blobPort: number;
  /** Follows "blob" where the use of a port is told. */
  readonly blobFor: string;
}

export interface LockServiceAddress {
  readonly name: string;
  readonly address: string;
}

/** Plans one process, and adds its ports to those that are planned. */
export function processAt(place: ProcessPlace, config: ClusterConfig, ports: PlannedPorts): PlannedProcess {
  const { role, name, slot, dataDir, listen, called } = place;
  const lockService = place.lockServices.map(({ address }) => address).join(",");
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
    ...(config.otlpEndpoint === undefined ? {} : { otlpEndpoint: config.otlpEndpoint, otlpShare: config.otlpShare ?? 1 }),
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

function settingsOf(place: ProcessPlace, config: ClusterConfig, ports: PlannedPorts): Record<string, string | number | boolean> {
  const lease = { leaseTermMs: config.leaseTermMs, leaseMarginMs: config.leaseMarginMs, leaseRenewEveryMs: config.leaseRenewEveryMs };
  const accounts = JSON.stringify(config.accounts);
  switch (place.role) {
    case "lock-service":
      return metadataStoreOf(config) === "replicated"
        ? { metadataStore: "replicated", members: place.lockServices.map(({ name, address }) => `${name}=${address}`).join(",") }
        : {};
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
      for (const [door, at] of Object.entries(doorPorts)) ports.http.set(blobPort + at, `${door}${blobFor}`);
      return {
        ...Object.fromEntries(Object.entries(doorPorts).map(([door, at]) => [`${door}Listen`, `${listen}:${blobPort + at}`])),
        allowDevelopmentAccount: config.allowDevelopmentAccount,
        ownAccounts: !config.accounts.some(isPublic),
        ...(config.strictVersions ? { strictVersions: true } : {}),
        ...(config.faultRules ? { faultRules: true } : {}),
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

/** Returns where clients on this machine call the REST doors. `[::]` takes IPv4, too, which more clients can name in a URL. */
const reachable = (host: string): string => (host === "0.0.0.0" || host === "[::]" ? "127.0.0.1" : host);

type Account = ClusterConfig["accounts"][number];

/** True if the account has the well-known key. */
export const isPublic = ({ keys }: Account): boolean => keys.includes(developmentAccount.keys[0] as string);

/** Returns the first account of the configuration that the front-ends serve to clients on this machine. */
export const servedAccount = (config: ClusterConfig): Account | undefined =>
  config.accounts.find((account) => !isPublic(account) || config.allowDevelopmentAccount || !bindsBeyondLoopback(config));
const schemeOf = (config: ClusterConfig): string => (config.tlsCert === undefined ? "http" : "https");

/** Ports of a front-end's REST doors, from that of the blob door on. */
const doorPorts = { blob: 0, queue: 1, table: 2, file: 3, dfs: 4 } as const;

/** Returns the URLs of a front-end's REST doors. `blobPort`: port of the blob door, from which the others follow. */
export function endpointsOf(config: ClusterConfig, host: string, blobPort: number): Endpoints {
  const account = (servedAccount(config) ?? config.accounts[0])?.name ?? "";
  const at = (port: number): string => `${schemeOf(config)}://${reachable(host)}:${port}/${account}`;
  const { queue, table, file, dfs } = doorPorts;
  const blobs = { blob: at(blobPort), dfs: at(blobPort + dfs) };
  return { ...blobs, queue: at(blobPort + queue), table: at(blobPort + table), file: at(blobPort + file) };
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
    ...(endpoints.file === undefined ? [] : [`FileEndpoint=${endpoints.file}`]),
  ]
    .join(";")
    .concat(";");
}
