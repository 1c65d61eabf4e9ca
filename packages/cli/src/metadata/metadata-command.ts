/**
 * `stamp metadata backup|show|restore|migrate`: the map of all extents is in one process on one disk, or in etcd. Every extent node keeps
 * copies of it; these commands take one by hand, look at one, put one in the place of a store that was lost, and move the store.
 */
import { rmSync } from "node:fs";
import { open, rename, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Outcome } from "@stamp/base";
import { planCluster } from "@stamp/cluster";
import { restoreMetadata, whileStopped } from "@stamp/lock-service";
import {
  MetadataClient,
  type OpenedSnapshot,
  openSnapshot,
  type SeededChecksum,
  type SnapshotSource,
  verifySnapshot,
} from "@stamp/metadata-store";
import { silentLogger } from "@stamp/ports";
import { inWords, isSystemError, NodeClock, NodeDigest, nodeWorld } from "@stamp/ports-node";
import type { Command } from "commander";
import { CommandError, checkNothingRuns, closeNewFiles, configOf, exitCodes, withConfig } from "../context.ts";
import { bytesText } from "../print.ts";
import { type TellProgress, withProgress } from "../progress.ts";
import { inspect, make, tell } from "../running.ts";
import { warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { type MigratedStore, migrateStore } from "./migrate-metadata.ts";
import { previewRestore, previewText, type RestorePreview } from "./preview-restore.ts";

/** For a whole snapshot, however large. */
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
            answered(await metadata.readSnapshot(write, readTimeoutMs));
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
      const snapshot = await verified(file);
      tell(command, snapshot, textOf);
    },
  );
  make(
    metadata,
    "show <file>",
    "what a snapshot holds: one that was written by hand, or of <data>/<extent node>/files/metadata-copies",
  ).action(async (file: string, _options, command: Command) => tell(command, await verified(file), textOf));
  withConfig(
    metadata
      .command("restore <file>")
      .description("put a snapshot in the place of the metadata store of a stopped cluster, whose own is lost or damaged")
      .option("--replace", "move a store that is there aside, to metadata.replaced-<time>")
      .option("--list", "only say which extents that began after the snapshot come back, and which are lost")
      .option("--json", "for tools"),
    ["dataDir"],
  ).action(async (file: string, options: { replace?: boolean; list?: boolean }, command: Command) => {
    if (options.list === true) {
      tell(command, await listed(command, file), previewText);
      return;
    }
    const environment = lockServiceEnvironment(command);
    const folder = resolve(environment.STAMP_DATA_DIR ?? "");
    const overEtcd = environment.STAMP_METADATA_STORE === "etcd";
    const about = {
      what: `reading ${file}`,
      afterwards: `A store that is not complete is never served. Say it again with --replace: ./stamp metadata restore --replace ${file}`,
    };
    const restored = await withProgress(about, (tellProgress) => restoreStore(folder, file, options.replace === true, tellProgress));
    tell(command, restored, (done) =>
      [
        textOf(done),
        `restored to ${done.restoredTo}: ${done.keys} keys, every epoch and extent number raised beyond what may have been given since`,
        ...(overEtcd
          ? ["the stamp is over etcd: put this store in the place of the one there: ./stamp metadata migrate --to etcd --replace"]
          : []),
        "start the cluster, then: ./stamp fsck, and for extents made after the snapshot: ./stamp extent quarantine list",
      ].join("\n"),
    );
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
    tell(command, await migrateStore(lockServiceEnvironment(command), to, replace), migratedText);
  });
}

const migratedText = ({ to, keys, aside, replaced }: MigratedStore): string =>
  [
    ...(replaced === undefined ? [] : [`what was in etcd before is in ${replaced}`]),
    `${keys} keys are ${to === "etcd" ? "in etcd" : "in the folder of the lock service"}, compared one by one; what was given up is in ${aside}`,
    `now set metadataStore to ${to} (STAMP_METADATA_STORE), and start the stamp`,
  ].join("\n");

/** Says what a restore of the snapshot would bring back, by the folders of a stopped cluster. */
async function listed(command: Command, file: string): Promise<RestorePreview> {
  const config = configOf(command);
  checkNothingRuns(config, `the cluster of ${config.dataDir} runs: stop it first, its extent nodes have their disks open`);
  await verified(file);
  const about = { what: "reading the disks of the extent nodes", afterwards: "Nothing was changed." };
  return withProgress(about, (tellProgress) => withSnapshot(file, (snapshot) => previewRestore(config, snapshot, tellProgress)));
}

