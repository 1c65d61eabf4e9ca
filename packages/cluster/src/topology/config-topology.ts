/**
 * Takes configuration from a topology: the numbers of processes, the address and folder of this host, and the keys
 * under `config`. A flag, the environment or the file wins over `config` of the topology, that over what the data
 * folder remembers.
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "../start-error.ts";
import { countsOf, readTopology, type Topology } from "./topology.ts";

/** Keys whose relative paths count from the folder of the file that names them. */
const pathKeys: readonly string[] = ["tlsCert", "tlsKey", "clusterSecretFile"];

export interface GivenValues {
  /** Values by key, which get what the topology gives. */
  readonly values: Record<string, unknown>;
  /** Place of each value, for errors. */
  readonly given: Map<string, string>;
  /** Folder of the configuration file, and the one in which the user stands. */
  readonly folders: { readonly file: string; readonly user: string };
  /** Folders in which stamp.topology.json is looked for. */
  readonly lookedIn: readonly string[];
}

/** Adds what the topology gives; undefined if none is named. Throws ConfigError. */
export function addTopology({ values, given, folders, lookedIn }: GivenValues): Topology | undefined {
  const { host, topology: named } = values;
  const isGiven = (value: unknown): boolean => typeof value === "string" && value.trim() !== "";
  // The schema refuses other values.
  if (!isGiven(host) && !isGiven(named)) return undefined;
  const path = pathOf(named, given.get("topology"), folders, lookedIn);
  if (path === undefined)
    throw new ConfigError(
      `${given.get("host") ?? "host"}: there is no stamp.topology.json here or in the repository; name the file: --topology FILE`,
    );
  const topology = readTopology(path);
  const own = host === undefined ? undefined : topology.hosts[String(host)];
  if (host !== undefined && own === undefined)
    throw new ConfigError(
      `${given.get("host")}: ${String(host)} is no host of ${path}; its hosts: ${Object.keys(topology.hosts).join(", ")}`,
    );
  values.topology = path;
  const counts = countsOf(topology);
  const derived: Readonly<Record<string, unknown>> = {
    lockServices: counts["lock-service"],
    streamManagers: counts["stream-manager"],
    partitionManagers: counts["partition-manager"],
    partitionServers: counts["partition-server"],
    extentNodes: counts["extent-node"],
    frontEnds: counts["front-end"],
    faultDomains: Object.entries(topology.hosts).map(([name, each]) => each.faultDomain ?? name),
  };
  for (const [key, value] of Object.entries(derived)) {
    if (key in values) throw new ConfigError(`${given.get(key)}: with a topology its hosts say that (${path})`);
    values[key] = value;
    given.set(key, `hosts in ${path}`);
  }
  const ofHost = { httpBind: own?.address, internalBind: own?.address, dataDir: own?.dataDir };
  const all = { ...topology.config, ...Object.fromEntries(Object.entries(ofHost).filter(([, value]) => value !== undefined)) };
  for (const [key, value] of Object.entries(all)) {
    if (key in values) continue;
    values[key] = pathKeys.includes(key) && typeof value === "string" ? resolve(dirname(path), value) : value;
    given.set(key, key in topology.config ? `config.${key} of ${path}` : `hosts.${String(host)} of ${path}`);
  }
  return topology;
}

function pathOf(
  named: unknown,
  given: string | undefined,
  folders: GivenValues["folders"],
  lookedIn: readonly string[],
): string | undefined {
  if (typeof named === "string" && named !== "") return resolve(given?.startsWith("topology in ") ? folders.file : folders.user, named);
  return lookedIn.map((folder) => join(folder, "stamp.topology.json")).find((each) => existsSync(each));
}
