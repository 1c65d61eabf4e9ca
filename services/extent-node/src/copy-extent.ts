/**
 * Command of the stream manager to copy an extent to this node. A replica that holds content is brought to the sealed length; a damaged one, and
 * one of a seal that was given up, is replaced: the whole content is copied beside it first.
 */
import { extentId, extentVersion, type Outcome, ok, ownerEpoch, refused } from "@stamp/base";
import { encodeMeta, Replica, type ReplicaMeta } from "@stamp/extent";
import { type CopyExtentRequest, fromWire } from "@stamp/wire";
import { verifyReplica } from "./check/verify.ts";
import { asRecorded, damaged, keptForeign, seal, sealedMeta } from "./control.ts";
import { creationOf, isOther } from "./creations.ts";
import { repairIo } from "./disk/disk-queue.ts";
import { copyPath } from "./disk/extent-files.ts";
import { LocalExtent } from "./disk/local-extent.ts";
import { markFormat } from "./format-marks.ts";
import { journalRecord, type Node } from "./node.ts";
import { type CopyResult, copyInto, type RawSource } from "./repair/copier.ts";
import { copyName } from "./repair/copy-jobs.ts";

/** Copies an extent; `raw`: source of the content in place of replicas. */
export async function copyExtent(node: Node, request: CopyExtentRequest, raw?: RawSource): Promise<Outcome<{ checksum: number }>> {
  const id = extentId(fromWire(request.extentId));
  if (request.stampId !== node.identity.stampId) {
    return refused("failedPrecondition", "wrongStamp", `this disk belongs to stamp ${node.identity.stampId}, not to ${request.stampId}`);
  }
  const other = node.otherDisk(request.diskId);
  if (other !== undefined) return other;
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  const full = node.refuseBytes(fromWire(request.sealedLengthBytes));
  if (!node.takesExtents || full !== undefined) {
    return refused("resourceExhausted", "diskFull", full?.message ?? "this node takes no new extents: its disk is nearly full");
  }
  await obeyed.value;
  const name = copyName(raw?.name ?? "replicas", request);
  return node.copyJobs.run(id, name, () => copy(node, request, raw));
}

async function copy(node: Node, request: CopyExtentRequest, raw: RawSource | undefined): Promise<Outcome<{ checksum: number }>> {
  const id = extentId(fromWire(request.extentId));
  const lengthBytes = fromWire(request.sealedLengthBytes);
  const version = extentVersion(fromWire(request.version));
  const held = node.find(id);
  if (held !== undefined && isOther(node, held.replica, request)) return keptForeign(node, held);
  // A replica that holds content is brought to the sealed length; a damaged one is replaced, and one of a seal that was given up.
  if (held === undefined) return replace(node, request, undefined, raw);
  if (held.replica.state === "open") held.replica.fence();
  return held.exclusively(async () => {
    if (held.replica.state === "damaged" || givenUp(held.replica, lengthBytes, version)) return replace(node, request, held, raw);
    if (raw !== undefined && (await endsElsewhere(node, held, lengthBytes))) return decodeOver(node, request, held, raw);
    const sealed = await seal(node, held, lengthBytes, version, request.sources);
    const recorded = await asRecorded(node, held, request.checksum, sealed);
    const stored = recorded.ok ? await asStored(node, held, recorded.value) : recorded;
    // Its content is not the recorded one: it is replaced now, not when somebody asks again.
    return (held.replica.state as string) === "damaged" && !stored.ok ? replace(node, request, held, raw) : stored;
  });
}

/**
 * A replica that is here already is announced as a copy when all of it was read: its checksum may be remembered from before its disk lost it (rule
 * `copiesReadBeforeTold`).
 */
async function asStored(node: Node, extent: LocalExtent, sealed: { checksum: number }): Promise<Outcome<{ checksum: number }>> {
  if (!node.world.rules.on("copiesReadBeforeTold")) return ok(sealed);
  const verified = await verifyReplica(node, extent, repairIo);
  if (verified === undefined) return refused("aborted", "conflict", `extent ${extent.replica.extentId} was changed meanwhile`);
  if (verified.kind === "intact") return ok(sealed);
  return damaged(node, extent, `at ${verified.offsetBytes}: ${verified.why}, found when it was to be announced as a copy`);
}

