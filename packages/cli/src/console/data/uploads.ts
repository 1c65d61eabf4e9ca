/**
 * Uploads: a file comes in blocks, which its last call puts together. Blocks that arrived are kept by the service for a week, under names
 * that the page makes of the file's name, size and time of change: an upload that was cut, or whose page was closed, goes on with the rest.
 */
import { Readable } from "node:stream";
import type { BlockBlobClient } from "@azure/storage-blob";
import type { DataClients } from "./clients.ts";
import { FieldError, type Fields, wholeIn, wordIn } from "./fields.ts";

/** Bytes of a block, which the page chooses: at most what the service takes. */
const blockBytesMax = 100 * 1_024 * 1_024;
const blocksMax = 50_000;

/** Name of a block. All names of an upload have one length, as the service wants. */
const blockId = (upload: string, number: number): string => Buffer.from(`${upload}-${String(number).padStart(6, "0")}`).toString("base64");

function uploadIn(fields: Fields): string {
  const upload = wordIn(fields, "upload");
  if (/^[0-9a-f]{32}$/.test(upload)) return upload;
  throw new FieldError("the name of an upload is 32 hexadecimal digits");
}

async function blobIn(clients: DataClients, fields: Fields): Promise<BlockBlobClient> {
  return (await clients.blob(wordIn(fields, "account"), wordIn(fields, "container"), wordIn(fields, "name"))).getBlockBlobClient();
}

/** Numbers of the upload's blocks that the service has. */
export async function blocksThere(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const upload = uploadIn(fields);
  const blob = await blobIn(clients, fields);
  const { uncommittedBlocks = [] } = await blob.getBlockList("uncommitted", { abortSignal }).catch((error: { statusCode?: number }) => {
    // Neither blob nor blocks are there.
    if (error.statusCode === 404) return { uncommittedBlocks: [] };
    throw error;
  });
  const mine = uncommittedBlocks.flatMap(({ name }) => {
    const [id, number] = Buffer.from(name, "base64").toString("latin1").split("-");
    return id === upload ? [Number(number)] : [];
  });
  return { numbers: mine };
}

/** Passes a block on while it comes. Of a block that was cut nothing is kept. */
export async function putBlock(
  clients: DataClients,
  fields: Fields,
  body: AsyncIterable<Uint8Array>,
  bytes: number,
  abortSignal: AbortSignal,
): Promise<void> {
  const [upload, number] = [uploadIn(fields), wholeIn(fields, "number", 0, blocksMax - 1)];
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > blockBytesMax) throw new FieldError(`a block has 1 to ${blockBytesMax} bytes`);
  const blob = await blobIn(clients, fields);
  await blob.stageBlock(blockId(upload, number), Readable.from(body, { objectMode: false }), bytes, { abortSignal });
}

/** Puts the blocks together. Without `replace` a blob that is there stays, and the call fails. */
export async function commitBlob(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const [upload, count] = [uploadIn(fields), wholeIn(fields, "count", 0, blocksMax)];
  const { contentType, replace } = fields;
  const ids = Array.from({ length: count }, (_, number) => blockId(upload, number));
  await (await blobIn(clients, fields)).commitBlockList(ids, {
    abortSignal,
    ...(typeof contentType === "string" && contentType !== "" ? { blobHTTPHeaders: { blobContentType: contentType } } : {}),
    ...(replace === true ? {} : { conditions: { ifNoneMatch: "*" } }),
  });
  return {};
}
