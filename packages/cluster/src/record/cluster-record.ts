/**
 * `cluster.json` in the data folder: how the cluster of this folder was started last (docs/formats/cluster-record.md). Every command takes
 * what no flag, environment or file gives from it, so a start without flags starts the same cluster.
 *
 * Written by the supervisor that holds the folder. Invariants:
 * - The file appears whole and durable, so bytes that can't be read are damage and are refused, never taken for an empty record.
 * - A name in `retired` is never planned again.
 * - A process that has a slot keeps it, so nodes that come and go move no port of another process.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatVersions, newerFormat, release } from "@stamp/base";
import { inWords } from "@stamp/ports-node";
import { StartError } from "../start-error.ts";
import { openAccounts, type SealedAccounts, sealAccounts } from "./sealed-accounts.ts";

const formatVersion = formatVersions["cluster-record"];
/** Version of a record whose accounts are not sealed. */
const openVersion = 2;

export interface ClusterRecord {
  /** Values by configuration key. The schema of the configuration checks them when they are used. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Names of the extent nodes that were decommissioned. */
  readonly retired: readonly string[];
  /** Ports of each process of the last start, by name, counted from those of the first process. Records of version 1 have none. */
  readonly slots?: Readonly<Record<string, number>>;
}

export const clusterRecordPath = (dataDir: string): string => join(dataDir, "cluster.json");

/** Returns the record of a data folder, undefined if the folder has none. Throws StartError if the record can't be used. */
export function readClusterRecord(dataDir: string): ClusterRecord | undefined {
  const path = clusterRecordPath(dataDir);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new DamagedRecordError(inWords(error, path));
  }
  const { format, release: writer, config, sealedAccounts, retired, slots = {} } = parsed(path, text);
  if (typeof format === "number" && format > formatVersion) {
    const by = typeof writer === "string" ? writer : undefined;
    throw new StartError(newerFormat(path, { format: "cluster-record", version: format }, by).failure.message);
  }
  const known = typeof format === "number" && Number.isInteger(format) && format >= 1;
  if (!known || !isObject(config) || !isNames(retired) || !isSlots(slots)) throw damaged(path, "not a record of a cluster");
  if (sealedAccounts === undefined) return { config, retired, slots };
  if (!isSealed(sealedAccounts)) throw damaged(path, "its accounts are not as they are sealed");
  const accounts = openAccounts(dataDir, sealedAccounts);
  if (accounts === undefined) throw damaged(path, "its accounts do not open");
  return { config: { ...config, accounts }, retired, slots };
}

/** Returns the id of the master key that seals the record of a data folder; undefined if there is no record, or if none does. */
export function recordSealedBy(dataDir: string): string | undefined {
  const path = clusterRecordPath(dataDir);
  try {
    const { sealedAccounts } = parsed(path, readFileSync(path, "utf8"));
    return isSealed(sealedAccounts) ? sealedAccounts.by : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error instanceof StartError ? error : new StartError(inWords(error, path));
  }
}

/** Replaces the record of a data folder, durably. Without anything sealed it is of the version before, which older releases read. */
export function writeClusterRecord(dataDir: string, { config, retired, slots = {} }: ClusterRecord): void {
  const path = clusterRecordPath(dataDir);
  const { accounts, ...open } = config;
  const sealedAccounts = accounts === undefined ? undefined : sealAccounts(dataDir, accounts);
  const members =
    sealedAccounts === undefined
      ? { format: openVersion, release, config, retired, slots }
      : { format: formatVersion, release, config: open, sealedAccounts, retired, slots };
  const text = `${JSON.stringify(members, null, 2)}\n`;
  const file = openSync(`${path}.new`, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
  const folder = openSync(dataDir, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

const isSealed = (value: unknown): value is SealedAccounts =>
  isObject(value) && typeof value.by === "string" && typeof value.value === "string";
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const isNames = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => /^extent-node-\d+$/.test(String(each)));
/** Ports of gRPC and of readiness are this many apart (`plan.ts`). */
const slotsMax = 100;

function isSlots(value: unknown): value is Record<string, number> {
  if (!isObject(value)) return false;
  const slots = Object.values(value);
  return (
    new Set(slots).size === slots.length && slots.every((each) => Number.isInteger(each) && Number(each) >= 0 && Number(each) < slotsMax)
  );
}

function parsed(path: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Told below.
  }
  throw damaged(path, "not a JSON object");
}

/** The record is there and can't be read. A supervisor that runs writes it again. */
export class DamagedRecordError extends StartError {}

const damaged = (path: string, why: string): DamagedRecordError =>
  new DamagedRecordError(
    `${path} is damaged: ${why}. It says how this cluster was started and which extent nodes were decommissioned.\n` +
      "Put it back from a backup; or move it away and start with every flag that the cluster had (docs/formats/cluster-record.md)",
  );
