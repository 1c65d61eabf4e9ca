/**
 * `stamp metadata backup|show|restore`: the map of all extents is in one process on one disk. Every extent node keeps copies of it; these
 * commands take one by hand, look at one, and put one in the place of a store that was lost.
 */
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Outcome } from "@stamp/base";
import { DataFolder, planCluster } from "@stamp/cluster";
import { restoreMetadata, whileStopped } from "@stamp/lock-service";
import { decodeSnapshot, MetadataClient, type MetadataSnapshot } from "@stamp/metadata-store";
import { silentLogger } from "@stamp/ports";
import { inWords, NodeClock, NodeDigest, nodeWorld } from "@stamp/ports-node";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "./context.ts";
import { inspect, make, tell } from "./running.ts";

const readTimeoutMs = 60_000;

export function addMetadata(program: Command): void {
  const metadata = program.command("metadata").description("the metadata store: streams, extents, leases, epochs");
  make(metadata, "backup <file>", "write a snapshot of the running stamp's metadata to a file").action(
    async (file: string, _options, command: Command) => {
      const bytes = await inspect(command, async (_inspector, transport, lockService) => {
        const metadata = new MetadataClient({ clock: new NodeClock(), transport }, lockService);
        return answered(await metadata.snapshot(readTimeoutMs))?.bytes;
      });
      if (bytes === undefined) throw new CommandError("the lock service gave no snapshot");
      const snapshot = opened(bytes, file);
      await writeFile(file, bytes, { flag: "wx", flush: true }).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code === "EEXIST") throw new CommandError(`${file} is there already: give another name`);
        // What was written of it would be in the way of the next try.
        if (error.syscall !== "open") await rm(file, { force: true });
        throw new CommandError(inWords(error, file));
      });
      tell(command, about(snapshot, file), textOf);
    },
  );
  make(
    metadata,
    "show <file>",
    "what a snapshot holds: one that was written by hand, or of <data>/<extent node>/files/metadata-copies",
  ).action(async (file: string, _options, command: Command) => tell(command, about(opened(await contentOf(file), file), file), textOf));
  withConfig(
    metadata
      .command("restore <file>")
      .description("put a snapshot in the place of the metadata store of a stopped cluster, whose own is lost or damaged")
      .option("--replace", "move a store that is there aside, to metadata.replaced-<time>")
      .option("--json", "for tools"),
    ["dataDir"],
  ).action(async (file: string, options: { replace?: boolean }, command: Command) => {
    const dataDir = lockServiceFolder(command);
    const snapshot = opened(await contentOf(file), file);
    const folder = join(dataDir, "stores", "metadata");
    const world = nodeWorld({ dataDir, name: "metadata-restore", logger: silentLogger });
    const keys = answered(
      await whileStopped(world, async () => {
        if (await exists(folder)) await moveAside(folder, options.replace === true);
        return restoreMetadata(world, snapshot);
      }).catch((error: Error) => {
        throw error instanceof CommandError ? error : new CommandError(inWords(error));
      }),
    );
    tell(command, { ...about(snapshot, file), restoredTo: folder, keys }, (done) =>
      [
        textOf(done),
        `restored to ${folder}: ${keys} keys, every epoch and extent number raised beyond what may have been given since`,
        "start the cluster, then: ./stamp fsck, and ./stamp extent quarantine list for extents made after the snapshot",
      ].join("\n"),
    );
  });
}

/**
 * Where the lock service of this cluster keeps everything. In a container (STAMP_SERVICE) that is the container's own folder; elsewhere a
 * folder below that of a cluster whose supervisor does not run.
 */
function lockServiceFolder(command: Command): string {
  const { STAMP_SERVICE: service = "", STAMP_DATA_DIR: ownFolder = "" } = process.env;
  if (service === "lock-service" && ownFolder !== "") return resolve(ownFolder);
  if (service !== "") {
    throw new CommandError(
      `this is the container of ${service}: restore in that of the lock service, docker compose run --rm --no-deps lock-service-1 …`,
      exitCodes.usage,
    );
  }
  const config = configOf(command);
  if (new DataFolder(config.dataDir).supervisor() !== undefined) {
    throw new CommandError(`the cluster of ${config.dataDir} runs: stop it first, its lock service has the store open`, exitCodes.usage);
  }
  const lockService = planCluster(config).processes.find(({ role }) => role === "lock-service");
  if (!lockService) throw new CommandError("the configuration has no lock service");
  return lockService.dataDir;
}

async function moveAside(folder: string, replace: boolean): Promise<void> {
  if (!replace) throw new CommandError(`${folder} is there: give --replace to move it aside`);
  const aside = `${folder}.replaced-${Date.now()}`;
  await rename(folder, aside);
  console.error(`what was there is in ${aside}`);
}

interface About {
  readonly file: string;
  readonly stampId: string;
  readonly version: number;
  readonly takenAt: string;
  readonly entries: number;
}

const about = ({ stampId, version, takenAtMs, entries }: MetadataSnapshot, file: string): About => ({
  file,
  stampId,
  version,
  takenAt: new Date(takenAtMs).toISOString(),
  entries: entries.length,
});

const textOf = ({ file, stampId, version, takenAt, entries }: About): string =>
  `${file}: stamp ${stampId}, as of transaction ${version} (${takenAt}), ${entries} entries`;

function opened(bytes: Uint8Array, file: string): MetadataSnapshot {
  const digest = new NodeDigest();
  const snapshot = decodeSnapshot(bytes, (content) => digest.crc32c(content));
  if (snapshot.ok) return snapshot.value;
  throw new CommandError(`${file}: ${snapshot.failure.message}`);
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

const contentOf = (file: string): Promise<Uint8Array> =>
  readFile(file).then(
    (content) => new Uint8Array(content),
    (error: Error) => {
      throw new CommandError(inWords(error, file));
    },
  );

function answered<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new CommandError(outcome.failure.message);
}
