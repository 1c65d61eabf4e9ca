/** The identity of this node's disk: read, or written once when an empty disk is formatted for a stamp. */
import { type Outcome, ok, refused } from "@stamp/base";
import { decodeNodeIdentity, encodeNodeIdentity, type NodeIdentity } from "@stamp/extent";
import { uuid, type World } from "@stamp/ports";
import { extentsFolder } from "./extent-files.ts";
import { journalFolder } from "./journal.ts";

export const identityFile = "node-identity";

/** Undefined on an empty disk. A disk that holds data but no readable identity is refused: it is nobody's to guess. */
export async function readIdentity(world: World, nodeId: string): Promise<Outcome<NodeIdentity | undefined>> {
  const content = await world.disk.readWhole(identityFile);
  if (content === undefined) {
    const extents = await world.disk.list(extentsFolder);
    const segments = await world.disk.list(journalFolder);
    if (extents.length + segments.length === 0) return { ok: true, value: undefined };
    return refused("dataLoss", "damaged", `the disk holds extents but no file ${identityFile}`);
  }
  const identity = decodeNodeIdentity(world.digest.crc32c, content);
  if (identity.kind === "invalid") return refused("dataLoss", "damaged", `the file ${identityFile} is damaged: ${identity.why}`);
  if (identity.value.nodeId !== nodeId) {
    return refused("failedPrecondition", "wrongDisk", `the disk is that of node ${identity.value.nodeId}, this process is ${nodeId}`);
  }
  return ok(identity.value);
}

export async function formatDisk(world: World, nodeId: string, stampId: string): Promise<NodeIdentity> {
  const identity = { stampId, nodeId, diskId: uuid(world.random) };
  await world.disk.writeAtomically(identityFile, encodeNodeIdentity(world.digest.crc32c, identity));
  return identity;
}
