/**
 * Configuration of a local cluster: one typed file (`stamp.config.json`), each key also by environment (STAMP_<UPPER_SNAKE>) and flag
 * (--kebab-case). A flag wins over the environment, the environment over the file, the file over what the data folder remembers of its cluster
 * (`cluster.json`), that over the default. Errors name the key. With a topology, its hosts give the numbers of processes and this host's address
 * and folder; its other keys come between the file and the record (`config-topology.ts`).
 */
import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, join, resolve } from "node:path";
import { isHostPattern, parseNetwork, parseSourcePattern } from "@stamp/azure-rest";
import { addressesIn, collectorUrlShape, collectorUrlText, whyNoAddress } from "@stamp/ports";
import { inWords, linesOfWrittenJson, nearestName, parseWrittenJson, textAs, wrongValue } from "@stamp/ports-node";
import { z } from "zod";
import { clusterRecordPath, readClusterRecord } from "./record/cluster-record.ts";
import { lockServicesIn, replicatesIn } from "./record/lock-service-folders.ts";
import { roles } from "./roles.ts";
import { ConfigError } from "./start-error.ts";
import { olderKey, withoutOlderKey } from "./topology/addresses.ts";
import { addTopology } from "./topology/config-topology.ts";

const mebibyte = 1024 * 1024;

/** The account that every Azure Storage tool knows (`UseDevelopmentStorage=true`); its key is public. */
export const developmentAccount = {
  name: "devstoreaccount1",
  keys: ["Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="],
};

const text = () => z.string().regex(/\S/, "a text that is not empty");
const hostName = /^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9])?$/i;
/** Address or name of this machine at which ports listen. */
const bound = () =>
  z.string().refine((host) => isIP(host) !== 0 || hostName.test(host), {
    error: ({ input }) => `${JSON.stringify(input)} is not allowed: an address or a name of this machine`,
  });
const count = (max: number) => z.number().int().min(1).max(max);
const bytes = () => z.number().int().min(1);
/** Longest time that a timer of Node waits: a longer one ends at once. */
const timerMsMax = 2_147_483_647;
const milliseconds = () => z.number().int().min(1).max(timerMsMax);
const flag = () => z.boolean();

/** Returns a schema for structured keys, which environment and flags give as JSON text. */
const structured = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value, context) => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value);
    } catch {
      context.addIssue({ code: "custom", message: "not JSON" });
      return z.NEVER;
    }
  }, schema);

const account = z.strictObject({
  name: z.string().regex(/^[a-z0-9]{3,24}$/, "3 to 24 lower case letters and digits"),
  keys: z.array(z.base64().min(1)).min(1).max(2),
  hierarchicalNamespace: z.boolean().optional(),
});

/** Profiles that the stream manager accepts (`codingPolicyOf`): a test compares the two. */
const codingProfiles = ["auto", "rs-4-2", "rs-6-3", "rs-10-4", "lrc-12-2-2"] as const;
const erasureCoding = z.union(
  [
    z.enum(["auto", "off"]),
    z.strictObject({
      profile: z.enum(codingProfiles).optional(),
      afterSeconds: z.number().int().min(0).optional(),
      minBytes: bytes().optional(),
    }),
  ],
  { error: `auto, off, or {"profile","afterSeconds","minBytes"}; profiles: ${codingProfiles.join(", ")}` },
);

const setting = z.union([z.string(), z.number(), z.boolean()]);

