/** `stamp metadata migrate`: the metadata store of a stopped stamp goes to etcd, or back into the folder of the lock service. */
import { existsSync, readFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { etcdSecrets, type LockServiceConfig, lockServiceSchema, type MetadataPlace, migrateMetadata } from "@stamp/lock-service";
import { silentLogger } from "@stamp/ports";
import { inWords, isSystemError, loadConfig, nodeWorld } from "@stamp/ports-node";
import { CommandError } from "../exit.ts";

export interface MigratedStore {
  readonly to: MetadataPlace;
  readonly keys: number;
  /** Path of the store that was given up. */
  readonly aside: string;
  /** Folder that holds the former content of etcd, if it was replaced. */
  readonly replaced?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** `environment`: variables of the lock service, with the settings of etcd. */
export async function migrateStore(environment: Environment, to: MetadataPlace, replace: boolean): Promise<MigratedStore> {
  const config = settingsOf(environment);
  const dataDir = resolve(config.dataDir);
  const world = nodeWorld({ dataDir, name: "metadata-migrate", logger: silentLogger });
  try {
    const secrets = etcdSecrets(config, (path) => readFileSync(path, "utf8"));
    if (!secrets.ok) throw new CommandError(secrets.failure.message);
    const migrated = await migrateMetadata(world, config, secrets.value, to, replace);
    if (!migrated.ok) throw new CommandError(migrated.failure.message);
    const aside = to === "etcd" ? await moveAside(join(dataDir, "stores", "metadata")) : `etcd, keys ${config.etcdPrefix}d/…`;
    const { keys, replaced } = migrated.value;
    return { to, keys, aside, replaced: replaced && join(dataDir, "stores", replaced) };
  } catch (error) {
    throw isSystemError(error) ? new CommandError(inWords(error)) : error;
  } finally {
    await world.transport.close();
    await world.foreign.close();
  }
}

/** Throws CommandError if a setting is wrong. */
export function settingsOf(environment: Environment): LockServiceConfig {
  try {
    return loadConfig(lockServiceSchema, environment, []);
  } catch (error) {
    throw new CommandError(inWords(error));
  }
}

/** Moves the store aside. A lock service with the old settings finds the store's mark, and refuses to serve. */
async function moveAside(folder: string): Promise<string> {
  const aside = `${folder}.migrated-${Date.now()}`;
  if (existsSync(folder)) await rename(folder, aside);
  return aside;
}
