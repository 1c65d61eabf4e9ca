/** The extent table anew from the extent files: what their headers say, as far as the files bear it out. */
import { type ExtentId, extentId, FailureError, newerFormat } from "@stamp/base";
import { extentContentOffset, type NodeIdentity, type ReplicaMeta, unreadableMeta } from "@stamp/extent";
import type { World } from "@stamp/ports";
import { appendIo } from "../disk/disk-queue.ts";
import { type ExtentFiles, extentPath, extentsFolder } from "../disk/extent-files.ts";
import { walkFile } from "../disk/walk.ts";
import { progress } from "./progress.ts";

/**
 * It is not known whether the bytes in a file were synced: a header says so, but one that is read after a failed sync
 * may not be on the disk.
 */
export async function rebuildTable(world: World, files: ExtentFiles, identity: NodeIdentity): Promise<ReplicaMeta[]> {
  const metas: ReplicaMeta[] = [];
  const found = await extentFileNames(world);
  const now = progress(world);
  for (const [i, { path, id }] of found.entries()) {
    const meta = await metaOf(world, files, identity, path, id);
    if (meta !== undefined) metas.push(meta);
    now(() => world.logger.info("the extent table is rebuilt", { files: i + 1, of: found.length }));
  }
  return metas;
}

/** Returns the names of all extent files; `id`: undefined if the file is not an extent's. */
export async function extentFileNames(world: World): Promise<{ readonly path: string; readonly id: ExtentId | undefined }[]> {
  const found: { path: string; id: ExtentId | undefined }[] = [];
  for (const folder of await world.disk.list(extentsFolder)) {
    for (const name of await world.disk.list(`${extentsFolder}/${folder}`)) {
      const path = `${extentsFolder}/${folder}/${name}`;
      const match = /^([0-9a-f]{14})\.extent$/.exec(name);
      const number = match === null ? 0 : Number.parseInt(match[1] as string, 16);
      if (name.endsWith(".copy")) continue;
      const ours = number > 0 && Number.isSafeInteger(number) && extentPath(extentId(number)) === path;
      found.push({ path, id: ours ? extentId(number) : undefined });
    }
  }
  return found;
}

/** Returns the replica that the file's header describes; undefined if it is none of this disk's. */
export async function metaOf(
  world: World,
  files: ExtentFiles,
  identity: NodeIdentity,
  path: string,
  id: ExtentId | undefined,
): Promise<ReplicaMeta | undefined> {
  if (id === undefined) {
    world.logger.error("a file that is no extent lies among them; it is left alone", { path });
    return undefined;
  }
  const header = await files.readHeader(path);
  if (header.kind === "newer") throw new FailureError(newerFormat(path, header).failure);
  if (header.kind !== "ok") {
    world.logger.error("an extent file has no valid header: the replica is damaged, unless the journal has it from its beginning", {
      path,
      why: header.why,
    });
    return unreadableMeta(id, `its header can't be read: ${header.why}`);
  }
  const { stampId, diskId, meta } = header.value;
  if (stampId !== identity.stampId || diskId !== identity.diskId || meta.extentId !== id) {
    world.logger.error("an extent file is not this disk's; it is left alone", { path, stampId, diskId, extent: meta.extentId });
    return undefined;
  }
  return measured(world, files, meta);
}

async function measured(world: World, files: ExtentFiles, meta: ReplicaMeta): Promise<ReplicaMeta> {
  const { crc32c } = world.digest;
  if (meta.state === "damaged") return meta;
  if (meta.sealedLengthBytes !== undefined) {
    const wanted = extentContentOffset + meta.sealedLengthBytes;
    const size = await files.with(extentPath(meta.extentId), false, (file) => file.sizeBytes());
    return size >= wanted ? meta : { ...meta, state: "damaged", damage: `the file ends at ${size} of ${wanted}` };
  }
  const walk = await walkFile(crc32c, files, meta.extentId, meta.durableBytes, appendIo);
  if (walk.endBytes < meta.durableBytes) {
    return { ...meta, state: "damaged", damage: `blocks end at ${walk.endBytes}, ${meta.durableBytes} were synced` };
  }
  // Later bytes are known to the journal, or belong to an append that never became durable.
  return meta;
}