/** True if the replica was sealed at a length that was told to nobody and determined anew, at a later version (planUnseal). */
const givenUp = (replica: Replica, lengthBytes: number, version: number): boolean =>
  replica.state === "sealed" && replica.sealedLengthBytes !== lengthBytes && replica.version < version;

/** True if an unsealed replica can't be sealed at this length with what it holds: it is shorter, or none of its blocks ends there. */
async function endsElsewhere(node: Node, extent: LocalExtent, lengthBytes: number): Promise<boolean> {
  await node.journal.drained();
  const { state, durableBytes } = extent.replica;
  if (state !== "open" && state !== "closed") return false;
  if (durableBytes <= lengthBytes) return durableBytes < lengthBytes;
  return (await node.store.index(extent))?.find(lengthBytes)?.offsetBytes !== lengthBytes;
}

/** Makes an unsealed replica anew: a decoding has no replicas that could complete it. */
async function decodeOver(
  node: Node,
  request: CopyExtentRequest,
  held: LocalExtent,
  raw: RawSource,
): Promise<Outcome<{ checksum: number }>> {
  const refusal = held.replica.refuseSeal(fromWire(request.sealedLengthBytes), extentVersion(fromWire(request.version)));
  if (refusal !== undefined) return { ok: false, failure: refusal };
  // A replay of the journal would otherwise write appends of the old replica over the new one.
  await node.store.rewriteHeader(held);
  await node.store.table.sync();
  return replace(node, request, held, raw);
}

/** Copies the whole content into a file of its own; if it fails, nothing is left. */
async function copyBeside(node: Node, request: CopyExtentRequest, path: string, raw: RawSource | undefined): Promise<Outcome<CopyResult>> {
  const id = extentId(fromWire(request.extentId));
  const { files } = node.store;
  let copied: Outcome<CopyResult> | undefined;
  try {
    await files.create(path, id);
    const toBytes = fromWire(request.sealedLengthBytes);
    copied = await copyInto(node, {
      id,
      path,
      fromBytes: 0,
      toBytes,
      checksum: 0,
      creation: fromWire(request.creation),
      sources: raw === undefined ? request.sources : [raw],
      urgent: false,
    });
    return copied;
  } finally {
    if (copied?.ok !== true) await files.discardCopy(id);
  }
}

async function replace(
  node: Node,
  request: CopyExtentRequest,
  held: LocalExtent | undefined,
  raw: RawSource | undefined,
): Promise<Outcome<{ checksum: number }>> {
  const id = extentId(fromWire(request.extentId));
  const lengthBytes = fromWire(request.sealedLengthBytes);
  const version = extentVersion(fromWire(request.version));
  const creation = held?.replica.creation ?? creationOf(request);
  const marked = await markFormat(node.world, "extent", creation);
  if (!marked.ok) return marked;
  if (node.find(id) !== held) return refused("aborted", "conflict", `extent ${id} was changed meanwhile`);
  const path = copyPath(id);
  await node.store.files.discardCopy(id);
  const copied = await copyBeside(node, request, path, raw);
  if (!copied.ok) return copied;
  const { checksum } = copied.value;
  if (request.checksum !== undefined && checksum !== request.checksum) {
    await node.store.files.discardCopy(id);
    const message = `a copy of extent ${id} has checksum ${checksum}, recorded is ${request.checksum}: its sources are not all good`;
    return refused("dataLoss", "damaged", message);
  }
  const meta: ReplicaMeta = {
    extentId: id,
    ownerEpoch: ownerEpoch(fromWire(request.ownerEpoch)),
    replicas: [],
    creation,
    ...sealedMeta(lengthBytes, version, copied.value.checksum),
  } as ReplicaMeta;
  await node.store.files.writeHeader(path, meta, repairIo);
  const extent = new LocalExtent(new Replica(meta, node.world.rules), lengthBytes);
  extent.before = async () => {
    await held?.flushing;
    await node.store.files.adoptCopy(id);
  };
  await node.journal.write(journalRecord("repair", id, { offsetBytes: lengthBytes }), encodeMeta(meta), (lsn, generation) => {
    extent.replica.appliedLsn = lsn;
    if (held !== undefined) node.store.abandon(held);
    node.store.changed(extent, generation);
  });
  await node.store.flush(extent);
  await node.store.table.forgetRuns(id);
  await node.store.table.write([node.store.table.putRun(id, 0, copied.value.totals)], false);
  node.store.extents.set(id, extent);
  return ok({ checksum: copied.value.checksum });
}
