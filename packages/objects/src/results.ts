/** Results of operations on objects: the same as in proto/stamp/v1/objects.proto, with safe-integer numbers and without absent parts. */
import type { ShownBlob, ShownContainer } from "@stamp/base";
import type { Account } from "./accounts/operation.ts";
import type { LeaseView } from "./blobs/protect/leases.ts";
import type { ServiceError } from "./errors.ts";
import type { HandlesAnswer } from "./handles/operation.ts";
import type { BlobType, CopyPart, CopyState } from "./operation.ts";
import type { QueueResult } from "./queues/operation.ts";
import type { Place } from "./rows/row.ts";
import type { SignedIdentifier } from "./signed-identifiers.ts";
import type { TableResult } from "./tables/operation.ts";
import type { StepAnswer } from "./tree/operation.ts";

export interface Container extends ShownContainer {
  readonly signedIdentifiers: readonly SignedIdentifier[];
  readonly lease: LeaseView;
  /** Whether something inside was ever protected by an immutability policy or a legal hold. */
  readonly hasProtected: boolean;
  /** Sequence of the commit in which a deletion began to look through the container; 0: none stands. */
  readonly deletionBegun: number;
}

export interface Blob extends ShownBlob {
  readonly blobType: BlobType;
  readonly lease: LeaseView;
  readonly copy?: CopyState | undefined;
}

export interface BlobContent {
  readonly blob: Blob;
  readonly startBytes: number;
  /** Number of bytes that follow. Less than asked for when they lie in more than `contentPlacesMax` places. */
  readonly lengthBytes: number;
  readonly inline: Uint8Array;
  /** Places in order; those of extent 0 (`zeroExtentId`) stand for zeros. */
  readonly places: readonly Place[];
}

export interface BlockSize {
  readonly blockId: Uint8Array;
  readonly sizeBytes: number;
}

export type ListedBlob = { readonly case: "blob"; readonly value: Blob } | { readonly case: "prefix"; readonly value: string };

export type OperationResult =
  | { readonly case: "error"; readonly value: ServiceError }
  | { readonly case: "account"; readonly value: Account }
  | {
      readonly case: "accounts";
      readonly value: { readonly accounts: readonly Account[]; readonly nextMarker: string; readonly rangeEnded: boolean };
    }
  | { readonly case: "container"; readonly value: Container }
  | {
      readonly case: "containers";
      readonly value: {
        readonly containers: readonly Container[];
        readonly nextMarker: string;
        readonly nextMarkerStamp: number;
        readonly rangeEnded: boolean;
      };
    }
  | { readonly case: "blob"; readonly value: Blob }
  | { readonly case: "content"; readonly value: BlobContent }
  | {
      readonly case: "blobs";
      readonly value: {
        readonly entries: readonly ListedBlob[];
        /** Entries in packed form, in place of `entries`, for a caller that takes it. */
        readonly packed?: Uint8Array | undefined;
        readonly nextMarker: string;
        readonly nextMarkerStamp: number;
        readonly rangeEnded: boolean;
      };
    }
  | {
      readonly case: "blockList";
      readonly value: {
        readonly blob: Blob | undefined;
        readonly committed: readonly BlockSize[];
        readonly uncommitted: readonly BlockSize[];
      };
    }
  | {
      readonly case: "leased";
      readonly value: {
        readonly etag: string;
        readonly lastModifiedMs: number;
        readonly leaseId: string;
        /** Time until a broken lease ends, in seconds. */
        readonly leftSeconds: number;
      };
    }
  /** Answer of a deletion. `permanent`: nothing is kept. `more`: not all is done, ask the same again. */
  | { readonly case: "deleted"; readonly value: { readonly permanent: boolean; readonly more: boolean } }
  | { readonly case: "table"; readonly value: TableResult }
  | { readonly case: "queue"; readonly value: QueueResult }
  | { readonly case: "tree"; readonly value: StepAnswer }
  | { readonly case: "handles"; readonly value: HandlesAnswer }
  | { readonly case: "done" }
  | {
      readonly case: "copyParts";
      /** `next` undefined: there are no more. */
      readonly value: { readonly blob: Blob; readonly parts: readonly CopyPart[]; readonly next: number | undefined };
    }
  | { readonly case: "appended"; readonly value: { readonly blob: Blob; readonly offsetBytes: number } }
  | {
      readonly case: "pageRanges";
      readonly value: { readonly blob: Blob; readonly ranges: readonly PageRange[]; readonly nextBytes: number };
    }
  /** Clearing of pages; `nextBytes`: offset at which to go on, 0 if all is done. */
  | { readonly case: "cleared"; readonly value: { readonly blob: Blob; readonly nextBytes: number } };

export interface PageRange {
  readonly startBytes: number;
  /** End of the range in bytes, exclusive. */
  readonly endBytes: number;
  /** True if the range has zeros now and had content in the previous snapshot. */
  readonly cleared: boolean;
}
