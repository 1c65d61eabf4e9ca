/** Shared by every command: where the repository is, what was asked for, how it ends. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  type ClusterConfig,
  type ClusterConfigKey,
  type ClusterStatus,
  checkFlag,
  clusterConfigSchema,
  configKeys,
  control,
  DamagedRecordError,
  DataFolder,
  flagName,
  homeFolder,
  loadConfig,
  olderKey,
  type ProcessIdentity,
  repositoryRoot,
} from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import { type Command, Option } from "commander";
import { withoutRecords } from "./cluster/known-record.ts";
import { plannedCluster } from "./cluster/planned-cluster.ts";
import { CommandError, exitCodes } from "./exit.ts";
import { warn } from "./say.ts";
import { kindOf, type ValueKind } from "./values.ts";

export { CommandError, exitCodes };

export const root: string = repositoryRoot;

/** Keys of the configuration whose flag a command takes. A command may have a flag of its own in place of one. */
const flagged = new WeakMap<Command, readonly string[]>();

/** Adds `--config FILE` and the flags of these configuration keys (all when none are given). */
export function withConfig(command: Command, keys: readonly string[] = configKeys): Command {
  command.addOption(
    new Option("--config <file>", "configuration file (env: STAMP_CONFIG; default: stamp.config.json here or in the repository)"),
  );
  const data = new Option("--data <dir>", `${clusterConfigSchema.shape.dataDir.description} (env: STAMP_DATA_DIR; default: .stamp)`);
  data.argParser(keyKind("dataDir", "--data"));
  if (!keys.includes("dataDir")) data.hideHelp();
  command.addOption(data);
  const free = configKeys.filter((key) => !command.options.some(({ long }) => long === flagName(key)));
  flagged.set(command, free);
  for (const key of free) {
    const schema = clusterConfigSchema.shape[key];
    const option = new Option(`${flagName(key)} <value>`, schema.description).argParser(keyKind(key));
    // Help and guides say `--data` and `--init`; the name by the rule of all keys is taken, too.
    if (!keys.includes(key) || key === "dataDir" || key === "initFile") option.hideHelp();
    command.addOption(option);
  }
  const bind = new Option(`${flagName(olderKey)} <value>`, "the same as --http-bind; an address of loopback also as --internal-bind");
  bind.argParser(keyKind("httpBind", flagName(olderKey)));
  if (!keys.includes("httpBind")) bind.hideHelp();
  command.addOption(bind);
  return command;
}

/** Returns the kind of values that a flag of the configuration takes. */
function keyKind(key: ClusterConfigKey, flag = flagName(key)): ValueKind {
  const check = (text: string): undefined => void checkFlag(key, text, flag);
  return kindOf("", check, { key });
}

/** Returns the configuration of a command, with `values` in place of its flags. */
export const flaggedConfig = (command: Command, values: Partial<ClusterConfig>): ClusterConfig => loadFor(command, values);

/** `withoutRecord`: for commands that must work beside a damaged `cluster.json`, and need nothing of it. */
export function configOf(command: Command, { withoutRecord = false }: { readonly withoutRecord?: boolean } = {}): ClusterConfig {
  return loadFor(command, {}, withoutRecord);
}

/** Time within which a supervisor has written its files again, in milliseconds: it looks at them every 2 s. */
const writtenAgainMs = 6_000;
const lookAgainMs = 200;

/**
 * While a cluster runs its record is in its supervisor, which writes a damaged one again: the command waits for that, and asks
 * without the record if it can't be written.
 */
function loadFor(command: Command, values: Partial<ClusterConfig>, withoutRecord = false): ClusterConfig {
  const endMs = performance.now() + writtenAgainMs;
  for (;;) {
    try {
      return loadOnce(command, values, withoutRecord);
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error;
      const without = loadOnce(command, values, true);
      if (new DataFolder(without.dataDir).running().supervisor === undefined) throw error;
      if (withoutRecords.has(without.dataDir)) return without;
      if (performance.now() > endMs) {
        withoutRecords.add(without.dataDir);
        warn(`stamp: ${error.message}\nThe supervisor has it in memory and can't write it again; this command goes on without it.`);
        return without;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lookAgainMs);
    }
  }
}

function loadOnce(command: Command, values: Partial<ClusterConfig>, withoutRecord: boolean): ClusterConfig {
  const { config, data, ...options } = command.opts<Record<string, unknown>>();
  const taken = [...(flagged.get(command) ?? []), olderKey];
  const flags = Object.fromEntries(Object.entries(options).filter(([key]) => taken.includes(key)));
  return loadConfig({
    file: (config as string | undefined) ?? (process.env.STAMP_CONFIG || undefined),
    directory: process.cwd(),
    root: homeFolder,
    environment: process.env,
    withoutRecord,
    flags: { ...flags, ...(data === undefined ? {} : { dataDir: data }), ...values },
  });
}

/** Returns the refusal of a command on a stopped cluster whose folder has serving processes. */
export const orphansRun = ({ dataDir }: ClusterConfig, orphans: readonly ProcessIdentity[]): string =>
  `the supervisor of ${dataDir} is gone, but ${orphans.length} of its processes still run (pid ${orphans
    .map(({ pid }) => pid)
    .join(", ")}). Stop them: ./stamp down; or start it again, which replaces them: ./stamp up`;

/** Throws while anything runs on the configured data folder. */
export function checkNothingRuns(config: ClusterConfig, otherwise: string): void {
  const { supervisor, orphans } = new DataFolder(config.dataDir).running();
  if (orphans.length > 0) throw new CommandError(orphansRun(config, orphans));
  if (supervisor !== undefined) throw new CommandError(otherwise, exitCodes.usage);
}

/**
 * For commands that write into the data folder of a stopped cluster. Libraries make files of their own there (LevelDB
 * its lock), and nobody else on the machine reads what a stamp stores.
 */
export function closeNewFiles(): void {
  process.umask(0o077);
}

/** Returns the cluster that runs on the configured data folder; with a topology, the stamp of all its hosts, whether this one runs or not. */
export async function runningCluster(config: ClusterConfig): Promise<ClusterStatus> {
  if (config.topology !== undefined) return plannedCluster(config);
  const folder = new DataFolder(config.dataDir);
  const { supervisor, orphans } = folder.running();
  if (orphans.length > 0) throw new CommandError(orphansRun(config, orphans));
  if (supervisor === undefined && existsSync(join(config.dataDir, "stamps.json")))
    throw new CommandError(
      `${config.dataDir} has several stamps: name one, e.g. --data ${join(config.dataDir, "north-1")}`,
      exitCodes.usage,
    );
  if (supervisor === undefined)
    throw new CommandError(`no cluster runs on ${config.dataDir} (start one: ./stamp up)`, exitCodes.notRunning);
  try {
    return await control(folder.control, { do: "status" });
  } catch (error) {
    throw new CommandError(`the supervisor of ${config.dataDir} can't be reached: ${inWords(error)}`);
  }
}
