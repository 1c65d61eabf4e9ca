/**
 * Blocks: uploaded one by one, then committed as a list. Uncommitted blocks hang on a staging row that names their generation; with
 * that row they are gone, all at once. They are replaced by a later block of the same id, and dropped by whatever gives the blob new
 * content. All ids of one blob's uncommitted blocks have one length.
 */

import { concatBytes, toHex } from "@stamp/base";
import { checkReadConditions } from "../conditions.ts";
import { afterPrefix, blockKey, blocksPrefix, stagingKey } from "../object-keys.ts";
import type { BlockReference, OperationValue } from "../operation.ts";
import {
  answer,
  done,
  errorAnswer,
  fail,
  getRow,
  intact,
  itemsPerPause,
  type Plan,
  type PlanContext,
  put,
  type RowEntry,
  type RowWrite,
  refuse,
  remove,
  scanRows,
  withPauses,
} from "../plan.ts";
import type { BlockSize } from "../results.ts";
import { decodeKey } from "../rows/key.ts";
import { readPiece } from "./blobs.ts";
import { checkKey, type KeyName, keyNameOf, unusableUnderKey } from "./encryption.ts";
import { checkLeaseOfRead, checkLeaseOfWrite } from "./protect/leases.ts";
import {
  checkNotArchived,
  checkNotPending,
  checkPlaces,
  checkReplace,
  dropStaging,
  type FoundState,
  findState,
  readBlob,
  readLiveStaging,
  readStaging,
  replaceContent,
  sizeOfBody,
} from "./state/blob-state.ts";
import { type ContentBlock, contentPieces, placesPerBlockMax } from "./state/content.ts";
import { blobOf } from "./state/head-row.ts";
import {
  decodeStagedBlock,
  encodeStagedBlock,
  encodeStaging,
  isGivenUp,
  type StagedBlock,
  type StagingState,
} from "./state/staging-rows.ts";

export const committedBlocksMax = 50_000;
export const uncommittedBlocksMax = 100_000;
/** Uncommitted blocks that a list may name that keeps the others: the row of each is removed in the commit of the list. */
const keepingListMax = 2_000;
const blockIdBytesMax = 64;

export function* putBlock(value: OperationValue<"putBlock">, context: PlanContext): Plan {
  const { name, conditions, blockId, body } = value;
  if (blockId.length < 1 || blockId.length > blockIdBytesMax) return fail("InvalidBlockId");
  if (body.inline.length > 0) return refuse("badRequest", "the bytes of a block are put into the blob data stream first");
  if (body.places.length > placesPerBlockMax) return refuse("badRequest", `at most ${placesPerBlockMax} places`);
  const unusable = unusableUnderKey(conditions, body);
  if (unusable !== undefined) return refuse("badRequest", unusable);
  const { prefix, head } = yield* readBlob(context, name);
  const error = checkLeaseOfWrite("Blob", conditions.leaseId, head?.lease, context.leases) ?? checkNotPending(head);
  if (error) return errorAnswer(error);
  if (head && head.blobType !== "BlockBlob") return fail("InvalidBlobType");
  const archived = checkNotArchived(head);
  if (archived) return errorAnswer(archived);
  const stored = yield* readStaging(prefix);
  const staging = stored && !isGivenUp(stored, context.wallMs) ? stored : undefined;
  if (staging && staging.blockIdLength !== blockId.length) return fail("InvalidBlobOrBlock");
  const generation = staging?.generation ?? context.sequence;
  const key = blockKey(prefix, generation, blockId);
  const replaced = staging !== undefined && (yield* getRow(key)) !== undefined;
  const blockCount = (staging?.blockCount ?? 0) + (replaced ? 0 : 1);
  if (blockCount > uncommittedBlocksMax) return fail("BlockCountExceedsLimit");
  const refusal = checkPlaces(context, body);
  if (refusal) return refuse(refusal.reason, refusal.message);
  const next: StagingState = {
    generation,
    blockIdLength: blockId.length,
    blockCount,
    createdMs: staging?.createdMs ?? context.wallMs,
    lastPutMs: context.wallMs,
  };
  // The first block of a new staging row removes a little of the abandoned ones.
  const givenUp = stored && !staging ? (yield* dropStaging(prefix, stored)).slice(1) : [];
  const block: StagedBlock = { sizeBytes: sizeOfBody(body), places: body.places, ...keyNameOf(conditions) };
  return answer(done, [
    ...givenUp,
    { kind: "put", key, value: encodeStagedBlock(block, context.wallMs) },
    { kind: "put", key: stagingKey(prefix), value: encodeStaging(next) },
  ]);
}

