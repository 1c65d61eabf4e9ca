/**
 * `stamp.topology.json`: the hosts of a stamp, their addresses, and which process runs where. The same file lies on every host;
 * `stamp up --host NAME` runs one host's part, and every command finds the processes of the other hosts by it.
 *
 *   hosts ──▶ plan-host.ts ──▶ the processes of this host, and the addresses of all others
 *   config ─▶ config.ts: keys of the configuration that hold on every host
 *
 * Invariants:
 * - A process has one name in the whole stamp, and the name gives its ports. A host that comes or goes moves no port of another process.
 * - A topology that contradicts itself is refused as a whole, with every contradiction named.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { isAbsolute, resolve } from "node:path";
import { inWords, linesOfWrittenJson, parseWrittenJson } from "@stamp/ports-node";
import { z } from "zod";
import { type RoleName, roles } from "../roles.ts";
import { ConfigError } from "../start-error.ts";

const hostName = /^[a-z0-9][a-z0-9-]{0,62}$/;
const processName = new RegExp(`^(${roles.join("|")})-([1-9]\\d{0,2})$`);
const dnsName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** Keys of the configuration that the hosts themselves give, or that belong to one host. */
const ownKeys: Readonly<Record<string, string>> = {
  lockServices: "the processes of the hosts say how many",
  streamManagers: "the processes of the hosts say how many",
  partitionManagers: "the processes of the hosts say how many",
  partitionServers: "the processes of the hosts say how many",
  extentNodes: "the processes of the hosts say how many",
  frontEnds: "the processes of the hosts say how many",
  faultDomains: "each host names its own, faultDomain",
  bind: "each host has an address",
  httpBind: "each host has an address",
  internalBind: "each host has an address",
  dataDir: "each host has a dataDir",
  host: "it names the host that a command runs on",
  topology: "it is this file",
};

/** First slot of each role. A process has the slot of its role and number on whichever host it runs; slots give ports. */
const firstSlots: Readonly<Record<RoleName, number>> = {
  "lock-service": 0,
  "stream-manager": 10,
  "partition-manager": 20,
  "front-end": 30,
  "partition-server": 100,
  "extent-node": 300,
};
/** Highest number in a name of each role, so that no two names have one slot. */
const numbersMax: Readonly<Record<RoleName, number>> = {
  "lock-service": 10,
  "stream-manager": 10,
  "partition-manager": 10,
  "front-end": 70,
  "partition-server": 200,
  "extent-node": 600,
};

/** Returns one spelling of an address, so that two hosts with the same one are found. */
const canonical = (address: string): string => (isIP(address) === 6 ? new URL(`http://[${address}]`).hostname : address.toLowerCase());

