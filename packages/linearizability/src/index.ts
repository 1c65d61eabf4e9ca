/** Is a recorded history linearizable? Start at `checkHistory`. */
export { checkHistory } from "./check.ts";
export type { RecordedOperation } from "./history.ts";
export { type BatchCall, batchModel } from "./models/batch.ts";
export { type BlobAnswer, type BlobCall, type BlobCondition, checkBlob } from "./models/blob.ts";
export { describeVerdict } from "./report.ts";
