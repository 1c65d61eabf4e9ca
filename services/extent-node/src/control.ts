/**
 * Commands of the stream manager: create, fence, seal, delete (copies: copy-extent.ts). Each checks the term (and makes a raised one durable), the disk it
 * was meant for, and is durable in the journal before it is answered. All are idempotent.
 */
import { extentId, extentVersion, type Outcome, ok, ownerEpoch, refused } from "@stamp/base";
import { BlockIndex, encodeMeta, encodeSealBody, Replica, type ReplicaMeta } from "@stamp/extent";
import {
  type CreateExtentRequest,
  type DeleteExtentRequest,
  type FenceExtentRequest,
  fromWire,
  type SealExtentRequest,
  toWire,
} from "@stamp/wire";
import { creationOf, findOf, isOther } from "./creations.ts";
import { appendIo } from "./disk/disk-queue.ts";
import { extentPath } from "./disk/extent-files.ts";
import { LocalExtent } from "./disk/local-extent.ts";
import { markFormat } from "./format-marks.ts";
import { journalRecord, type Node, unknownExtent } from "./node.ts";
import { checksumOf, copyInto } from "./repair/copier.ts";

const nothing = new Uint8Array(0);
const replicasMax = 16;

export async function createExtent(node: Node, request: CreateExtentRequest): Promise<Outcome<Record<string, never>>> {
  const id = extentId(fromWire(request.extentId));
  if (request.stampId !== node.identity.stampId) {
    return refused("failedPrecondition", "wrongStamp", `this disk belongs to stamp ${node.identity.stampId}, not to ${request.stampId}`);
  }
  const self = request.replicas.find((replica) => replica.nodeId === node.identity.nodeId);
  if (id === 0 || self === undefined || request.replicas.length > replicasMax) {
    return refused("invalidArgument", "badRequest", `extent ${id}: this node is not among its ${request.replicas.length} replicas`);
  }
  const other = node.otherDisk(self.diskId);
  if (other !== undefined) return other;
  const creation = creationOf(request);
  // Before the term is compared: nothing may come between that and what the command does.
  const marked = await markFormat(node.world, "extent", creation);
  if (!marked.ok) return marked;
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  const meta: ReplicaMeta = {
    extentId: id,
    version: extentVersion(fromWire(request.version)),
    ownerEpoch: ownerEpoch(fromWire(request.ownerEpoch)),
    state: "open",
    fenced: false,
    restarted: false,
    sealedLengthBytes: undefined,
    checksum: undefined,
    durableBytes: 0,
    committedBytes: 0,
    appliedLsn: 0,
    replicas: request.replicas.map(({ nodeId, address, diskId }) => ({ nodeId, address, diskId })),
    damage: "",
    creation,
  };
  // It would take the place of the new replica when it ends.
  if (node.copyJobs.runs(id)) return refused("failedPrecondition", "extentStale", `a copy of an extent ${id} is being made here`);
  const held = node.find(id);
  if (held !== undefined) {
    const { replica } = held;
    await node.journal.drained();
    // The same create, again. Nobody appends before every create was answered: bytes are those of an earlier extent with this number.
    const same = replica.ownerEpoch === meta.ownerEpoch && replica.version === meta.version && replica.endBytes === 0;
    if (replica.state === "open" && same && !isOther(node, replica, request)) return ok({});
    return refused("failedPrecondition", "extentStale", `extent ${id} is here already and ${replica.state}`);
  }
  if (!node.takesExtents) {
    return refused("resourceExhausted", "diskFull", `this node takes no new extents: its disk is nearly full; ${node.missingForExtents}`);
  }
  const extent = new LocalExtent(new Replica(meta, node.world.rules), 0);
  extent.index = new BlockIndex();
  node.store.extents.set(id, extent);
  await node.journal.write(journalRecord("create", id, { ownerEpoch: meta.ownerEpoch }), encodeMeta(meta), (lsn, generation) => {
    extent.replica.appliedLsn = lsn;
    node.store.changed(extent, generation);
  });
  return ok({});
}

interface Fenced {
  readonly durableBytes: bigint;
  readonly committedBytes: bigint;
  readonly restarted: boolean;
  readonly sealedLengthBytes?: bigint;
}

