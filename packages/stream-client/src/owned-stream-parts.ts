/** Parts of a stream's owner: limits of its appends, and the calls to the stream manager and extent nodes. */
import type { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import type { WindowLimits } from "./append-window.ts";
import type { ExtentReader } from "./read/extent-reader.ts";
import type { ExtentChange } from "./types.ts";

export interface OwnedStreamLimits extends WindowLimits {
  /** Deadline of one append at the primary. */
  readonly appendTimeoutMs: number;
  /** Bytes of appends that may wait to be sent. */
  readonly waitingBytesMax: number;
}

export interface OwnedStreamParts {
  readonly world: World;
  readonly manager: LeaderCalls;
  readonly reader: ExtentReader;
  readonly limits: OwnedStreamLimits;
  readonly onExtentChange?: ((change: ExtentChange) => void) | undefined;
}
