/**
 * Puts blobs with their history: the oldest first, so that the account makes snapshots and versions in the same order, at times of its own.
 *
 * Invariants:
 * - What a blob is made of is sent with the content, in one request: an account with versions makes one version of it.
 * - Nothing of a name is put before all of its bytes that can be verified are, unless the service takes them at once or not at all.
 */
import { createHash } from "node:crypto";
import type { BlobClient, BlobHTTPHeaders, ContainerClient } from "@azure/storage-blob";
import { inOrder } from "../in-order.ts";
import { type BlobChunk, type BlobFacts, type BlobGroup, type BlobItem, LeftOut } from "../items.ts";
import { refusalOf, statusOf } from "../source/answers.ts";
import { checkName, chunkBytes } from "../source/blobs.ts";
import type { ImportTarget } from "./target.ts";

const chunksAtOnce = 4;

interface PutGroup {
  readonly put: readonly BlobFacts[];
  readonly bytes: number;
}

/** `again`: this run may have put something of the group. */
export async function putGroup(target: ImportTarget, { container, name, blobs }: BlobGroup, again: boolean): Promise<PutGroup> {
  checkName(name);
  const folder = target.doors.blobs.getContainerClient(container);
  const client = folder.getBlobClient(name);
  const current = blobs.at(-1)?.facts.current === true;
  if (target.merge && !current && (await client.exists()))
    throw new LeftOut("it is deleted in the source, and with --merge what the account has of this name stays");
  const hasHistory = blobs.length > 1 || !current;
  for (const { facts, verify } of blobs) if (hasHistory || facts.type !== "block") await verify?.();
  if (hasHistory && !target.merge && (target.again || again)) await removeAll(folder, name);
  const put: BlobFacts[] = [];
  let bytes = 0;
  let keepsVersions: boolean | undefined;
  for (const { facts, chunks } of blobs) {
    const isVersion = !facts.current && facts.snapshot === "";
    if (isVersion && keepsVersions === false) continue;
    const sent = await sendContent(client, facts, chunks, target.again || again);
    if (facts.type !== "block" && facts.tier !== "") await setTier(target, client, facts);
    if (isVersion && !sent.isVersion) {
      keepsVersions = false;
      target.leftOut(
        `older versions of blob ${name} in ${container}`,
        "the account keeps no versions (./stamp account set ACCOUNT --versioning on)",
      );
      continue;
    }
    if (facts.snapshot !== "") await client.createSnapshot();
    bytes += sent.bytes;
    put.push(facts);
  }
  // It was deleted, and its versions are left.
  if (!current) await client.delete({ deleteSnapshots: "include" });
  return { put, bytes };
}

/** Accounts of some kinds only take a tier for a page blob. */
async function setTier(target: ImportTarget, client: BlobClient, { container, name, tier }: BlobFacts): Promise<void> {
  try {
    await client.setAccessTier(tier);
  } catch (error) {
    const why = refusalOf(error);
    if (why === undefined) throw error;
    target.leftOut(`tier ${tier} of blob ${name} in ${container}`, why);
  }
}

/** Removes what an earlier run has put, so that no version or snapshot is there twice. */
async function removeAll(container: ContainerClient, name: string): Promise<void> {
  const client = container.getBlobClient(name);
  await client.deleteIfExists({ deleteSnapshots: "include" });
  for await (const { name: found, versionId } of container.listBlobsFlat({ prefix: name, includeVersions: true }))
    if (found === name && versionId !== undefined && versionId !== "") await client.withVersion(versionId).deleteIfExists();
    else if (found !== name) break;
}

interface Sent {
  readonly bytes: number;
  /** True if the account has made a version of it. */
  readonly isVersion: boolean;
}

function sendContent(client: BlobClient, facts: BlobFacts, chunks: BlobItem["chunks"], again: boolean): Promise<Sent> {
  if (facts.type === "append") return sendAppend(client, facts, chunks);
  if (facts.type === "page") return sendPages(client, facts, chunks);
  return facts.length <= chunkBytes ? sendWhole(client, facts, chunks, again) : sendBlocks(client, facts, chunks, again);
}

function optionsOf({ headers, metadata, tags }: BlobFacts) {
  const { contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl, contentMd5 } = headers;
  const blobHTTPHeaders: BlobHTTPHeaders = {
    ...(contentType === undefined ? {} : { blobContentType: contentType }),
    ...(contentEncoding === undefined ? {} : { blobContentEncoding: contentEncoding }),
    ...(contentLanguage === undefined ? {} : { blobContentLanguage: contentLanguage }),
    ...(contentDisposition === undefined ? {} : { blobContentDisposition: contentDisposition }),
    ...(cacheControl === undefined ? {} : { blobCacheControl: cacheControl }),
    ...(contentMd5 === undefined ? {} : { blobContentMD5: Buffer.from(contentMd5, "base64") }),
  };
  return { blobHTTPHeaders, metadata: { ...metadata }, ...(Object.keys(tags).length === 0 ? {} : { tags: { ...tags } }) };
}