export async function fenceExtent(node: Node, request: FenceExtentRequest): Promise<Outcome<Fenced>> {
  const id = extentId(fromWire(request.extentId));
  const other = node.otherDisk(request.diskId);
  if (other !== undefined) return other;
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  const extent = findOf(node, id, request);
  if (extent === undefined) {
    await obeyed.value;
    return unknownExtent(id);
  }
  const { replica } = extent;
  if (replica.state === "damaged") {
    await obeyed.value;
    return refused("dataLoss", "damaged", `extent ${id} is damaged here: ${replica.damage}`);
  }
  const { rules } = node.world;
  const lengthOnArrival = replica.durableBytes;
  if (replica.state !== "sealed" && rules.on("fenceBeforeLength")) {
    // Nothing is accepted after this; the record behind the accepted appends drains them.
    replica.fence(fromWire(request.version));
    if (rules.on("fenceDurable")) {
      await node.journal.write(journalRecord("fence", id), nothing, (lsn, generation) => {
        replica.appliedLsn = lsn;
        node.store.changed(extent, generation);
      });
    } else {
      await node.journal.drained();
    }
  }
  await obeyed.value;
  if (node.find(id) !== extent) return unknownExtent(id);
  if ((replica.state as string) === "damaged") return refused("dataLoss", "damaged", `extent ${id} is damaged here: ${replica.damage}`);
  return ok({
    durableBytes: toWire(rules.on("fenceDrains") ? replica.durableBytes : lengthOnArrival),
    committedBytes: toWire(Math.min(replica.committedBytes, replica.durableBytes)),
    restarted: replica.restarted,
    ...(replica.sealedLengthBytes === undefined ? {} : { sealedLengthBytes: toWire(replica.sealedLengthBytes) }),
  });
}

export async function sealExtent(node: Node, request: SealExtentRequest): Promise<Outcome<{ checksum: number }>> {
  const id = extentId(fromWire(request.extentId));
  const other = node.otherDisk(request.diskId);
  if (other !== undefined) return other;
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  const extent = findOf(node, id, request);
  if (extent === undefined) {
    await obeyed.value;
    return unknownExtent(id);
  }
  const lengthBytes = fromWire(request.sealedLengthBytes);
  const version = extentVersion(fromWire(request.version));
  // At once: what is on its way must not get in while the seal waits for its turn.
  if (extent.replica.state === "open") extent.replica.fence();
  return extent.exclusively(async () => {
    await obeyed.value;
    if (node.find(id) !== extent) return unknownExtent(id);
    return asRecorded(node, extent, request.checksum, await seal(node, extent, lengthBytes, version, request.sources));
  });
}

/** Refuses a replica with another content than the stream manager has recorded: it is damaged. */
export async function asRecorded(
  node: Node,
  extent: LocalExtent,
  recorded: number | undefined,
  sealed: Outcome<{ checksum: number }>,
): Promise<Outcome<{ checksum: number }>> {
  if (!sealed.ok || recorded === undefined || sealed.value.checksum === recorded) return sealed;
  return damaged(node, extent, `its content has checksum ${sealed.value.checksum}, recorded is ${recorded}`);
}

export async function seal(
  node: Node,
  extent: LocalExtent,
  lengthBytes: number,
  version: ReplicaMeta["version"],
  sources: readonly string[],
): Promise<Outcome<{ checksum: number }>> {
  const { replica } = extent;
  const id = replica.extentId;
  await node.journal.drained();
  const refusal = replica.refuseSeal(lengthBytes, version);
  if (refusal !== undefined) return { ok: false, failure: refusal };
  if (replica.state === "sealed" && version <= replica.version) {
    const checksum = replica.checksum ?? (await checksumOf(node, extent, lengthBytes, appendIo));
    return checksum === undefined ? damaged(node, extent, "its content can't be read") : ok({ checksum });
  }

  if (replica.durableBytes < lengthBytes) {
    await node.store.flush(extent);
    const index = await node.store.index(extent);
    if (index === undefined) return damaged(node, extent, "its blocks can't be found");
    const own = await checksumOf(node, extent, replica.durableBytes, appendIo);
    if (own === undefined) return damaged(node, extent, "its content can't be read");
    const copied = await copyInto(node, {
      id,
      path: extentPath(id),
      fromBytes: replica.durableBytes,
      toBytes: lengthBytes,
      checksum: own,
      creation: replica.creation?.number ?? 0,
      sources,
      urgent: true,
    });
    if (!copied.ok) return copied;
    const { checksum, totals, beginBytes } = copied.value;
    await node.store.table.write([node.store.table.putRun(id, beginBytes, totals)], false);
    // Another seal may have begun during the copy; what it is told comes behind this record or before it.
    const late = replica.refuseSeal(lengthBytes, version);
    if (late !== undefined) return { ok: false, failure: late };
    const meta: ReplicaMeta = { ...replica.meta, ...sealedMeta(lengthBytes, version, checksum) };
    await node.journal.write(journalRecord("repair", id, { offsetBytes: lengthBytes }), encodeMeta(meta), (lsn, generation) => {
      if (extent.removed) return;
      node.store.replaced(extent, lengthBytes);
      replica.seal(lengthBytes, version, checksum);
      replica.appliedLsn = lsn;
      node.store.changed(extent, generation);
    });
    return ok({ checksum });
  }

  const boundary = replica.durableBytes === lengthBytes || (await node.store.index(extent))?.find(lengthBytes)?.offsetBytes === lengthBytes;
  if (!boundary) return refused("invalidArgument", "badRequest", `no block of extent ${id} ends at ${lengthBytes}`);
  const checksum =
    replica.checksum !== undefined && replica.state === "sealed" ? replica.checksum : await checksumOf(node, extent, lengthBytes, appendIo);
  if (checksum === undefined) return damaged(node, extent, "its content can't be read");
  const late = replica.refuseSeal(lengthBytes, version);
  if (late !== undefined) return { ok: false, failure: late };
  await node.journal.write(
    journalRecord("seal", id, { offsetBytes: lengthBytes }),
    encodeSealBody({ version, checksum }),
    (lsn, generation) => {
      if (extent.removed || replica.state === "damaged") return;
      node.store.dropBeyond(extent, lengthBytes);
      replica.seal(lengthBytes, version, checksum);
      replica.appliedLsn = lsn;
      node.store.changed(extent, generation);
    },
  );
  if ((replica.state as string) === "damaged") return refused("dataLoss", "damaged", `extent ${id} is damaged here: ${replica.damage}`);
  return ok({ checksum });
}