export const clusterConfigSchema = z.strictObject({
  dataDir: text().default(".stamp").describe("Folder that holds everything: disks of all nodes, metadata, logs"),
  host: text()
    .optional()
    .describe("Name of this machine among the hosts of the topology: its part of the stamp is run (docs/guides/deploy.md)"),
  topology: text()
    .optional()
    .describe("File with the hosts of the stamp; default with --host: stamp.topology.json here or in the repository"),
  httpBind: bound()
    .default("127.0.0.1")
    .describe(
      "Address of the REST doors: blob, queue, table, file, dfs. 0.0.0.0: every address of this machine. With --host the host's own",
    ),
  internalBind: bound()
    .default("127.0.0.1")
    .describe("Address of everything else: gRPC, the bus, health doors. Others than loopback only in a network of the stamp's machines"),
  portBase: z
    .number()
    .int()
    .min(1)
    .max(65_000)
    .default(10_000)
    .describe("Blob is served on it, queue, table and file on the next three, dfs on +4; gRPC from +100, readiness from +200"),
  lockServices: count(5)
    .default(3)
    .describe(
      "Processes of this role: 3 or 5 keep the metadata on as many disks, 1 on one (docs/guides/metadata.md). A stamp that began with 1 keeps 1 until told",
    ),
  streamManagers: count(5).default(2).describe("Processes of this role; one leads, the others stand by"),
  partitionManagers: count(5).default(2).describe("Processes of this role; one leads, the others stand by"),
  partitionServers: count(32).default(2).describe("Processes that serve range partitions"),
  extentNodes: count(40)
    .default(4)
    .describe("Processes that keep replicas; with one more than `copies` one may die and writes still get all copies"),
  frontEnds: count(8).default(1).describe("HTTP processes; the second serves on portBase + 10, the third on + 20, …"),
  faultDomains: structured(z.array(text()).max(40))
    .default([])
    .describe("Names given to the extent nodes in turn (racks); empty: each node stands alone"),
  copies: count(5).default(3).describe("Replicas of every extent"),
  minCopies: count(5).default(2).describe("With fewer nodes than `copies` an extent is made with as few as this; below it writes wait"),
  journalSegmentBytes: bytes()
    .min(16 * mebibyte)
    .default(64 * mebibyte)
    .describe("Size of a journal segment of an extent node, preallocated; the first of a disk is smaller"),
  leaseTermMs: milliseconds().default(6_000).describe("Term of server and leader leases"),
  leaseRenewEveryMs: milliseconds()
    .default(500)
    .describe("Time between renewals; a lock service away for leaseTermMs less this and leaseMarginMs costs nobody a lease"),
  leaseMarginMs: milliseconds().default(1_000).describe("How much earlier a holder takes its lease for ended"),
  repairAfterMs: milliseconds().default(60_000).describe("Replicas of a node that is away for so long are made again elsewhere"),
  erasureCoding: erasureCoding
    .default("auto")
    .describe(
      'Which sealed extents become fragments: off, auto (from 7 extent nodes on), or {"profile":"rs-4-2","afterSeconds":3600,"minBytes":16777216}',
    ),
  accounts: structured(z.array(account).min(1).max(1_000))
    .default([developmentAccount])
    .describe("Accounts made when absent: a list of {name, keys}, keys in base64"),
  allowDevelopmentAccount: flag()
    .default(false)
    .describe(
      "Serve devstoreaccount1, whose key is public, to everybody who can connect: on any address, through proxies, beside accounts",
    ),
  developmentAccountHosts: structured(z.array(text().refine(isHostPattern, "a name of a host, *.NAME or *")).max(32))
    .default([])
    .describe("Names under which allowDevelopmentAccount serves, besides addresses, localhost and names without a dot"),
  trustedProxies: structured(
    z.array(text().refine((network) => parseNetwork(network) !== undefined, "an address or a network, such as 10.0.0.0/8")).max(32),
  )
    .default([])
    .describe("Proxies whose X-Forwarded-For, -Proto and -Host are believed: addresses and networks (docs/guides/access.md); empty: none"),
  tlsCert: text()
    .optional()
    .describe("PEM file of a certificate chain: blob, queue and table are served over HTTPS (`stamp certs init` makes one)"),
  tlsKey: text().optional().describe("PEM file of the certificate's key"),
  clusterSecretFile: text()
    .optional()
    .describe(
      "File with the secret that processes prove to each other; default: cluster-secret in the data folder, made at the first start",
    ),
  tls: z
    .enum(["off", "cluster"])
    .default("off")
    .describe('TLS between processes: "cluster" needs the certificates of `stamp certs cluster init` (docs/guides/internal-ports.md)'),
  keysAtRest: z
    .enum(["auto", "sealed"])
    .default("auto")
    .describe("sealed: partition servers are not started without the master key that seals account keys (docs/guides/keys-at-rest.md)"),
  copySources: structured(
    z
      .array(
        text().refine((pattern) => parseSourcePattern(pattern) !== undefined, "scheme://host[:port][=network] (docs/guides/copying.md)"),
      )
      .max(32),
  )
    .default([])
    .describe("Places besides this stamp that blobs may be copied from (https://*.blob.core.windows.net); empty: none"),
  strictVersions: flag()
    .default(false)
    .describe("Refuse requests that name a newer version of the service (x-ms-version) than is known; default: serve them as the newest"),
  faultRules: flag()
    .default(false)
    .describe("Take rules that make requests fail or wait on purpose, for applications under test (`stamp faults`, docs/guides/faults.md)"),
  initFile: text()
    .optional()
    .describe(
      "File, or folder of files, with what this start makes before it serves: accounts, containers, seed data (docs/guides/init.md)",
    ),
  logLevel: z.enum(["debug", "info", "warn", "error"]).default("info").describe("Of the processes' logs"),
  otlpEndpoint: z
    .string()
    .regex(collectorUrlShape, collectorUrlText)
    .optional()
    .describe("URL of a collector of OpenTelemetry that gets spans of requests, e.g. http://127.0.0.1:4318; default: nothing is traced"),
  otlpShare: z.number().min(0).max(1).optional().describe("Part of the requests that are traced, 0 to 1; default: all"),
  logBytesMax: bytes()
    .default(16 * mebibyte)
    .describe("A process's log file is rotated at this size; one older file is kept"),
  restartAfterMs: milliseconds()
    .default(100)
    .describe("First pause before a process that died is started again; doubled up to 5 s while it keeps dying"),
  stopTimeoutMs: milliseconds().default(8_000).describe("A process that has not stopped after this is killed"),
  roles: structured(z.partialRecord(z.enum(roles), z.record(z.string().regex(/^[a-z][a-zA-Z0-9]*$/), setting)))
    .default({})
    .describe('Further settings of a role\'s processes, by role: {"extent-node":{"openFilesMax":64}}; `stamp config show ROLE` lists them'),
});