const tierOf = ({ tier }: BlobFacts): { readonly tier?: string } => (tier === "" ? {} : { tier });
/** The service compares it with what arrives. */
const checked = (bytes: Uint8Array): { readonly transactionalContentMD5: Uint8Array } => ({
  transactionalContentMD5: createHash("md5").update(bytes).digest(),
});

async function sendWhole(client: BlobClient, facts: BlobFacts, chunks: BlobItem["chunks"], again: boolean): Promise<Sent> {
  const parts: Uint8Array[] = [];
  for await (const { bytes } of chunks()) parts.push(bytes);
  const bytes = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  const check = checked(bytes);
  // A blob may have any MD5 that somebody has set, and only a list of blocks is taken with a wrong one.
  const { contentMd5 = "" } = facts.headers;
  if (contentMd5 !== "" && contentMd5 !== Buffer.from(check.transactionalContentMD5).toString("base64"))
    return sendBlocks(client, facts, chunks, again);
  const answer = await client.getBlockBlobClient().upload(bytes, bytes.length, { ...optionsOf(facts), ...tierOf(facts), ...check });
  return { bytes: bytes.length, isVersion: answer.versionId !== undefined };
}

/** Names of blocks are made of their number and checksum: a later run sends only those that the service does not have. */
async function sendBlocks(client: BlobClient, facts: BlobFacts, chunks: BlobItem["chunks"], again: boolean): Promise<Sent> {
  const blocks = client.getBlockBlobClient();
  const there = again ? await uncommitted(client) : new Set<string>();
  const ids: string[] = [];
  let number = 0;
  const numbered = async function* (): AsyncGenerator<{ readonly id: string; readonly chunk: BlobChunk }, void, undefined> {
    for await (const chunk of chunks()) {
      const id = Buffer.from(`${String(number++).padStart(6, "0")}-${chunk.sha256.slice(0, 40)}`).toString("base64");
      ids.push(id);
      yield { id, chunk };
    }
  };
  const sent = inOrder(numbered(), chunksAtOnce, async ({ id, chunk: { bytes } }) => {
    if (!there.has(id)) await blocks.stageBlock(id, bytes, bytes.length, checked(bytes));
  });
  for await (const _each of sent);
  const answer = await blocks.commitBlockList(ids, { ...optionsOf(facts), ...tierOf(facts) });
  return { bytes: facts.length, isVersion: answer.versionId !== undefined };
}

async function uncommitted(client: BlobClient): Promise<Set<string>> {
  try {
    const { uncommittedBlocks = [] } = await client.getBlockBlobClient().getBlockList("uncommitted");
    return new Set(uncommittedBlocks.map(({ name }) => name));
  } catch (error) {
    if (statusOf(error) === 404) return new Set();
    throw error;
  }
}

async function sendAppend(client: BlobClient, facts: BlobFacts, chunks: BlobItem["chunks"]): Promise<Sent> {
  const appends = client.getAppendBlobClient();
  const answer = await appends.create(optionsOf(facts));
  for await (const { at, bytes } of chunks()) await append(client, at, bytes);
  if (facts.sealed === true) await appends.seal();
  return { bytes: facts.length, isVersion: answer.versionId !== undefined };
}

async function append(client: BlobClient, at: number, bytes: Uint8Array): Promise<void> {
  try {
    await client.getAppendBlobClient().appendBlock(bytes, bytes.length, { ...checked(bytes), conditions: { appendPosition: at } });
  } catch (error) {
    // The SDK repeats a request whose answer was lost: then it is there.
    if (statusOf(error) !== 412) throw error;
    const { contentLength } = await client.getProperties();
    if (contentLength !== at + bytes.length) throw error;
  }
}

async function sendPages(client: BlobClient, facts: BlobFacts, chunks: BlobItem["chunks"]): Promise<Sent> {
  const pages = client.getPageBlobClient();
  const answer = await pages.create(facts.length, { ...optionsOf(facts), blobSequenceNumber: facts.sequenceNumber });
  let sum = 0;
  const sent = inOrder(chunks(), chunksAtOnce, async ({ at, bytes }) => {
    await pages.uploadPages(bytes, at, bytes.length, checked(bytes));
    sum += bytes.length;
  });
  for await (const _each of sent);
  return { bytes: sum, isVersion: answer.versionId !== undefined };
}
