/** Newest copies of the metadata on extent nodes, while the cluster runs. */
import { basename } from "node:path";
import { MetadataClient } from "@stamp/metadata-store";
import { NodeClock } from "@stamp/ports-node";
import type { DrillTarget } from "../target.ts";

/** Nodes copy the metadata every 30 s. */
const copyWithinMs = 300_000;
/** Time without a transaction before a copy is taken for one of all, in ms: to stop a container takes a second. */
const quietMs = 3_000;

export interface MetadataCopy {
  readonly node: string;
  /** Path in the folder of the node. */
  readonly path: string;
  /** Number of the last transaction that the copy has. */
  readonly version: number;
}

/** Waits until the newest copy on a node has every transaction, and returns it: what is made after a copy is lost by a restore. */
export async function copyOfAllMetadata(target: DrillTarget): Promise<MetadataCopy> {
  const metadata = new MetadataClient({ clock: new NodeClock(), transport: target.transport }, (await target.status()).lockService);
  const endMs = performance.now() + copyWithinMs;
  let known = -1;
  let sinceMs = performance.now();
  while (performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    const position = await metadata.position(1_000);
    if (!position.ok) continue;
    if (position.value.version !== known) sinceMs = performance.now();
    known = position.value.version;
    if (performance.now() - sinceMs < quietMs) continue;
    const newest = await newestCopy(target);
    if (newest !== undefined && newest.version >= known) return newest;
  }
  throw new Error(`no copy of the metadata had every transaction within ${copyWithinMs / 1_000} s`);
}

async function newestCopy(target: DrillTarget): Promise<MetadataCopy | undefined> {
  const nodes = (await target.status()).processes.flatMap(({ role, name }) => (role === "extent-node" ? [name] : []));
  const copies = await Promise.all(
    nodes.map(async (node): Promise<MetadataCopy[]> => {
      const { file } = await target.hand(node, { do: "newest-copy" });
      return file === undefined ? [] : [{ node, path: file.path, version: Number.parseInt(basename(file.path), 10) }];
    }),
  );
  return copies.flat().sort((a, b) => b.version - a.version)[0];
}
