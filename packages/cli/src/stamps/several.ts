/**
 * Several stamps and a location service in one data folder, for `stamp up --stamps`:
 *
 *   stamps.json      how many stamps there are, and the port of the location service
 *   north-1/         data folder of the first stamp, as any other stamp's; then south-1, east-1, west-1
 *   location/        the location service, its lock service, and the secrets of the stamps
 *
 * Ports: the first stamp has those of `portBase`, each further one those 300 above, then comes the location service.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ClusterConfig,
  clusterConfigSchema,
  clusterRecordPath,
  developmentAccount,
  type LocationConfig,
  loadConfig,
  portsOfBase,
  stampSecretsIn,
} from "@stamp/cluster";
import type { Command } from "commander";
import { configOf, flaggedConfig } from "../context.ts";
import { CommandError, exitCodes } from "../exit.ts";

export interface OneStamp {
  /** Name of the stamp at the location service, and of its folder. */
  readonly name: string;
  readonly location: string;
  readonly config: ClusterConfig;
}

export interface SeveralStamps {
  readonly dataDir: string;
  readonly stamps: readonly OneStamp[];
  readonly location: LocationConfig;
}

interface SeveralRecord {
  readonly format: number;
  readonly stamps: number;
  readonly locationPort: number;
}

const format = 1;
const locations = ["north", "south", "east", "west"] as const;
export const stampsMin = 2;
export const stampsMax: number = locations.length;

/** Processes of each stamp if nobody says otherwise: one machine runs all of them, to try several stamps out. */
const small = { lockServices: 1, streamManagers: 1, partitionManagers: 1, partitionServers: 1, extentNodes: 3 } as const;

const recordPath = (dataDir: string): string => join(dataDir, "stamps.json");
const locationFolder = (dataDir: string): string => join(dataDir, "location");
const nameAt = (location: string): string => `${location}-1`;

function recordIn(dataDir: string): SeveralRecord | undefined {
  const path = recordPath(dataDir);
  if (!existsSync(path)) return undefined;
  const damaged = new CommandError(`${path} is not a record of several stamps: put it back, or name another folder with --data`);
  let record: SeveralRecord;
  try {
    record = JSON.parse(readFileSync(path, "utf8")) as SeveralRecord;
  } catch {
    throw damaged;
  }
  if (record?.format > format) throw new CommandError(`${path} was written by a newer release`);
  const { stamps, locationPort } = record ?? {};
  const isRight = Number.isInteger(stamps) && stamps >= stampsMin && stamps <= stampsMax && Number.isInteger(locationPort);
  if (!isRight) throw damaged;
  return record;
}

/** True if the data folder has several stamps. */
export const hasSeveral = ({ dataDir }: Pick<ClusterConfig, "dataDir">): boolean => existsSync(recordPath(dataDir));

/** Returns the stamps of a data folder as they were started last; undefined if it has one stamp, or none. */
export function severalIn({ dataDir }: Pick<ClusterConfig, "dataDir">): SeveralStamps | undefined {
  const record = recordIn(dataDir);
  if (record === undefined) return undefined;
  const stamps = locations.slice(0, record.stamps).map((location) => {
    const folder = join(dataDir, nameAt(location));
    // Without files of the person's folder and without the environment: as the stamp's own folder remembers it.
    const config = loadConfig({ directory: folder, root: folder, environment: {}, flags: { dataDir: folder } });
    return { name: nameAt(location), location, config };
  });
  const [first] = stamps;
  return { dataDir, stamps, location: locationConfigOf(dataDir, first?.config ?? clusterConfigSchema.parse({}), record.locationPort) };
}

/** Plans a start. `count`: number of stamps; undefined: as at the last start. */
export function planSeveral(command: Command, count: number | undefined): SeveralStamps {
  const base = configOf(command);
  const { dataDir } = base;
  if (base.topology !== undefined) throw new CommandError("--stamps is for one machine, without --host and --topology", exitCodes.usage);
  if (existsSync(join(dataDir, "stamp.json")))
    throw new CommandError(`${dataDir} holds one stamp; several need a folder of their own: --data DIR`, exitCodes.usage);
  const record = recordIn(dataDir);
  if (record !== undefined && count !== undefined && count !== record.stamps)
    throw new CommandError(`${dataDir} has ${record.stamps} stamps; another number needs a folder of its own: --data DIR`, exitCodes.usage);
  const given = command.opts<Partial<Record<keyof ClusterConfig, unknown>>>();
  const hasPort = record === undefined || given.portBase !== undefined;
  const stamps = locations.slice(0, record?.stamps ?? count).map((location, at) => {
    const folder = join(dataDir, nameAt(location));
    const own: Partial<ClusterConfig> = {
      dataDir: folder,
      ...(hasPort ? { portBase: base.portBase + at * portsOfBase } : {}),
      ...(existsSync(clusterRecordPath(folder)) ? {} : firstSettings(base, at)),
    };
    const { roles } = flaggedConfig(command, own);
    const shipping = { geoPeerSecretsDir: stampSecretsIn(locationFolder(dataDir)), geoStampName: nameAt(location) };
    const withPeers = { ...roles, "partition-server": { ...shipping, ...roles["partition-server"] } };
    return { name: nameAt(location), location, config: flaggedConfig(command, { ...own, roles: withPeers }) };
  });
  const locationPort = hasPort ? base.portBase + stamps.length * portsOfBase : record.locationPort;
  return { dataDir, stamps, location: locationConfigOf(dataDir, base, locationPort) };
}

/** Returns the settings of a stamp's first start. Each stamp has an account of its own: a name exists once over all stamps. */
function firstSettings(base: ClusterConfig, at: number): Partial<ClusterConfig> {
  const defaults = clusterConfigSchema.parse({});
  const fewer = Object.fromEntries(
    Object.entries(small).filter(([key]) => base[key as keyof typeof small] === defaults[key as keyof typeof small]),
  );
  return { ...fewer, ...(at === 0 ? {} : { accounts: [{ ...developmentAccount, name: `devstoreaccount${at + 1}` }] }) };
}

function locationConfigOf(dataDir: string, config: ClusterConfig, port: number): LocationConfig {
  const { internalBind, logLevel, logBytesMax, restartAfterMs, stopTimeoutMs } = config;
  return { dataDir: locationFolder(dataDir), bind: internalBind, port, logLevel, logBytesMax, restartAfterMs, stopTimeoutMs };
}

/** Makes the data folder one of several stamps. */
export function rememberSeveral({ dataDir, stamps, location }: SeveralStamps): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const record: SeveralRecord = { format, stamps: stamps.length, locationPort: location.port };
  const path = recordPath(dataDir);
  writeFileSync(`${path}.new`, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Returns the address of the location service and the file with its secret. */
export function locationIn({ location }: SeveralStamps): { readonly at: string; readonly secretFile: string } {
  return { at: `${location.bind}:${location.port}`, secretFile: join(location.dataDir, "cluster-secret") };
}

/** Returns all data folders of the processes, in the order in which they stop. */
export const foldersOf = ({ stamps, location }: SeveralStamps): string[] => [
  ...stamps.map(({ config }) => config.dataDir),
  location.dataDir,
];
