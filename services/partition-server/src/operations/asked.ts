/** Operations and bytes as callers give them to the executor. */
import type { BlobPolicy, PlanContext } from "@stamp/objects";
import type { Cause } from "@stamp/ports";

/** Facts that go along with an operation. */
export interface AskedWith {
  /** Policy of the account; undefined: none. */
  readonly policy?: BlobPolicy;
  readonly pageMemory?: PlanContext["pageMemory"];
  /** Client's request, if there is one. */
  readonly cause?: Cause | undefined;
}

/** Bytes for the blob at a key. `free`: called when nobody will look at either any more, or never. */
export interface DataToWrite {
  readonly key: Uint8Array;
  readonly payload: Uint8Array;
  readonly free?: (() => void) | undefined;
  /** Client's request, if there is one. */
  readonly cause?: Cause | undefined;
}
