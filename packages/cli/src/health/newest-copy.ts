/**
 * The newest copy of the metadata on the extent nodes, and the commands that put it back. A person whose lock service has lost its disk
 * needs both, and must not be led to make a new stamp beside the data of the old one.
 *
 * Each node tells its newest copy. The nodes of a data folder are read from the disk as well, because they may not run.
 */

import { readdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { word } from "../print.ts";
import { seconds } from "./counted.ts";
import type { MetadataCopy } from "./facts.ts";
import { factAt, numberAt, type StampFacts } from "./facts.ts";

/** Returns the newest copy that can be read of each extent node whose disk is in the data folder. */
export async function copiesIn(dataDir: string): Promise<MetadataCopy[]> {
  const nodes = namesIn(dataDir).filter((name) => /^extent-node-\d+$/.test(name));
  const found = await Promise.all(nodes.map((node) => newestIn(node, join(dataDir, node, "files", "metadata-copies"))));
  return found.filter((each) => each !== undefined);
}

async function newestIn(node: string, folder: string): Promise<MetadataCopy | undefined> {
  const names = namesIn(folder).filter((name) => name.endsWith(".snapshot"));
  // Names sort as versions do.
  for (const name of names.sort().reverse()) {
    const path = join(folder, name);
    const copy = await headerOf(path);
    if (copy !== undefined) return { node, path, ...copy };
  }
  return undefined;
}

/** Returns the names in a folder; none if it is absent or can't be read: others may have the newest copy. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Returns what the head of a copy says, undefined if it can't be read. Only `restore` reads all of it. */
async function headerOf(path: string): Promise<Pick<MetadataCopy, "version" | "takenAtMs"> | undefined> {
  // Loaded here, because a healthy stamp needs none of it.
  const [{ openSnapshot }, { NodeDigest }] = await Promise.all([import("@stamp/metadata-store"), import("@stamp/ports-node")]);
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  const digest = new NodeDigest();
  const source = {
    sizeBytes: async (): Promise<number> => (await file.stat()).size,
    read: async (offsetBytes: number, lengthBytes: number): Promise<Uint8Array> => {
      const { buffer, bytesRead } = await file.read(new Uint8Array(lengthBytes), 0, lengthBytes, offsetBytes);
      return buffer.subarray(0, bytesRead);
    },
  };
  try {
    const opened = await openSnapshot(source, (bytes, seed) => digest.crc32c(bytes, seed));
    return opened.ok ? { version: opened.value.version, takenAtMs: opened.value.takenAtMs } : undefined;
  } finally {
    await file.close();
  }
}

/** Returns the newest of all copies that nodes tell and that the data folder holds; undefined if there is none. */
export function newestCopy({ processes, copies }: Pick<StampFacts, "processes" | "copies">): MetadataCopy | undefined {
  const told = processes.flatMap(({ name, answer }): MetadataCopy[] => {
    const path = String(factAt(answer?.facts, "metadataCopy.path") ?? "");
    if (path === "") return [];
    const at = (key: string): number => numberAt(answer?.facts, `metadataCopy.${key}`);
    return [{ node: name, path, version: at("version"), takenAtMs: at("takenAtMs") }];
  });
  return [...copies, ...told].reduce<MetadataCopy | undefined>(
    (best, each) => (best && best.version >= each.version ? best : each),
    undefined,
  );
}

/** Returns a copy's node, path, version and age as text. */
export function copyText({ node, path, version, takenAtMs }: MetadataCopy, nowMs: number): string {
  return `the newest copy is at ${node}: ${path}, up to transaction ${version}, taken ${ageText(nowMs - takenAtMs)} ago`;
}

function ageText(ms: number): string {
  const hours = ms / 3_600_000;
  if (hours >= 48) return `${Math.floor(hours / 24)} days`;
  if (hours >= 2) return `${Math.floor(hours)} hours`;
  return ms >= 120_000 ? `${Math.floor(ms / 60_000)} min` : seconds(Math.max(ms, 0));
}

/** Stores that a copy can be restored into: one lock service, several that replicate, or etcd. */
export type CopyTarget = "alone" | "replicated" | "etcd";

/**
 * The commands that put a copy back, one line for a shell. `dataDir`: undefined where the processes run in containers. `lockServices`: names of
 * those that replicate the metadata, the first one of `members` first; each of them gives its store up in its own container. Into etcd the restored
 * store goes from the folder of the lock service.
 */
export function restoreCommand(
  { node, path }: MetadataCopy,
  dataDir: string | undefined,
  target: CopyTarget,
  lockServices: readonly string[],
): string {
  if (dataDir !== undefined) {
    const at = `--data ${word(dataDir)}`;
    const toEtcd = target === "etcd" ? ` && ./stamp ${migrateCommand} ${at}` : "";
    return `./stamp down ${at}; ./stamp metadata restore --replace ${word(path)} ${at}${toEtcd} && ./stamp up -d ${at}`;
  }
  const run = "docker compose run --rm --no-deps";
  const [first = "lock-service-1", ...others] = target === "replicated" ? lockServices : [];
  // The engine takes a relative path for the name of a volume.
  const restore = (name: string): string => `${run} -v "$PWD/copy.snapshot:/copy:ro" ${name} stamp metadata restore --replace /copy`;
  return [
    `docker compose cp ${node}:${path} copy.snapshot`,
    "chmod a+r copy.snapshot",
    "docker compose stop",
    ...others.map(restore),
    restore(first),
    ...(target === "etcd" ? ["docker compose up -d --wait etcd-1 etcd-2 etcd-3", `${run} lock-service-1 stamp ${migrateCommand}`] : []),
    "docker compose up -d --wait",
  ].join(" && ");
}

const migrateCommand = "metadata migrate --to etcd --replace";