export function* putBlockList(value: OperationValue<"putBlockList">, context: PlanContext): Plan {
  const { name, conditions, blocks, headers, metadata } = value;
  if (blocks.length > committedBlocksMax) return fail("BlockListTooLong");
  const fresh = value.keepsUnnamed ? blocks.filter(({ source }) => source !== "committed") : [];
  if (fresh.length > keepingListMax)
    return refuse("badRequest", `a list that keeps blocks names at most ${keepingListMax} uncommitted ones`);
  const state = yield* readBlob(context, name);
  const error = yield* checkReplace(context, conditions, state, "BlockBlob");
  if (error) return errorAnswer(error);
  const content = yield* chooseBlocks(context, state, blocks);
  if (!content) return fail("InvalidBlockList");
  for (const block of content) {
    const underOther = checkKey(conditions, block);
    if (underOther) return errorAnswer(underOther);
  }
  const lengthBytes = content.reduce((sum, block) => sum + block.sizeBytes, 0);
  if (value.expectedBytes !== undefined && value.expectedBytes !== lengthBytes) return fail("ConditionNotMet");
  return yield* replaceContent(context, name, state, {
    pieces: contentPieces(content),
    lengthBytes,
    headers,
    metadata,
    blobType: "BlockBlob",
    sequenceNumber: 0,
    state: value.state,
    key: keyNameOf(conditions),
    ...(value.keepsUnnamed && { stagingWrites: yield* takeNamed(context, state, fresh) }),
  });
}

/** Takes the named blocks out of the uncommitted ones; undefined: none are left. */
function* takeNamed(context: PlanContext, { prefix }: BlockSources, named: readonly BlockReference[]): Plan<RowWrite[] | undefined> {
  const staging = yield* readLiveStaging(context, prefix);
  if (!staging) return undefined;
  const taken = new Map<string, Uint8Array>();
  for (const { blockId } of named) {
    const key = blockKey(prefix, staging.generation, blockId);
    if ((yield* getRow(key)) !== undefined) taken.set(toHex(blockId), key);
  }
  const blockCount = staging.blockCount - taken.size;
  return blockCount > 0
    ? [put(stagingKey(prefix), encodeStaging({ ...staging, blockCount })), ...[...taken.values()].map(remove)]
    : undefined;
}

type BlockSources = Pick<FoundState, "prefix"> & { readonly head: FoundState["head"] | undefined };

/** A block that a list may speak of. A committed one is encrypted as its blob is. */
interface ListedBlock extends ContentBlock, KeyName {}

/** Returns the blocks a list speaks of; undefined when one of them is not there. */
function* chooseBlocks(context: PlanContext, state: BlockSources, references: readonly BlockReference[]): Plan<ListedBlock[] | undefined> {
  const wantsUncommitted = references.filter((reference) => reference.source !== "committed");
  const uncommitted = yield* uncommittedById(context, state, wantsUncommitted);
  let committed: ReadonlyMap<string, ListedBlock> | undefined;
  const chosen: ListedBlock[] = [];
  for (const [at, { blockId, source }] of references.entries()) {
    if (at % itemsPerPause === 0) yield { kind: "pause" };
    const id = toHex(blockId);
    let block = source === "committed" ? undefined : uncommitted.get(id);
    if (block === undefined && source !== "uncommitted") {
      committed ??= yield* committedById(state);
      block = committed.get(id);
    }
    if (!block) return undefined;
    chosen.push(block);
  }
  return chosen;
}

