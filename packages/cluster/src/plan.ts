/**
 * Which processes a local cluster is made of, and how each is started. Pure: a configuration in, a list out, in the order of a cold start.
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
import { bindsBeyondLoopback } from "./addresses.ts";
import type { ClusterRecord } from "./cluster-record.ts";
import type { ClusterConfig } from "./config.ts";
import { developmentAccount, environmentName } from "./config.ts";
import { type RoleName, roles } from "./roles.ts";
import { secretFilesOf } from "./secret-files.ts";

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

export interface Plan {
  readonly processes: readonly PlannedProcess[];
  /** Addresses of the lock services, separated by commas. */
  readonly lockService: string;
  readonly endpoints: Endpoints;
  /** For clients on this machine; empty if no account of the configuration is served. */
  readonly connectionString: string;
  /** Of each front-end. */
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

const portsPerFrontEnd = 10;

/** `known`: what the data folder remembers; undefined for a folder that remembers nothing. */
export function planCluster(config: ClusterConfig, known?: Pick<ClusterRecord, "retired" | "slots">): Plan {
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
  const httpPorts = new Map<number, string>();
  const internalPorts = new Map<number, string>();
  const secrets = secretFilesOf(config);
  const processes: PlannedProcess[] = [];
  const placed = placedIn(namesOf(counts, known?.retired ?? []), known?.slots ?? {});
  const lockService = placed
    .flatMap(({ role, slot }) => (role === "lock-service" ? [`${called}:${config.portBase + 100 + slot}`] : []))
    .join(",");
  for (const { role, number, name, slot } of placed) {
    const grpcPort = config.portBase + 100 + slot;
    const httpPort = config.portBase + 200 + slot;
    internalPorts.set(grpcPort, `gRPC of ${name}`);
    internalPorts.set(httpPort, `readiness of ${name}`);
    const grpc = `${called}:${grpcPort}`;
    const http = `${called}:${httpPort}`;
    const dataDir = join(config.dataDir, name);
    const settings: Record<string, string | number | boolean> = {
      name,
      listen: `${host}:${grpcPort}`,
      ...(called === host ? {} : { advertise: grpc }),
      http: `${host}:${httpPort}`,
      dataDir,
      logLevel: config.logLevel,
      clusterSecretFile: secrets.current,
      clusterSecretPreviousFile: secrets.previous,
      ...(role === "lock-service" ? {} : { lockService }),
      ...settingsOf(role, number, config, httpPorts),
      ...config.roles[role],
    };
    const environment = Object.fromEntries(Object.entries(settings).map(([key, value]) => [environmentName(key), String(value)]));
    processes.push({ role, name, grpc, http, slot, dataDir, environment });
  }
  const endpoints = Array.from({ length: config.frontEnds }, (_, i) => endpointsOf(config, i + 1));
  const [first] = endpoints as [Endpoints];
  const connectionStrings = endpoints.map((each) => connectionStringOf(config, each));
  const connectionString = connectionStrings[0] as string;
  return { processes, lockService, endpoints: first, connectionString, connectionStrings, httpPorts, internalPorts };
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

function settingsOf(
  role: RoleName,
  number: number,
  config: ClusterConfig,
  ports: Map<number, string>,
): Record<string, string | number | boolean> {
  const lease = { leaseTermMs: config.leaseTermMs, leaseMarginMs: config.leaseMarginMs, leaseRenewEveryMs: config.leaseRenewEveryMs };
  const accounts = JSON.stringify(config.accounts);
  switch (role) {
    case "lock-service":
      return {};
    case "extent-node": {
      const domains = config.faultDomains;
      const faultDomain = domains[(number - 1) % Math.max(domains.length, 1)];
      return { journalSegmentBytes: config.journalSegmentBytes, ...(faultDomain === undefined ? {} : { faultDomain }) };
    }
    case "stream-manager":
      return { ...lease, copies: config.copies, minCopies: config.minCopies, repairAfterMs: config.repairAfterMs };
    case "partition-manager":
      return { ...lease, accounts };
    case "partition-server":
      return lease;
    case "front-end": {
      const blobPort = blobPortOf(config, number);
      const host = hostOf(config.httpBind);
      ports.set(blobPort, number === 1 ? "blob" : `blob of front-end-${number}`);
      ports.set(blobPort + 1, number === 1 ? "queue" : `queue of front-end-${number}`);
      ports.set(blobPort + 2, number === 1 ? "table" : `table of front-end-${number}`);
      return {
        blobListen: `${host}:${blobPort}`,
        queueListen: `${host}:${blobPort + 1}`,
        tableListen: `${host}:${blobPort + 2}`,
        allowDevelopmentAccount: config.allowDevelopmentAccount,
        ownAccounts: !config.accounts.some(isPublic),
        ...(config.strictVersions ? { strictVersions: true } : {}),
        ...(config.copySources.length === 0 ? {} : { copySources: config.copySources.join(",") }),
        ...(config.tlsCert === undefined || config.tlsKey === undefined ? {} : { tlsCert: config.tlsCert, tlsKey: config.tlsKey }),
      };
    }
  }
}

const hostOf = (address: string): string => (address.includes(":") ? `[${address}]` : address);
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

function endpointsOf(config: ClusterConfig, frontEnd: number): Endpoints {
  const host = hostOf(config.httpBind);
  const account = (servedAccount(config) ?? config.accounts[0])?.name ?? "";
  const at = (port: number): string => `${schemeOf(config)}://${reachable(host)}:${port}/${account}`;
  const blobPort = blobPortOf(config, frontEnd);
  return { blob: at(blobPort), queue: at(blobPort + 1), table: at(blobPort + 2) };
}

function connectionStringOf(config: ClusterConfig, endpoints: Endpoints): string {
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
