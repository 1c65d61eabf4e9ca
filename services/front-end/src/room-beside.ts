/** Configuration of the room for large uploads beside small requests. */
import type { RoomBesideOptions } from "@stamp/admission";
import type { FrontEndConfig } from "./config.ts";
import { pieceShare } from "./content/upload.ts";

/** Whole pieces that large uploads may have in flight at least: two of them for one account at one address. */
const piecesMin = 3;

/** Returns the room for whole pieces of large uploads: less while small requests are there and suffer. */
export function roomBesideOf(config: FrontEndConfig): RoomBesideOptions {
  const { throttle, uploadBytesMax, uploadBytesBeside, pieceBytes, smallReadTargetMs, smallWriteTargetMs } = config;
  const bytesMax = uploadBytesMax * pieceShare;
  const bytesMin = throttle ? Math.min(bytesMax, Math.max(uploadBytesBeside, piecesMin * pieceBytes)) : bytesMax;
  return { bytesMax, bytesMin, targetMs: { read: smallReadTargetMs, write: smallWriteTargetMs } };
}