export type ClusterConfig = z.infer<typeof clusterConfigSchema>;
export type ClusterConfigKey = keyof ClusterConfig;

/** Returns where the metadata store of a stamp lies: on the disks of several lock services, unless the configuration says otherwise. */
export const metadataStoreOf = ({ lockServices, roles }: Pick<ClusterConfig, "lockServices" | "roles">): string =>
  String(roles["lock-service"]?.metadataStore ?? (lockServices > 1 ? "replicated" : "leveldb"));

export const configKeys: readonly ClusterConfigKey[] = Object.keys(clusterConfigSchema.shape) as ClusterConfigKey[];

export const environmentName = (key: string): string => `STAMP_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
export const flagName = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export interface ConfigSources {
  /** The file; when not given `stamp.config.json` of `directory` or else of `root`, if there is one. */
  readonly file?: string | undefined;
  /** Folder in which the user runs the command. */
  readonly directory: string;
  /** Folder of the repository: the default data folder is inside it. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** True for what must work beside a damaged record: the data folder's record is not read. */
  readonly withoutRecord?: boolean | undefined;
  /** Values from flags, by key. */
  readonly flags?: Readonly<Record<string, unknown>> | undefined;
}

export function loadConfig(sources: ConfigSources): ClusterConfig {
  const given = new Map<string, string>();
  const values: Record<string, unknown> = {};
  const defaultFile = [sources.directory, sources.root].map((folder) => join(folder, "stamp.config.json")).find((each) => existsSync(each));
  const path = sources.file === undefined ? (defaultFile ?? "") : resolve(sources.directory, sources.file);
  /** Folder from which a relative data folder counts: that of the source which names it. */
  let dataDirFrom = sources.root;
  let lines: ReadonlyMap<string, number> = new Map();
  if (path !== "") {
    const file = readFile(path);
    lines = file.lines;
    for (const [key, value] of Object.entries(withoutOlderKey(file.values))) {
      values[key] = value;
      given.set(key, `${key in file.values ? key : olderKey} in ${path}`);
    }
    if (values.dataDir !== undefined) dataDirFrom = dirname(path);
  }
  addOlderKey(sources.environment[environmentName(olderKey)], environmentName(olderKey), values, given);
  for (const key of configKeys) {
    const fromEnvironment = sources.environment[environmentName(key)];
    if (fromEnvironment !== undefined && fromEnvironment !== "") {
      values[key] = textAs(clusterConfigSchema.shape[key], fromEnvironment);
      given.set(key, environmentName(key));
    }
  }
  addOlderKey(sources.flags?.[olderKey], flagName(olderKey), values, given);
  for (const key of configKeys) {
    const fromFlag = sources.flags?.[key];
    if (fromFlag !== undefined) {
      values[key] = typeof fromFlag === "string" ? textAs(clusterConfigSchema.shape[key], fromFlag) : fromFlag;
      given.set(key, flagName(key));
    }
  }
  const folders = { file: dirname(path), user: sources.directory };
  const named = { values, given, folders, lookedIn: [sources.directory, sources.root] };
  const hasTopology = addTopology(named) !== undefined;
  const dataDirBy = given.get("dataDir");
  if (dataDirBy === flagName("dataDir") || dataDirBy === environmentName("dataDir")) dataDirFrom = sources.directory;
  const dataDir = clusterConfigSchema.shape.dataDir.safeParse(values.dataDir);
  if (dataDir.success && sources.withoutRecord !== true) {
    const remembered = resolve(dataDirFrom, dataDir.data);
    // The folder may remember which topology it is of, and a topology wins over what else the folder remembers.
    if (!hasTopology) {
      addRemembered(remembered, values, given, ["host", "topology"]);
      addTopology(named);
    }
    addRemembered(remembered, values, given);
    // Records of releases with one lock service by default do not name the number. If the record is gone, or was told to forget it, folders do.
    if (values.lockServices === undefined) {
      const isOlder = readClusterRecord(remembered) !== undefined && !replicatesIn(remembered);
      const lockServices = isOlder ? 1 : lockServicesIn(remembered);
      if (lockServices !== undefined) values.lockServices = lockServices;
    }
  }
  const parsed = clusterConfigSchema.safeParse(values);
  if (!parsed.success) throw notRight(parsed.error, values, (key, rest) => withLine(nested(given.get(key) ?? key, key, rest), path, lines));
  const files = Object.fromEntries(
    (["tlsCert", "tlsKey", "clusterSecretFile", "topology", "initFile"] as const).flatMap((key) => {
      const named = parsed.data[key];
      const from = given.get(key)?.startsWith(`${key} in `) ? dirname(path) : sources.directory;
      return named === undefined ? [] : [[key, resolve(from, named)]];
    }),
  );
  return checked({ ...parsed.data, ...files, dataDir: resolve(dataDirFrom, parsed.data.dataDir) });
}

/** Throws ConfigError if `text` is no value of the key. `flag`: what the error names. */
export function checkFlag(key: ClusterConfigKey, text: string, flag: string): void {
  const schema = clusterConfigSchema.shape[key];
  const value = textAs(schema, text);
  const parsed = z.object({ [key]: schema }).safeParse({ [key]: value });
  if (!parsed.success) throw notRight(parsed.error, { [key]: value }, (_key, rest) => [flag, ...rest].join("."));
}

/** `where`: key of a value, with the path below it. */
function notRight(
  { issues }: z.ZodError,
  values: Readonly<Record<string, unknown>>,
  where: (key: string, rest: readonly string[]) => string,
): ConfigError {
  const told = issues.flatMap((issue) => {
    const [key = "", ...rest] = issue.path.map(String);
    if (issue.code === "unrecognized_keys" && key === "")
      return issue.keys.map((name) => `${where(name, [])}: no such key${hint(nearestName(name, configKeys))}`);
    if (issue.code === "unrecognized_keys") return [`${where(key, rest)}: no such key: ${issue.keys.join(", ")}`];
    const schema = rest.length > 0 || issue.code === "custom" ? undefined : clusterConfigSchema.shape[key as ClusterConfigKey];
    return [`${where(key, rest)}: ${wrongValue(schema, values[key], issue.message)}`];
  });
  return new ConfigError(`the configuration is not right:\n  ${[...new Set(told)].join("\n  ")}`);
}

const hint = (near: string | undefined): string => (near === undefined ? "" : `; did you mean ${near}?`);

/** Adds the line of a value of the file at `path`: `accounts.0.name in stamp.config.json:7`. */
function withLine(where: string, path: string, lines: ReadonlyMap<string, number>): string {
  const ending = ` in ${path}`;
  const line = where.endsWith(ending) ? lines.get(where.slice(0, -ending.length)) : undefined;
  return line === undefined ? where : `${where}:${line}`;
}

/** Adds the value of `bind` from the environment or a flag. What the same source says by today's keys is added after it. */
function addOlderKey(value: unknown, source: string, values: Record<string, unknown>, given: Map<string, string>): void {
  if (value === undefined || value === "") return;
  for (const [key, each] of Object.entries(withoutOlderKey({ [olderKey]: value }))) {
    values[key] = each;
    given.set(key, source);
  }
}

/** Adds what the folder remembers for every key that nothing else gives. */
function addRemembered(
  dataDir: string,
  values: Record<string, unknown>,
  given: Map<string, string>,
  only: readonly string[] = configKeys,
): void {
  const path = clusterRecordPath(dataDir);
  for (const [key, value] of Object.entries(withoutOlderKey(readClusterRecord(dataDir)?.config ?? {}))) {
    if (!only.includes(key) && (configKeys as readonly string[]).includes(key)) continue;
    if (key === "dataDir" || !(configKeys as readonly string[]).includes(key)) throw new ConfigError(`${key} in ${path}: no such key`);
    if (key in values) continue;
    values[key] = value;
    given.set(key, `${key} in ${path}`);
  }
}

/** Returns where a wrong value stands: `accounts.0.name in stamp.config.json`, `STAMP_ACCOUNTS.0.name`. */
const nested = (source: string, key: string, rest: readonly string[]): string =>
  source.startsWith(`${key} in `) ? [key, ...rest].join(".") + source.slice(key.length) : [source, ...rest].join(".");

function readFile(path: string): { readonly values: Record<string, unknown>; readonly lines: ReadonlyMap<string, number> } {
  try {
    const text = readFileSync(path, "utf8");
    const value = parseWrittenJson(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      const { $schema: _, ...rest } = value as Record<string, unknown>;
      return { values: rest, lines: linesOfWrittenJson(text) };
    }
    throw new Error("not a JSON object");
  } catch (error) {
    throw new ConfigError(inWords(error, path));
  }
}

/** Checks that concern several keys at once. */
function checked(config: ClusterConfig): ClusterConfig {
  const wrong: string[] = [];
  const metadataStore = metadataStoreOf(config);
  if (config.lockServices > 1 && metadataStore === "leveldb")
    wrong.push(
      `lockServices: ${config.lockServices} can't share one store: say lockServices 1, or no metadataStore under roles.lock-service`,
    );
  if (metadataStore === "replicated" && config.lockServices % 2 === 0) {
    wrong.push(
      `lockServices: ${config.lockServices} survive no more losses than ${config.lockServices - 1}; a replicated store has 1, 3 or 5`,
    );
  }
  const { etcdEndpoints } = config.roles["lock-service"] ?? {};
  const strange = typeof etcdEndpoints === "string" ? addressesIn(etcdEndpoints).flatMap((text) => whyNoAddress(text) ?? []) : [];
  if (strange.length > 0) wrong.push(`roles.lock-service.etcdEndpoints: ${strange.join("; ")}`);
  if (config.minCopies > config.copies) wrong.push(`minCopies: ${config.minCopies} is more than copies (${config.copies})`);
  if (config.minCopies > config.extentNodes) wrong.push(`extentNodes: ${config.extentNodes} is fewer than minCopies (${config.minCopies})`);
  if (config.topology !== undefined && config.portBase > 62_000)
    wrong.push(`portBase: ${config.portBase} is too high, the processes of a host have ports up to portBase + 2899`);
  const { stopNotReadyMs = 0, stopDrainMs = 0 } = config.roles["front-end"] ?? {};
  if (Number(stopNotReadyMs) + Number(stopDrainMs) >= config.stopTimeoutMs) {
    wrong.push(
      `stopTimeoutMs: front-ends take ${Number(stopNotReadyMs) + Number(stopDrainMs)} ms to stop (stopNotReadyMs, stopDrainMs), and would be killed after ${config.stopTimeoutMs}`,
    );
  }
  if (config.leaseRenewEveryMs + config.leaseMarginMs >= config.leaseTermMs) {
    wrong.push("leaseTermMs: must be longer than leaseRenewEveryMs and leaseMarginMs together");
  }
  if ((config.tlsCert === undefined) !== (config.tlsKey === undefined)) wrong.push("tlsCert, tlsKey: one is not there without the other");
  if (wrong.length > 0) throw new ConfigError(`the configuration is not right:\n  ${wrong.join("\n  ")}`);
  return config;
}