export const sealedMeta = (lengthBytes: number, version: ReplicaMeta["version"], checksum: number): Partial<ReplicaMeta> => ({
  version,
  state: "sealed",
  fenced: true,
  restarted: false,
  sealedLengthBytes: lengthBytes,
  checksum,
  durableBytes: lengthBytes,
  committedBytes: lengthBytes,
  appliedLsn: 0,
  damage: "",
});

export async function damaged(node: Node, extent: LocalExtent, why: string): Promise<Outcome<never>> {
  await node.markDamaged(extent, why);
  return refused("dataLoss", "damaged", `extent ${extent.replica.extentId} is damaged here: ${why}`);
}

export async function deleteExtent(node: Node, request: DeleteExtentRequest): Promise<Outcome<Record<string, never>>> {
  const id = extentId(fromWire(request.extentId));
  const other = request.diskId === "" ? undefined : node.otherDisk(request.diskId);
  if (other !== undefined) return other;
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  await obeyed.value;
  const extent = node.find(id);
  if (extent === undefined) return ok({});
  const version = fromWire(request.version);
  return extent.exclusively(async () => {
    if (node.find(id) !== extent) return ok({});
    await node.journal.drained();
    if (isOther(node, extent.replica, request)) return keptForeign(node, extent);
    if (request.neverOpened && !isEmpty(extent.replica)) return keptForeign(node, extent);
    // A replica that was made in the place of the one that the deletion is for.
    if (version < extent.replica.version && node.world.rules.on("deletionsNameVersions")) {
      return refused("failedPrecondition", "conflict", `extent ${id} has version ${extent.replica.version}, the delete is for ${version}`);
    }
    extent.replica.fence();
    await node.journal.write(journalRecord("delete", id, { offsetBytes: version }), nothing, (_lsn, generation) => {
      extent.removed = true;
      node.store.extents.delete(id);
      node.store.changed(extent, generation);
    });
    await node.store.flush(extent);
    return ok({});
  });
}

/** True if the replica was created and got nothing since. The content of a damaged replica is not known. */
const isEmpty = ({ state, endBytes }: Replica): boolean => (state === "open" || state === "closed") && endBytes === 0;

/**
 * Keeps a replica of another extent that had the same number: an older metadata store was put back, and the number was given twice
 * (docs/decisions/0580). Only `stamp extent quarantine delete` deletes this replica.
 */
export function keptForeign(node: Node, { replica }: LocalExtent): Outcome<never> {
  const { extentId: id, state, version, endBytes, creation } = replica;
  const fields = { extent: id, state, version, endBytes, creation: creation?.number, stream: creation?.stream };
  node.world.logger.warn("kept a replica of another extent that had the same number", fields);
  return refused("notFound", "unknownExtent", `the replica of extent ${id} here is of another extent that had the same number: it is kept`);
}
