/**
 * Answers fsck of a running node: compares its replicas one by one with the files on its disk, and finds files of no
 * replica. Findings are treated like those of scrub or a reader: a hurt replica is marked damaged, so that it is copied
 * anew; a header that differs from what the node knows is written again.
 */
import { newerFormat, type Outcome, ok } from "@stamp/base";
import { extentContentOffset, type NodeIdentity, type ReplicaMeta } from "@stamp/extent";
import { DiskError, type World } from "@stamp/ports";
import { type CheckReplicasRequest, fromWire } from "@stamp/wire";
import { scrubIo } from "../disk/disk-queue.ts";
import { type ExtentFiles, extentPath } from "../disk/extent-files.ts";
import type { LocalExtent } from "../disk/local-extent.ts";
import type { Node } from "../node.ts";
import { extentFileNames } from "../recovery/rebuild-table.ts";
import { replicaOnWire } from "../replica-wire.ts";
import { verifyReplica } from "./verify.ts";

const limitMax = 1_000;
const limitDefault = 100;
/** Time after which the rest is left to the next page, in milliseconds. */
const pageMs = 2_000;
const strayMax = 1_000;

export interface FileProblem {
  /** Kind of problem. `content`: bytes are lost or wrong. `header`: only the file's own facts. `newer`: a newer release wrote it. */
  readonly kind: "content" | "header" | "newer";
  readonly what: string;
}

/**
 * Compares the file of a replica with what is known of it. `inFileBytes`: of its content, what must be in the file. `settled`: the header must
 * say the same as `meta`.
 */
export async function checkFile(
  world: World,
  files: ExtentFiles,
  identity: NodeIdentity,
  meta: ReplicaMeta,
  { inFileBytes, settled }: { readonly inFileBytes: number; readonly settled: boolean },
): Promise<FileProblem[]> {
  const path = extentPath(meta.extentId);
  if (!(await world.disk.exists(path))) return inFileBytes > 0 || settled ? [{ kind: "content", what: "its file is gone" }] : [];
  const problems: FileProblem[] = [];
  try {
    const size = await files.with(path, false, (file) => file.sizeBytes());
    const wanted = extentContentOffset + inFileBytes;
    if (size < wanted) problems.push({ kind: "content", what: `its file ends at ${size} of ${wanted}` });
    else if (settled && meta.state === "sealed" && size > wanted)
      problems.push({ kind: "header", what: `its file is ${size - wanted} bytes longer than the sealed length` });
    const header = await files.readHeader(path);
    if (header.kind === "invalid") problems.push({ kind: "header", what: `its header can't be read: ${header.why}` });
    else if (header.kind === "newer") problems.push({ kind: "newer", what: newerFormat(path, header).failure.message });
    else {
      const { stampId, diskId, meta: said } = header.value;
      if (stampId !== identity.stampId || diskId !== identity.diskId || said.extentId !== meta.extentId) {
        problems.push({ kind: "content", what: `its file is that of extent ${said.extentId} of disk ${diskId}` });
      } else if (settled && !sameMeta(said, meta)) {
        problems.push({ kind: "header", what: `its header says ${inWords(said)}, the node ${inWords(meta)}` });
      }
    }
  } catch (error) {
    if (!(error instanceof DiskError) || (error.kind !== "io" && error.kind !== "notFound")) throw error;
    problems.push({ kind: "content", what: `its file can't be read: ${error.message}` });
  }
  return problems;
}

const sameMeta = (a: ReplicaMeta, b: ReplicaMeta): boolean =>
  a.state === b.state && a.sealedLengthBytes === b.sealedLengthBytes && a.checksum === b.checksum && a.version === b.version;

const inWords = (meta: ReplicaMeta): string =>
  `${meta.state}${meta.sealedLengthBytes === undefined ? "" : ` at ${meta.sealedLengthBytes}`} (version ${meta.version})`;

export async function checkReplicas(node: Node, request: CheckReplicasRequest) {
  const after = fromWire(request.afterExtentId);
  const limit = Math.min(limitMax, request.limit === 0 ? limitDefault : request.limit);
  const ids = node.store.extents.idsAfter(after, limit + 1);
  const strayFiles = after === 0 ? await strayFilesOf(node) : [];
  const { clock } = node.world;
  const endMs = clock.monotonicMs() + pageMs;
  const replicas = [];
  let looked = 0;
  for (const id of ids.slice(0, limit)) {
    if (looked > 0 && clock.monotonicMs() > endMs) break;
    looked += 1;
    const extent = node.find(id);
    if (extent === undefined) continue;
    const before = extent.replica.state;
    const problems = await checkOne(node, extent, request.deep);
    if (node.find(id) !== extent) continue;
    const { checksum, state } = extent.replica;
    const foundNow = before !== "damaged" && state === "damaged";
    replicas.push({ replica: replicaOnWire(node, extent), problems, foundNow, ...(checksum === undefined ? {} : { checksum }) });
  }
  return ok({ replicas, more: ids.length > looked, strayFiles }) satisfies Outcome<unknown>;
}

async function checkOne(node: Node, extent: LocalExtent, deep: boolean): Promise<string[]> {
  const { replica } = extent;
  if (replica.state === "damaged") return [`it is marked damaged: ${replica.damage}`];
  // A replica with a change under way is skipped: its file is about to change.
  if (extent.flushing !== undefined || extent.before !== undefined) return [];
  const known = { inFileBytes: extent.flushedBytes, settled: replica.state === "sealed" && !extent.dirty };
  const version = replica.version;
  const problems = await checkFile(node.world, node.store.files, node.identity, replica.meta, known);
  const moved = extent.removed || node.find(replica.extentId) !== extent || replica.version !== version || extent.dirty;
  if (moved) return [];
  const lost = problems.filter((each) => each.kind === "content");
  if (lost.length > 0) {
    await node.markDamaged(extent, `found by fsck: ${lost.map((each) => each.what).join(", ")}`);
    return problems.map((each) => each.what);
  }
  if (problems.some((each) => each.kind === "newer")) return problems.map((each) => each.what);
  if (problems.length > 0) await node.store.rewriteHeader(extent);
  const said = problems.map((each) => `${each.what}: written anew`);
  if (!deep) return said;
  const verified = await verifyReplica(node, extent, scrubIo);
  if (verified?.kind !== "bad") return said;
  const why = `at ${verified.offsetBytes}: ${verified.why}`;
  await node.markDamaged(extent, `found by fsck ${why}`);
  return [...said, why];
}

async function strayFilesOf(node: Node): Promise<string[]> {
  const stray: string[] = [];
  for (const { path, id } of await extentFileNames(node.world)) {
    if ((id === undefined || node.find(id) === undefined) && stray.length < strayMax) stray.push(path);
  }
  return stray;
}
