/**
 * Settings of the processes of one role (`roles` in the configuration). The processes of a cluster know their schemas, the supervisor does
 * not: without a look before the start a wrong value is a process that dies again and again, and a misspelt key is nothing at all.
 */
import {
  type ClusterConfig,
  configKeys,
  environmentName,
  olderKey,
  type PlannedProcess,
  planCluster,
  type RoleName,
  roles,
} from "@stamp/cluster";
import { contradictions } from "@stamp/partition-map";
import { ConfigError, describeKeys, loadConfig, unknownNames } from "@stamp/ports-node";
import { CommandError, exitCodes } from "../context.ts";

type Schema = Parameters<typeof describeKeys>[0];

/** Loaded only by who asks: a role is much code. */
const schemas: Readonly<Record<RoleName, () => Promise<Schema>>> = {
  "lock-service": async () => (await import("@stamp/lock-service")).lockServiceSchema,
  "extent-node": async () => (await import("@stamp/extent-node")).extentNodeSchema,
  "stream-manager": async () => (await import("@stamp/stream-manager")).streamManagerSchema,
  "partition-manager": async () => (await import("@stamp/partition-manager")).partitionManagerConfigSchema,
  "partition-server": async () => (await import("@stamp/partition-server")).partitionServerConfigSchema,
  "front-end": async () => (await import("@stamp/front-end")).frontEndConfigSchema,
};

/** Keys that differ in each process of a role. */
const ofEachProcess: ReadonlySet<string> = new Set(["name", "listen", "advertise", "http", "dataDir", "lockService"]);
/** Keys of every process, in no role's schema. */
const ofAll: ReadonlySet<string> = new Set(["logLevel", "otlpEndpoint", "otlpShare"]);
/** Keys whose values are not shown, because they hold secrets. */
const secret: ReadonlySet<string> = new Set(["accounts", "masterKey", "masterKeyCommand"]);

export interface RoleSetting {
  readonly key: string;
  /** Value that the processes have. */
  readonly value: string;
  readonly byDefault: string;
  readonly meaning: string;
}

const firstOf = (config: ClusterConfig, role: RoleName): PlannedProcess =>
  planCluster(config).processes.find((each) => each.role === role) as PlannedProcess;

/** Returns every key that `roles` can give to processes of this role. */
export async function roleSettings(config: ClusterConfig, role: RoleName): Promise<readonly RoleSetting[]> {
  const schema = await schemas[role]();
  const values = loadConfig(schema, firstOf(config, role).environment, []) as Readonly<Record<string, unknown>>;
  const text = (value: unknown): string => (value === undefined ? "-" : typeof value === "string" ? value : JSON.stringify(value));
  return describeKeys(schema)
    .filter(({ key }) => !ofEachProcess.has(key))
    .map(({ key, meaning, byDefault }) => {
      const hidden = secret.has(key);
      return { key, meaning, value: hidden ? "…" : text(values[key]), byDefault: hidden || byDefault === undefined ? "-" : byDefault };
    });
}

/** Throws a CommandError with a line for everything that is wrong with `roles`. */
export async function checkRoleSettings(config: ClusterConfig): Promise<void> {
  const wrong: string[] = [];
  for (const role of Object.keys(config.roles) as RoleName[]) wrong.push(...(await problemsOf(config, role)));
  if (wrong.length > 0) throw new CommandError(`the configuration is not right:\n  ${wrong.join("\n  ")}`, exitCodes.usage);
}

/** Names that the command line and its launcher use, besides the keys of the configuration. */
const ownNames = [
  "STAMP_CONFIG",
  "STAMP_ROOT",
  "STAMP_SERVICE",
  "STAMP_PROCESSES",
  "STAMP_COMPOSE",
  "STAMP_CONNECTION_STRING",
  "STAMP_CLUSTER",
  "STAMP_BUNDLE",
];

/** Returns a line for every name of the environment that looks like a setting and is none. */
export async function unknownSettings(env: Readonly<Record<string, string | undefined>>): Promise<readonly string[]> {
  const unknown = unknownNames(env, [...[...configKeys, olderKey].map(environmentName), ...ownNames]);
  if (unknown.length === 0) return [];
  const ofRoles = new Map<string, string>();
  for (const role of roles)
    for (const key of Object.keys((await schemas[role]()).shape))
      ofRoles.set(environmentName(key), `a setting of ${role}, which takes it from the configuration: {"roles":{"${role}":{"${key}":…}}}`);
  return unknown.map(({ name, nearest }) => {
    const why = ofRoles.get(name) ?? (nearest === undefined ? "there is no such setting" : `there is no such setting; ${nearest}?`);
    return `${name} in the environment is ignored: ${why}`;
  });
}

async function problemsOf(config: ClusterConfig, role: RoleName): Promise<readonly string[]> {
  const given = Object.keys(config.roles[role] ?? {});
  const schema = await schemas[role]();
  const keys = given.flatMap((key) => {
    if (ofEachProcess.has(key)) return [`roles.${role}.${key}: each process is given its own`];
    if (key === "masterKey") return [`roles.${role}.${key}: the data folder would remember it; give masterKeyFile or masterKeyCommand`];
    if (key in schema.shape || ofAll.has(key)) return [];
    return [`roles.${role}.${key}: no such key (all of them: ./stamp config show ${role})`];
  });
  if (keys.length > 0) return keys;
  const described = new Map(describeKeys(schema).map(({ key, type }) => [key, type]));
  const kinds = Object.entries(config.roles[role] ?? {}).flatMap(([key, value]) => {
    const type = described.get(key);
    // The processes get it as text, in which 64 and "64" are the same.
    if ((type !== "number" && type !== "boolean") || typeof value === type) return [];
    return [`roles.${role}.${key}: ${JSON.stringify(value)} is not allowed: a ${type} without quotes`];
  });
  if (kinds.length > 0) return kinds;
  try {
    const values = loadConfig(schema, firstOf(config, role).environment, []);
    return role === "partition-manager" ? await policyProblems(values) : [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ key, message }) => `roles.${role}${key === undefined ? "" : `.${key}`}: ${message}`);
  }
}

async function policyProblems(values: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
  const { balancePolicyOf, partitionManagerConfigSchema } = await import("@stamp/partition-manager");
  const config = partitionManagerConfigSchema.parse(values);
  return config.balance ? contradictions(balancePolicyOf(config)).map((why) => `roles.partition-manager.${why}`) : [];
}