/** Puts a snapshot in the place of the metadata store in the folder of a stopped lock service; `replace` moves a store that is there aside. */
async function restoreStore(dataDir: string, file: string, replace: boolean, tellProgress: TellProgress = () => {}): Promise<Restored> {
  closeNewFiles();
  const about = await verified(file, (how) => tellProgress(`checking ${file}: ${how}`));
  const folder = join(dataDir, "stores", "metadata");
  const world = nodeWorld({ dataDir, name: "metadata-restore", logger: silentLogger });
  const keys = answered(
    await whileStopped(world, async () => {
      if (await exists(folder)) await moveAside(folder, replace);
      return withSnapshot(
        file,
        (snapshot) => restoreMetadata(world, snapshot),
        // It is read twice: once for what can't be read, once to be written.
        (how) => tellProgress(`writing the store: ${how} of the snapshot, in two rounds`),
      );
    }).catch((error: Error) => {
      throw error instanceof CommandError ? error : new CommandError(inWords(error));
    }),
  );
  return { ...about, restoredTo: folder, keys };
}

/**
 * Environment that the lock service of this cluster is started with; it names its folder. In a container (STAMP_SERVICE) that is the
 * container's own; elsewhere it is planned for a cluster whose supervisor does not run.
 */
function lockServiceEnvironment(command: Command): Readonly<Record<string, string | undefined>> {
  const { STAMP_SERVICE: service = "", STAMP_DATA_DIR: ownFolder = "" } = process.env;
  if (service === "lock-service" && ownFolder !== "") return process.env;
  if (service !== "") {
    throw new CommandError(
      `this is the container of ${service}: do it in that of the lock service, docker compose run --rm --no-deps lock-service-1 …`,
      exitCodes.usage,
    );
  }
  const config = configOf(command);
  checkNothingRuns(config, `the cluster of ${config.dataDir} runs: stop it first, its lock service has the store open`);
  const lockService = planCluster(config).processes.find(({ role }) => role === "lock-service");
  if (!lockService) throw new CommandError("the configuration has no lock service");
  return lockService.environment;
}

async function moveAside(folder: string, replace: boolean): Promise<void> {
  if (!replace) throw new CommandError(`${folder} is there: give --replace to move it aside`);
  const aside = `${folder}.replaced-${Date.now()}`;
  await rename(folder, aside);
  warn(`what was there is in ${aside}`);
}

interface About {
  readonly file: string;
  readonly stampId: string;
  readonly version: number;
  readonly takenAt: string;
  readonly entries: number;
}

interface Restored extends About {
  /** Folder of the store. */
  readonly restoredTo: string;
  readonly keys: number;
}

const textOf = ({ file, stampId, version, takenAt, entries }: About): string =>
  `${file}: stamp ${stampId}, as of transaction ${version} (${takenAt}), ${entries} entries`;

const checksum: SeededChecksum = (bytes, seed) => new NodeDigest().crc32c(bytes, seed);

/** Every byte of it was read and is intact. */
async function verified(file: string, tellProgress?: TellProgress): Promise<About> {
  const { stampId, version, takenAtMs, count } = await withFile(
    file,
    async (source) => {
      const snapshot = await verifySnapshot(source, checksum);
      if (snapshot.ok) return snapshot.value;
      throw new CommandError(`${file}: ${snapshot.failure.message}`);
    },
    tellProgress,
  );
  return { file, stampId, version, takenAt: new Date(takenAtMs).toISOString(), entries: count };
}

const withSnapshot = <T>(file: string, work: (snapshot: OpenedSnapshot) => Promise<T>, tellProgress?: TellProgress): Promise<T> =>
  withFile(file, async (source) => work(answered(await openSnapshot(source, checksum))), tellProgress);

async function withFile<T>(path: string, work: (source: SnapshotSource) => Promise<T>, tellProgress: TellProgress = () => {}): Promise<T> {
  const file = await open(path).catch((error: Error) => {
    throw new CommandError(inWords(error, path));
  });
  try {
    const { size } = await file.stat();
    return await work({
      sizeBytes: async () => size,
      read: async (offsetBytes, lengthBytes) => {
        tellProgress(`${bytesText(offsetBytes)} of ${bytesText(size)}`);
        const { buffer, bytesRead } = await file.read(new Uint8Array(lengthBytes), 0, lengthBytes, offsetBytes);
        return buffer.subarray(0, bytesRead);
      },
    });
  } finally {
    await file.close();
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

function answered<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new CommandError(outcome.failure.message);
}
