/** Rows of uncommitted blocks: the staging row, which says which of them count, and the block rows. */
import { present } from "@stamp/base";
import { intact } from "../../plan.ts";
import type { Blob } from "../../results.ts";
import { dateTimeOfMs, decodeRow, encodeRow, type Place } from "../../rows/row.ts";
import { blobSchema } from "../../rows/schemas.ts";
import { type KeyName, keyNameOf } from "../encryption.ts";
import { notListed } from "./head-row.ts";
import { int, ms } from "./row-values.ts";

/** Staging state of a blob with uncommitted blocks. */
export interface StagingState {
  /** Generation of the block rows that count. Never used again, so rows of older ones are never met. */
  readonly generation: number;
  readonly blockIdLength: number;
  readonly blockCount: number;
  readonly createdMs: number;
  /** Time of the last Put Block, in milliseconds since 1970. */
  readonly lastPutMs: number;
}

/** Time after the last put block at which uncommitted blocks are given up, in milliseconds. */
export const uncommittedBlocksKeptMs: number = 7 * 24 * 3_600_000;

export const isGivenUp = (staging: StagingState, wallMs: number): boolean => wallMs - staging.lastPutMs >= uncommittedBlocksKeptMs;

export interface StagedBlock extends KeyName {
  readonly sizeBytes: number;
  readonly places: readonly Place[];
}

export const encodeStaging = (state: StagingState): Uint8Array =>
  encodeRow(blobSchema, {
    generation: BigInt(state.generation),
    blockIdLength: state.blockIdLength,
    blockCount: state.blockCount,
    created: dateTimeOfMs(state.createdMs),
    lastModified: dateTimeOfMs(state.lastPutMs),
  });

export function decodeStaging(bytes: Uint8Array): StagingState {
  const row = intact(decodeRow(blobSchema, bytes));
  return {
    generation: int(row.generation),
    blockIdLength: present(row.blockIdLength, "the block id length of a staging row"),
    blockCount: row.blockCount ?? 0,
    createdMs: ms(row.created),
    lastPutMs: ms(row.lastModified ?? row.created),
  };
}

export const encodeStagedBlock = ({ sizeBytes, places, ...key }: StagedBlock, wallMs: number): Uint8Array =>
  encodeRow(blobSchema, { size: BigInt(sizeBytes), places, created: dateTimeOfMs(wallMs), ...keyNameOf(key) });

export function decodeStagedBlock(bytes: Uint8Array): StagedBlock {
  const row = intact(decodeRow(blobSchema, bytes));
  return { sizeBytes: int(row.size), places: row.places ?? [], ...keyNameOf(row) };
}

/** Returns the list entry of a blob that has uncommitted blocks only. */
export const uncommittedBlobOf = (name: string, staging: StagingState): Blob => ({
  ...notListed,
  name,
  lastModifiedMs: staging.createdMs,
  createdMs: staging.createdMs,
  uncommitted: true,
});
