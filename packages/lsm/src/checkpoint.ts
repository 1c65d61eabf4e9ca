/** A checkpoint: sorted, immutable, in data blocks with one index over them. Formats: docs/formats/checkpoint.md. */
export { hashKey, type KeyHash } from "./bloom.ts";
export { Block, type BlockWalk, decodeBlock } from "./checkpoint-block.ts";
export { type BlockReference, type CheckpointIndex, decodeIndex, type StoredPlace } from "./checkpoint-index.ts";
export { CheckpointWriter, withoutPause } from "./checkpoint-writer.ts";
