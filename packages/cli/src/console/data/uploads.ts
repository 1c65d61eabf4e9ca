/**
 * Uploads: a file comes in blocks, which its last call puts together. Blocks that arrived are kept by the service for a week, under names
 * that the page makes of the file's name, size and time of change, and of the block's own bytes: an upload that was cut, or whose page was
 * closed, goes on with the rest, and takes no block of another file that has the same name, size and time.
 */
import { Readable } from "node:stream";
import type { BlockBlobClient } from "@azure/storage-blob";
import type { DataClients } from "./clients.ts";
import { FieldError, type Fields, wholeIn, wordIn } from "./fields.ts";

/** Bytes of a block, which the page chooses: at most what the service takes. */
const blockBytesMax = 100 * 1_024 * 1_024;
const blocksMax = 50_000;

/** A block's place in the file, counted from 0, and 96 bits of the SHA-256 digest of its bytes in hexadecimal digits. */
interface Block {
  readonly number: number;
  readonly digest: string;
}

const digestPattern = /^[0-9a-f]{24}$/;

/** Name of a block: 64 bytes, as many as the service takes. All names of a blob have one length, as the service wants. */
const blockId = (upload: string, { number, digest }: Block): string =>
  Buffer.from(`${upload}-${String(number).padStart(6, "0")}-${digest}`).toString("base64");

function digestIn(value: unknown): string {
  if (typeof value === "string" && digestPattern.test(value)) return value;
  throw new FieldError("the digest of a block is 24 hexadecimal digits");
}

function uploadIn(fields: Fields): string {
  const upload = wordIn(fields, "upload");
  if (/^[0-9a-f]{32}$/.test(upload)) return upload;
  throw new FieldError("the name of an upload is 32 hexadecimal digits");
}

async function blobIn(clients: DataClients, fields: Fields): Promise<BlockBlobClient> {
  return (await clients.blob(wordIn(fields, "account"), wordIn(fields, "container"), wordIn(fields, "name"))).getBlockBlobClient();
}

/** Blocks of the upload that the service has. */
export async function blocksThere(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const upload = uploadIn(fields);
  const blob = await blobIn(clients, fields);
  const { uncommittedBlocks = [] } = await blob.getBlockList("uncommitted", { abortSignal }).catch((error: { statusCode?: number }) => {
    // Neither blob nor blocks are there.
    if (error.statusCode === 404) return { uncommittedBlocks: [] };
    throw error;
  });
  const mine = uncommittedBlocks.flatMap(({ name }): Block[] => {
    const [, of, number, digest = ""] = /^([^-]*)-(\d{6})-([^-]*)$/.exec(Buffer.from(name, "base64").toString("latin1")) ?? [];
    return of === upload && digestPattern.test(digest) ? [{ number: Number(number), digest }] : [];
  });
  return { blocks: mine };
}

/** Passes a block on while it comes. Of a block that was cut nothing is kept. */
export async function putBlock(
  clients: DataClients,
  fields: Fields,
  body: AsyncIterable<Uint8Array>,
  bytes: number,
  abortSignal: AbortSignal,
): Promise<void> {
  const upload = uploadIn(fields);
  const block = { number: wholeIn(fields, "number", 0, blocksMax - 1), digest: digestIn(fields.digest) };
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > blockBytesMax) throw new FieldError(`a block has 1 to ${blockBytesMax} bytes`);
  const blob = await blobIn(clients, fields);
  await blob.stageBlock(blockId(upload, block), Readable.from(body, { objectMode: false }), bytes, { abortSignal });
}

/** Puts the blocks together. Without an ETag a blob that is there stays, and the call fails; with one, the blob of this ETag is replaced. */
export async function commitBlob(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const upload = uploadIn(fields);
  const { contentType, digests, etag } = fields;
  if (!Array.isArray(digests) || digests.length > blocksMax) throw new FieldError(`digests is a list of up to ${blocksMax} blocks`);
  const ids = digests.map((digest: unknown, number) => blockId(upload, { number, digest: digestIn(digest) }));
  await (await blobIn(clients, fields)).commitBlockList(ids, {
    abortSignal,
    ...(typeof contentType === "string" && contentType !== "" ? { blobHTTPHeaders: { blobContentType: contentType } } : {}),
    conditions: etag === undefined ? { ifNoneMatch: "*" } : { ifMatch: wordIn(fields, "etag") },
  });
  return {};
}
