/** Compares a start with what the data folder remembers and holds. Every line is for a person, and says what to do where something is. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type ClusterConfig, type ClusterConfigKey, clusterConfigSchema, configKeys, flagName, metadataStoreOf } from "../config.ts";
import { asRecorded } from "../topology/addresses.ts";
import type { ClusterRecord } from "./cluster-record.ts";
import { membersLeftOut } from "./lock-service-folders.ts";

/** Keys that are recorded also when they have the default: a later release's default must not change a cluster that exists. */
const shape: ReadonlySet<ClusterConfigKey> = new Set([
  "lockServices",
  "streamManagers",
  "partitionManagers",
  "partitionServers",
  "extentNodes",
  "frontEnds",
  "faultDomains",
  "copies",
  "minCopies",
]);

const defaults = clusterConfigSchema.parse({});
/** An init file is of one start. */
const rememberedKeys = configKeys.filter((key) => key !== "dataDir" && key !== "initFile");
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Returns what the folder remembers of a configuration: the shape of the cluster, and every other key that differs from its default. */
export function rememberedOf(config: ClusterConfig): ClusterRecord["config"] {
  return Object.fromEntries(
    rememberedKeys.filter((key) => shape.has(key) || !same(config[key], defaults[key])).map((key) => [key, config[key]]),
  );
}

/** Returns a line for every key whose value differs from that of the last start. */
export function changesSince(record: ClusterRecord | undefined, config: ClusterConfig): string[] {
  if (record === undefined) return [];
  const recorded = asRecorded(record.config);
  return rememberedKeys.flatMap((key) => {
    const before = key in recorded ? recorded[key] : defaults[key];
    if (same(before, config[key])) return [];
    const [was, is] = [textOf(key, before), textOf(key, config[key])];
    return [
      was === is ? `${key}: changed since the last start on this folder` : `${key}: ${was} → ${is} since the last start on this folder`,
    ];
  });
}

/** Returns the values that hold only because the folder remembers them, in one line, undefined if there are none. */
export function rememberedLine(record: ClusterRecord | undefined, config: ClusterConfig): string | undefined {
  if (record === undefined) return undefined;
  const recorded = asRecorded(record.config);
  const held = rememberedKeys.filter((key) => key in recorded && !same(config[key], defaults[key]) && same(recorded[key], config[key]));
  return held.length === 0 ? undefined : `as at the last start: ${held.map((key) => `${key} ${textOf(key, config[key])}`).join(", ")}`;
}

/** Returns the names of extent nodes that have a disk in the folder, were not decommissioned, and are not in the plan. */
export function nodesLeftOut(dataDir: string, planned: readonly string[], retired: readonly string[]): string[] {
  const known = foldersIn(dataDir).filter((name) => /^extent-node-\d+$/.test(name) && foldersIn(join(dataDir, name)).length > 0);
  return known.filter((name) => !planned.includes(name) && !retired.includes(name)).sort((one, other) => numberOf(one) - numberOf(other));
}

/** Returns what is not as a person may expect of this start. `planned`: names of the processes that it starts. */
export function remarksOf(config: ClusterConfig, planned: readonly string[], retired: readonly string[]): string[] {
  const remarks: string[] = [];
  const leftOut = nodesLeftOut(config.dataDir, planned, retired);
  if (leftOut.length > 0) {
    const [are, their] = leftOut.length === 1 ? ["is", "its"] : ["are", "their"];
    remarks.push(
      `${leftOut.join(", ")} ${are} not started; nobody can read ${their} replicas. ` +
        `Start: ${flagName("extentNodes")} ${config.extentNodes + leftOut.length}, or while it runs: ./stamp node add. To remove a node: ./stamp node remove ${leftOut[0]}`,
    );
  }
  if (config.copies > config.extentNodes) {
    remarks.push(
      `copies is ${config.copies}, but there are only ${config.extentNodes} extent nodes: every extent gets ${config.extentNodes} replicas. ` +
        `Start more: ${flagName("extentNodes")} ${config.copies}; or ask for fewer: ${flagName("copies")} ${config.extentNodes}`,
    );
  }
  const store = metadataStoreOf(config);
  if (store === "leveldb" || (store === "replicated" && config.lockServices === 1)) {
    const three = config.topology === undefined ? `${flagName("lockServices")} 3` : `name two more lock services in ${config.topology}`;
    remarks.push(
      `the metadata lie on the disk of one lock service: if that is lost, so is what was acknowledged after its newest copy. ` +
        `Keep them on three disks: ${three} (docs/guides/metadata.md)`,
    );
  }
  const members = store === "replicated" && config.topology === undefined ? membersLeftOut(config.dataDir, config.lockServices) : [];
  if (members.length > 0) {
    const [are, their] = members.length === 1 ? ["is", "its folder"] : ["are", "their folders"];
    remarks.push(
      `${members.join(", ")} ${are} not started. If still named by ./stamp lock-service list, one fault more stops the stamp: start it with ` +
        `${flagName("lockServices")} 5, and remove ${members.length === 1 ? "it" : "them"} first (docs/guides/metadata.md); if not, move ${their} away`,
    );
  }
  const domains = new Set(config.faultDomains.slice(0, config.extentNodes)).size;
  if (domains > 0 && domains < Math.min(config.copies, config.extentNodes)) {
    remarks.push(
      `copies is ${config.copies}, but faultDomains has ${domains} names: some replicas of an extent share a fault domain. Name more, or ask for fewer copies`,
    );
  }
  return remarks;
}

/** Returns why a node can't be removed, undefined if it can. `running`: names of the processes that run. */
export function refuseRemoval(
  { minCopies }: Pick<ClusterConfig, "minCopies">,
  name: string,
  running: readonly string[],
): string | undefined {
  const left = running.filter((each) => each.startsWith("extent-node-") && each !== name).length;
  if (!running.includes(name) || left >= minCopies) return undefined;
  return `without ${name} ${left} of the extent nodes would be left, and minCopies is ${minCopies}: writes would wait. Add one first: ./stamp node add`;
}

/** Returns a value as one word for a line. Keys of accounts are secret. */
function textOf(key: ClusterConfigKey, value: unknown): string {
  if (key === "accounts" && Array.isArray(value)) return value.map((each) => (each as { name?: string }).name ?? "").join(", ");
  return value === undefined ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

const numberOf = (name: string): number => Number(name.slice(name.lastIndexOf("-") + 1));

/** Returns the names in a folder; none if it is absent or no folder. */
function foldersIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}