/** True for addresses that no host can have for itself: unspecified, multicast, broadcast. */
const isNoHost = (address: string): boolean =>
  /^(0\.|22[4-9]\.|2[345]\d\.|\[::\]$|\[ff)/.test(isIP(address) === 0 ? "" : canonical(address));

/** True for digits and dots that are no IP address: the resolver would take 10.0.1 for 10.0.0.1. */
const isHalfAnAddress = (text: string): boolean => /^[\d.]+$/.test(text) && isIP(text) === 0;

/** Name of a fault or upgrade domain. */
const domain = z
  .string()
  .min(1)
  .max(128)
  .refine((text) => text === text.trim() && !/\p{C}/u.test(text), "a name without blanks at its ends, on one line");

const absolute = z.string().refine(isAbsolute, "an absolute path: the file is the same on every host");

const host = z.strictObject({
  address: z
    .string()
    .refine((text) => isIP(text) !== 0 || (dnsName.test(text) && !isHalfAnAddress(text)), "an IP address or a DNS name, without a port")
    .refine((text) => !isNoHost(text), "an address at which the other hosts call this one")
    .describe("IP address or DNS name at which the other hosts call this one; its ports are opened on it"),
  faultDomain: domain
    .optional()
    .describe(
      "What fails together with this host (a rack, a power feed); default: the host alone. No extent has two replicas in one while others have room",
    ),
  upgradeDomain: domain.optional().describe("Hosts with the same name are restarted together in an upgrade; default: the host alone"),
  dataDir: absolute.optional().describe("Folder of the host's logs, secret and processes; default: .stamp in the repository"),
  disks: z
    .array(absolute)
    .min(1)
    .max(100)
    .optional()
    .describe("A mounted folder for each extent node of the host, in the order of their names; default: all in dataDir"),
  processes: z
    .array(z.string().regex(processName, `ROLE-NUMBER, with a role of ${roles.join(", ")}`))
    .min(1)
    .max(200)
    .describe("Names of the processes of this host, e.g. extent-node-1. A name is used once in the whole stamp, also after a host is gone"),
});

export const topologySchema = z.strictObject({
  $schema: z.string().optional(),
  hosts: z
    .record(z.string().regex(hostName, "lower case letters, digits and -"), host)
    .describe("The hosts by name: lower case letters, digits and -"),
  config: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Keys of the configuration (`stamp config show`) that hold on every host, e.g. copies, accounts, roles"),
});

export type Topology = z.infer<typeof topologySchema>;
export type TopologyHost = z.infer<typeof host>;

/** Process of a topology, as its name describes it. */
export interface NamedProcess {
  readonly role: RoleName;
  readonly number: number;
  readonly name: string;
  /** Slot of the process: gRPC is on portBase + 1000 + slot, readiness on portBase + 2000 + slot. */
  readonly slot: number;
}

export function namedProcess(name: string): NamedProcess {
  const [, role, digits] = processName.exec(name) ?? [];
  if (role === undefined) throw new ConfigError(`${name} is no name of a process`);
  const number = Number(digits);
  return { role: role as RoleName, number, name, slot: firstSlots[role as RoleName] + number - 1 };
}

/** Returns the processes of a host in the order of a cold start. */
export const processesOf = ({ processes }: TopologyHost): NamedProcess[] =>
  processes.map(namedProcess).sort((one, other) => roles.indexOf(one.role) - roles.indexOf(other.role) || one.number - other.number);

/** Returns the number of the stamp's processes by role. */
export function countsOf(topology: Topology): Readonly<Record<RoleName, number>> {
  const all = Object.values(topology.hosts).flatMap(processesOf);
  return Object.fromEntries(roles.map((role) => [role, all.filter((each) => each.role === role).length])) as Record<RoleName, number>;
}

/** Reads and checks a topology. Throws ConfigError, which names every wrong place. */
export function readTopology(path: string): Topology {
  let text: string;
  let value: unknown;
  try {
    text = readFileSync(path, "utf8");
    value = parseWrittenJson(text);
  } catch (error) {
    throw new ConfigError(`the topology can't be read: ${inWords(error, path)}`);
  }
  return parseTopology(value, path, linesOfWrittenJson(text));
}

/** `path`: name of the file, for errors; `lines`: line of each value. Throws ConfigError. */
export function parseTopology(value: unknown, path: string, lines: ReadonlyMap<string, number> = new Map()): Topology {
  const parsed = topologySchema.safeParse(value);
  const wrong = parsed.success
    ? contradictions(parsed.data)
    : parsed.error.issues.map((issue) => {
        const at = issue.path.map(String).join(".");
        const what = issue.code === "unrecognized_keys" ? `no such key: ${issue.keys.join(", ")}` : keyMessage(issue);
        return at === "" ? what : `${at}: ${what}`;
      });
  if (wrong.length > 0) {
    const told = wrong.map((each) => {
      const line = lines.get(each.split(": ", 1)[0] ?? "");
      return line === undefined ? each : `line ${line}: ${each}`;
    });
    throw new ConfigError(`the topology ${path} is not right:\n  ${told.join("\n  ")}`);
  }
  return parsed.data as Topology;
}

/** Returns the text of a schema error; that of a record's key lies one level below. */
const keyMessage = (issue: z.core.$ZodIssue): string =>
  issue.code === "invalid_key" ? (issue.issues[0]?.message ?? issue.message) : issue.message;

function contradictions({ hosts, config }: Topology): string[] {
  const wrong: string[] = [];
  const homes = new Map<string, string>();
  const addresses = new Map<string, string>();
  for (const [name, each] of Object.entries(hosts)) {
    const at = `hosts.${name}`;
    const neighbour = addresses.get(canonical(each.address));
    if (neighbour !== undefined) wrong.push(`${at}.address: ${each.address} is the address of ${neighbour}, too`);
    addresses.set(canonical(each.address), name);
    for (const process of each.processes) {
      const home = homes.get(process);
      if (home !== undefined) wrong.push(`${at}.processes: ${process} runs on ${home === name ? "this host" : home} already`);
      homes.set(process, name);
      const { role, number } = namedProcess(process);
      if (number > numbersMax[role]) wrong.push(`${at}.processes: ${process}: numbers of this role end at ${numbersMax[role]}`);
    }
    wrong.push(...wrongDisks(at, each));
  }
  if (homes.size === 0) wrong.push("hosts: there is none");
  for (const role of roles) {
    const some = [...homes.keys()].some((process) => namedProcess(process).role === role);
    if (homes.size > 0 && !some) wrong.push(`hosts: no host runs a ${role}`);
  }
  for (const key of Object.keys(config)) {
    const why = ownKeys[key];
    if (why !== undefined) wrong.push(`config.${key}: ${why}`);
  }
  return wrong;
}

function wrongDisks(at: string, each: TopologyHost): string[] {
  if (each.disks === undefined) return [];
  const nodes = each.processes.filter((name) => namedProcess(name).role === "extent-node").length;
  if (new Set(each.disks.map((disk) => resolve(disk))).size !== each.disks.length) return [`${at}.disks: a folder is named twice`];
  if (nodes === each.disks.length) return [];
  return [`${at}.disks: ${each.disks.length} for ${nodes} extent nodes: name one for each, or none`];
}