function* committedById(state: BlockSources): Plan<Map<string, ListedBlock>> {
  const byId = new Map<string, ListedBlock>();
  const key: KeyName = state.head ? keyNameOf(state.head) : {};
  yield* withPauses(yield* committedBlocks(state), (block) => {
    const id = toHex(block.blockId);
    if (!byId.has(id)) byId.set(id, { ...block, ...key });
  });
  return byId;
}

/** Reads the committed blocks. Content of a Put Blob is left out, because it has no block id. */
function* committedBlocks({ prefix, head }: BlockSources): Plan<ContentBlock[]> {
  const blocks: ContentBlock[] = [];
  for (let piece = 0; piece < (head?.pieceStarts.length ?? 0) && head; piece++) {
    const content = yield* readPiece(prefix, head, piece);
    for (const block of content.blocks) if (block.blockId.length > 0) blocks.push(block);
  }
  return blocks;
}

/** Number of blocks up to which each is read by itself; more are read by a scan. */
const readOneByOneMax = 16;
const scanLimits = { rowsMax: 2_000, bytesMax: 1024 * 1024 } as const;

function* uncommittedById(
  context: PlanContext,
  { prefix }: BlockSources,
  wanted: readonly BlockReference[],
): Plan<Map<string, ListedBlock>> {
  const byId = new Map<string, ListedBlock>();
  if (wanted.length === 0) return byId;
  const staging = yield* readLiveStaging(context, prefix);
  if (!staging) return byId;
  if (wanted.length > readOneByOneMax) {
    yield* withPauses(yield* uncommittedBlocks(prefix, staging), (block) => byId.set(toHex(block.blockId), block));
    return byId;
  }
  for (const { blockId } of wanted) {
    const row = yield* getRow(blockKey(prefix, staging.generation, blockId));
    if (row) byId.set(toHex(blockId), { blockId, ...decodeStagedBlock(row) });
  }
  return byId;
}

/** Yields the uncommitted blocks in the order of their ids. */
function* uncommittedBlocks(prefix: Uint8Array, staging: StagingState): Plan<ListedBlock[]> {
  const start = blocksPrefix(prefix, staging.generation);
  const high = afterPrefix(start);
  const blocks: ListedBlock[] = [];
  for (let low = start, more = true; more; ) {
    const page = yield* scanRows(low, high, scanLimits);
    for (const row of page.rows) blocks.push({ blockId: blockIdOf(row), ...decodeStagedBlock(row.value) });
    const last = page.rows.at(-1);
    more = page.more && last !== undefined;
    if (last) low = concatBytes([last.key, Uint8Array.of(0)]);
  }
  return blocks;
}

function blockIdOf(row: RowEntry): Uint8Array {
  const id = intact(decodeKey(row.key)).at(-1)?.at(-1);
  return id instanceof Uint8Array ? id : new Uint8Array(0);
}

const sizesOf = (blocks: readonly ContentBlock[]): BlockSize[] =>
  blocks.map((block) => ({ blockId: block.blockId, sizeBytes: block.sizeBytes }));

/** Lists blocks; a snapshot or version has committed ones only. */
export function* getBlockList(value: OperationValue<"getBlockList">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  const { prefix, head, stamp } = found ?? { ...(yield* readBlob(context, value.name)), head: undefined, stamp: 0 };
  const ofBlob = !value.name.snapshotStamp && !value.name.versionStamp;
  const staging = ofBlob ? yield* readLiveStaging(context, prefix) : undefined;
  if (!head && !staging) return fail("BlobNotFound");
  const error =
    checkLeaseOfRead("Blob", value.conditions.leaseId, head?.lease, context.leases) ??
    (head ? checkReadConditions(value.conditions, head) : undefined);
  if (error) return errorAnswer(error);
  if (head && head.blobType !== "BlockBlob") return fail("InvalidBlobType");
  return answer({
    case: "blockList",
    value: {
      blob: head ? blobOf(context, value.name.blob, head, stamp) : undefined,
      committed: value.committed ? sizesOf(yield* committedBlocks({ prefix, head })) : [],
      uncommitted: value.uncommitted && staging ? sizesOf(yield* uncommittedBlocks(prefix, staging)) : [],
    },
  });
}
