/**
 * `stamp metadata backup|show|restore|migrate`: the map of all extents is in one process on one disk, or in etcd. Every extent node keeps
 * copies of it; these commands take one by hand, look at one, put one in the place of a store that was lost, and move the store.
 */
import { rmSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { planCluster, readClusterRecord } from "@stamp/cluster";
import { membersIn } from "@stamp/lock-service";
import { MetadataClient } from "@stamp/metadata-store";
import { inWords, isSystemError, NodeClock } from "@stamp/ports-node";
import type { Command } from "commander";
import { CommandError, checkNothingRuns, closeNewFiles, configOf, exitCodes, withConfig } from "../context.ts";
import { copiesIn, newestCopy } from "../health/newest-copy.ts";
import { bytesText, word } from "../print.ts";
import { withProgress } from "../progress.ts";
import { inspect, make, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { type Environment, type MigratedStore, migrateStore, settingsOf } from "./migrate-metadata.ts";
import { previewRestore, previewText, type RestorePreview } from "./preview-restore.ts";
import { answeredFailure, sourceAt, textOf, verifiedSource } from "./restore-source.ts";
import { type RestorePlan, type RestoreResult, restoreStore } from "./restore-store.ts";

/** Timeout for reading a whole snapshot, in milliseconds. */
const readTimeoutMs = 600_000;

export function addMetadata(program: Command): void {
  const metadata = topLevel(program, "metadata");
  make(metadata, "backup <file>", "write a snapshot of the running stamp's metadata to a file").action(
    async (file: string, _options, command: Command) => {
      const target = await open(file, "wx+", 0o600).catch((error: NodeJS.ErrnoException) => {
        throw new CommandError(error.code === "EEXIST" ? `${file} is there already: give another name` : inWords(error, file));
      });
      try {
        const about = { what: "the lock service takes the snapshot", afterwards: `Nothing goes on, and ${file} was removed.` };
        await withProgress({ ...about, leave: () => rmSync(file, { force: true }) }, (tellProgress) =>
          inspect(command, async (_inspector, transport, lockService) => {
            const metadata = new MetadataClient({ clock: new NodeClock(), transport }, lockService);
            const write = async (bytes: Uint8Array, offsetBytes: number): Promise<void> => {
              if (offsetBytes === 0) await target.truncate(0);
              await target.write(bytes, 0, bytes.length, offsetBytes);
              tellProgress(`${bytesText(offsetBytes + bytes.length)} written to ${file}`);
            };
            answeredFailure(await metadata.readSnapshot(write, readTimeoutMs));
          }),
        );
        await target.sync();
      } catch (error) {
        // The part that was written would be in the way of the next try.
        await target.close();
        await rm(file, { force: true });
        throw isSystemError(error) ? new CommandError(inWords(error, file)) : error;
      }
      await target.close();
      const snapshot = await verifiedSource(file);
      tell(command, snapshot, textOf);
    },
  );
  make(
    metadata,
    "show <file>",
    "what a snapshot holds: one that was written by hand, or of <data>/<extent node>/files/metadata-copies",
  ).action(async (file: string, _options, command: Command) => tell(command, await verifiedSource(file), textOf));
  withConfig(
    metadata
      .command("restore [file]")
      .description(
        "put a copy, or what a lock service still holds if that is newer, in the place of the metadata of a stopped stamp; without a file: the newest here",
      )
      .option("--replace", "move what lock services hold aside, into replaced-<time> of the folder of each")
      .option("--list", "only say which extents that began after the copy come back, and which are lost")
      .option("--json", "for tools"),
    ["dataDir"],
  ).action(async (file: string | undefined, options: { replace?: boolean; list?: boolean }, command: Command) => {
    if (options.list === true) {
      tell(command, await listed(command, file), previewText);
      return;
    }
    const about = {
      what: `reading ${file ?? "what is there"}`,
      afterwards: "Nothing is lost. A stamp whose restore is not finished serves nothing; say it again: ./stamp metadata restore --replace",
    };
    const plan = await restorePlan(command, file, options.replace === true);
    closeNewFiles();
    const restored = await withProgress(about, (tellProgress) => restoreStore(plan, tellProgress));
    tell(command, restored, (done) => restoredText(done, plan));
  });
  withConfig(
    metadata
      .command("migrate")
      .description("move the metadata store of a stopped cluster to etcd, or back, and compare every key (docs/guides/etcd.md)")
      .requiredOption("--to <etcd|leveldb>", "where the metadata shall be")
      .option("--replace", "with --to etcd: a store that is there gives way, and is kept in a folder; after a restore")
      .option("--json", "for tools"),
    ["dataDir"],
  ).action(async ({ to, replace = false }: { to: "etcd" | "leveldb"; replace?: boolean }, command: Command) => {
    if (replace && to !== "etcd") throw new CommandError("--replace: with --to etcd only", exitCodes.usage);
    closeNewFiles();
    tell(command, await migrateStore(lockServiceEnvironments(command).environments[0] as Environment, to, replace), migratedText);
  });
}

const migratedText = ({ to, keys, aside, replaced }: MigratedStore): string =>
  [
    ...(replaced === undefined ? [] : [`what was in etcd before is in ${replaced}`]),
    `${keys} keys are ${to === "etcd" ? "in etcd" : "in the folder of the lock service"}, compared one by one; what was given up is in ${aside}`,
    `now set metadataStore to ${to} (STAMP_METADATA_STORE), and start the stamp`,
  ].join("\n");

/** Says what a restore of the copy, or of the newest one here, would bring back, by the folders of a stopped cluster. */
async function listed(command: Command, file: string | undefined): Promise<RestorePreview> {
  const config = configOf(command);
  checkNothingRuns(config, `the cluster of ${config.dataDir} runs: stop it first, its extent nodes have their disks open`);
  const path = file ?? newestCopy({ processes: [], copies: await copiesIn(config.dataDir) })?.path;
  if (path === undefined) throw new CommandError(`there is no copy of the metadata on the extent nodes of ${config.dataDir}`);
  const about = { what: "reading the disks of the extent nodes", afterwards: "Nothing was changed." };
  return withProgress(about, async (tellProgress) => {
    const source = await sourceAt(path, tellProgress);
    try {
      return await source.withSnapshot((snapshot) => previewRestore(config, snapshot, tellProgress), tellProgress);
    } finally {
      await source.close();
    }
  });
}

interface CommandPlan extends RestorePlan {
  readonly overEtcd: boolean;
  /** Command that starts the stamp. */
  readonly start: string;
}

async function restorePlan(command: Command, file: string | undefined, replace: boolean): Promise<CommandPlan> {
  const { environments, dataDir } = lockServiceEnvironments(command);
  const settings = environments.map(settingsOf);
  const [one] = settings as [(typeof settings)[number]];
  const members = one.metadataStore === "replicated" ? answeredFailure(membersIn(one.members)) : new Map<string, string>();
  const copies = file === undefined && dataDir !== undefined ? await copiesIn(dataDir) : [];
  return {
    places: settings.map((each) => ({ name: each.name, folder: resolve(each.dataDir) })),
    first: [...members.keys()][0] ?? one.name,
    members: members.size,
    file: file ?? newestCopy({ processes: [], copies })?.path,
    replace,
    overEtcd: one.metadataStore === "etcd",
    start: dataDir === undefined ? "start the stamp" : `start the stamp: ./stamp up -d --data ${word(dataDir)}`,
  };
}

function restoredText(done: RestoreResult, { first, overEtcd, start }: CommandPlan): string {
  const aside = done.aside.map((folder) => `what was there is in ${folder}`);
  const from = `as of transaction ${done.version} (${done.takenAt}), from ${done.member === undefined ? done.file : `the store of ${done.member}`}`;
  const next = overEtcd
    ? "the stamp is over etcd: put this store in the place of the one there: ./stamp metadata migrate --to etcd --replace; then"
    : "now";
  return [
    ...(done.wentOn ? ["a restore was begun before and not finished: it is finished now"] : []),
    ...aside,
    done.restoredTo === undefined
      ? `this lock service holds nothing any more, and takes everything from the others: restore the same copy at ${first}, then start all of them`
      : `restored: the metadata of stamp ${done.stampId} ${from}; ${next} ${start}, and look: ./stamp fsck, ./stamp extent quarantine list`,
  ].join("\n");
}

/**
 * Environments that the lock services of this cluster, or of this host, are started with; they name their folders. In a container (STAMP_SERVICE)
 * that is the container's own; elsewhere they are planned for a cluster whose supervisor does not run. `dataDir`: folder of that cluster.
 */
function lockServiceEnvironments(command: Command): { readonly environments: readonly Environment[]; readonly dataDir?: string } {
  const { STAMP_SERVICE: service = "", STAMP_DATA_DIR: ownFolder = "" } = process.env;
  if (service === "lock-service" && ownFolder !== "") return { environments: [process.env] };
  if (service !== "") {
    throw new CommandError(
      `this is the container of ${service}: do it in that of the lock service, docker compose run --rm --no-deps lock-service-1 …`,
      exitCodes.usage,
    );
  }
  const config = configOf(command);
  checkNothingRuns(config, `the cluster of ${config.dataDir} runs: stop it first, its lock service has the store open`);
  const planned = planCluster(config, readClusterRecord(config.dataDir)).processes.filter(({ role }) => role === "lock-service");
  if (planned.length === 0) throw new CommandError("the configuration has no lock service");
  return { environments: planned.map(({ environment }) => environment), dataDir: config.dataDir };
}
