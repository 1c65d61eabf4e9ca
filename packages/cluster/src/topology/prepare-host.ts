/**
 * Prepares a host before its processes start: the secret of the stamp, and the disks that the topology gives to its extent nodes.
 *
 *   dataDir/extent-node-3 ──symbolic link──▶ /mnt/disk-1/extent-node-3
 *
 * Invariants:
 * - No host of several makes a secret: two secrets would refuse each other.
 * - An extent node never starts on a disk that is not mounted. The link was made when the folder was there; if the folder is missing
 *   behind it, a person decides.
 */
import { existsSync, lstatSync, mkdirSync, readlinkSync, symlinkSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { goneText, makeMasterKeyFile, makeSecretFile, masterKeyIdFile } from "@stamp/ports-node";
import type { ClusterConfig } from "../config.ts";
import type { PlannedProcess } from "../plan.ts";
import { masterKeyPath } from "../record/sealed-accounts.ts";
import { secretFilesOf } from "../secret-files.ts";
import { StartError } from "../start-error.ts";
import { processesOf, type Topology } from "./topology.ts";

/** Makes the secret of a stamp on one host; asks for it if the topology has several. Throws StartError. */
export function prepareSecret(config: ClusterConfig): void {
  const { current } = secretFilesOf(config);
  if (config.topology === undefined) makeSecretFile(current);
  else if (!existsSync(current))
    throw new StartError(
      `the secret of the stamp is not on this host: ${current}. All hosts have the same one: make it on the first ` +
        `(umask 077; openssl rand -base64 32 > ${current}) and copy it to the others`,
    );
}

/**
 * Returns the file with the master key that the partition servers of this folder seal secrets of accounts with: `master-key`, which the first
 * start of a folder makes. Undefined for a folder of an older release that has none, and where `roles` gives the partition servers another
 * source. Several hosts have the same key, which a person gives to them.
 */
export function masterKeyFileOf(config: ClusterConfig, isFirstStart: boolean): string | undefined {
  const given = config.roles["partition-server"] ?? {};
  if (["masterKey", "masterKeyFile", "masterKeyCommand"].some((key) => key in given)) return undefined;
  const path = masterKeyPath(config.dataDir);
  const isMade = isFirstStart && config.topology === undefined;
  return isMade || existsSync(path) || existsSync(masterKeyIdFile(path)) ? path : undefined;
}

/** Returns the configuration that partition servers are planned by. The folder does not remember the file: it may move, and its key with it. */
export function withMasterKey(config: ClusterConfig, path: string | undefined): ClusterConfig {
  if (path === undefined) return config;
  const settings = { masterKeyFile: path, masterKeyPreviousFile: `${path}.previous`, ...config.roles["partition-server"] };
  return { ...config, roles: { ...config.roles, "partition-server": settings } };
}

/** Makes the master key at the first start. Throws StartError if there was one and it is gone, or if one is asked for and is not here. */
export function prepareMasterKey(
  config: ClusterConfig,
  path: string | undefined,
  processes: readonly Pick<PlannedProcess, "role">[],
): void {
  const wanted = wantedKeyFile(config);
  if (wanted !== undefined && wanted !== path && processes.some(({ role }) => role === "partition-server") && !existsSync(wanted))
    throw new StartError(notHereText(config, wanted));
  if (path === undefined) return;
  if (!existsSync(path) && existsSync(masterKeyIdFile(path))) throw new StartError(goneText(path));
  makeMasterKeyFile(path);
}

/** Returns the file with the master key that partition servers need; undefined if none is asked for, or if its source is no file. */
function wantedKeyFile({ dataDir, keysAtRest, roles }: ClusterConfig): string | undefined {
  const { masterKeyFile, masterKeyCommand } = roles["partition-server"] ?? {};
  if (typeof masterKeyFile === "string") return isAbsolute(masterKeyFile) ? masterKeyFile : undefined;
  return keysAtRest === "sealed" && masterKeyCommand === undefined ? masterKeyPath(dataDir) : undefined;
}

/** Returns why a start without the master key is refused. Partition servers would end one after another, and only their logs would say why. */
function notHereText({ topology }: ClusterConfig, file: string): string {
  const make = `(umask 077; openssl rand -base64 32 > ${file})`;
  return topology === undefined
    ? `the master key of the stamp is not here: ${file}. Put it back; if the stamp never had one, make it: ${make}`
    : `the master key of the stamp is not on this host: ${file}. All hosts have the same one: copy it from another host; ` +
        `if the stamp never had one, make it on the first: ${make}`;
}

/** Puts the folder of each extent node on its disk. Throws StartError. */
export function prepareDisks(config: ClusterConfig, topology: Topology): void {
  const host = config.host === undefined ? undefined : topology.hosts[config.host];
  if (host?.disks === undefined) return;
  const nodes = processesOf(host).filter(({ role }) => role === "extent-node");
  for (const [i, { name }] of nodes.entries()) {
    const disk = host.disks[i] as string;
    const [link, folder] = [join(config.dataDir, name), join(disk, name)];
    const there = lstatSync(link, { throwIfNoEntry: false });
    if (there === undefined) {
      if (!existsSync(disk)) throw new StartError(`the disk of ${name} is not there: ${disk} (hosts.${config.host}.disks)`);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      symlinkSync(folder, link);
    } else if (!there.isSymbolicLink() || readlinkSync(link) !== folder) {
      const is = there.isSymbolicLink() ? `in ${readlinkSync(link)}` : `in ${link} itself`;
      throw new StartError(
        `${name} has its data ${is}, and the topology gives it ${folder}. Move the data there, remove ${link}, and start again`,
      );
    } else if (!existsSync(folder))
      throw new StartError(
        `the disk of ${name} is not mounted: ${folder} is missing. Mount it. If the disk is lost for ever: mkdir -m 700 ${folder}; ` +
          "its replicas are made again from the others",
      );
  }
}
