/** Lease of one blob, with the implementation over the Azure SDK. */
import type { BlockBlobClient, ContainerClient } from "@azure/storage-blob";
import { LeaseBlobInUseError } from "../errors.ts";
import { isLeaseHeld, isMissing } from "../storage/classify.ts";
import { createEmptyBlob } from "../storage/create.ts";

/** Facts about the holder in the metadata of the lease blob. */
export interface LeadershipRecord {
  /** Name of the last one that was elected. */
  readonly leader: string;
  /**
   * Rises by one with each leadership. Begins at the wall clock in milliseconds, so that a lease blob that was deleted and made anew
   * continues above its earlier tokens (unless the clock was set back).
   */
  readonly fencingToken: bigint;
}

export interface Leadership extends LeadershipRecord {
  /** True if the lease is held at this moment. False: the record is of a leadership that has ended. */
  readonly held: boolean;
}

/** Every method throws what the SDK throws, unless it says otherwise. */
export interface LeaseStore {
  /** Name of the lease for messages. */
  readonly name: string;
  /**
   * Acquires the lease under the proposed id, and creates what is missing. False if somebody else holds it. Repeating it with the id that
   * holds the lease is harmless and begins its duration anew.
   */
  acquire(leaseId: string, durationSeconds: number, signal: AbortSignal): Promise<boolean>;
  renew(leaseId: string, signal: AbortSignal): Promise<void>;
  release(leaseId: string, signal: AbortSignal): Promise<void>;
  /** Writes `leader` and the next fencing token under the lease. LeaseBlobInUseError if the blob holds anything else. */
  claim(leaseId: string, leader: string, signal: AbortSignal): Promise<bigint>;
  /** Returns the present or last leader; undefined if there never was one. */
  read(signal: AbortSignal): Promise<Leadership | undefined>;
}

const tokenKey = "fencingtoken";
const leaderKey = "leader";

/** The lease of a block blob that is used for nothing else. */
export class BlobLeaseStore implements LeaseStore {
  readonly name: string;
  readonly #container: ContainerClient;
  readonly #blob: BlockBlobClient;

  constructor(container: ContainerClient, blobName: string) {
    this.#container = container;
    this.#blob = container.getBlockBlobClient(blobName);
    this.name = `${container.containerName}/${blobName}`;
  }

  async acquire(leaseId: string, durationSeconds: number, signal: AbortSignal): Promise<boolean> {
    const acquire = () => this.#blob.getBlobLeaseClient(leaseId).acquireLease(durationSeconds, { abortSignal: signal });
    try {
      try {
        await acquire();
      } catch (error) {
        if (!isMissing(error)) throw error;
        await createEmptyBlob(this.#container, this.#blob, signal);
        await acquire();
      }
      return true;
    } catch (error) {
      if (isLeaseHeld(error)) return false;
      throw error;
    }
  }

  async renew(leaseId: string, signal: AbortSignal): Promise<void> {
    await this.#blob.getBlobLeaseClient(leaseId).renewLease({ abortSignal: signal });
  }

  async release(leaseId: string, signal: AbortSignal): Promise<void> {
    await this.#blob.getBlobLeaseClient(leaseId).releaseLease({ abortSignal: signal });
  }

  async claim(leaseId: string, leader: string, signal: AbortSignal): Promise<bigint> {
    const { contentLength = 0, etag, metadata = {} } = await this.#blob.getProperties({ conditions: { leaseId }, abortSignal: signal });
    if (contentLength > 0) {
      throw new LeaseBlobInUseError(
        `blob ${this.name} holds ${contentLength} bytes of data, which nobody but the leader could write; use a blob that is for this lease only`,
      );
    }
    const foreign = Object.keys(metadata).filter((key) => key !== tokenKey && key !== leaderKey);
    if (foreign.length > 0) {
      throw new LeaseBlobInUseError(
        `blob ${this.name} has metadata of somebody else (${foreign.join(", ")}); use a blob that is for this lease only`,
      );
    }
    const fencingToken = metadata[tokenKey] === undefined ? BigInt(Date.now()) : this.#token(metadata) + 1n;
    const record = { [tokenKey]: String(fencingToken), [leaderKey]: encodeURIComponent(leader) };
    await this.#blob.setMetadata(record, {
      conditions: { leaseId, ...(etag === undefined ? {} : { ifMatch: etag }) },
      abortSignal: signal,
    });
    return fencingToken;
  }

  async read(signal: AbortSignal): Promise<Leadership | undefined> {
    try {
      const { metadata = {}, leaseState } = await this.#blob.getProperties({ abortSignal: signal });
      const leader = metadata[leaderKey];
      if (leader === undefined) return undefined;
      const held = leaseState === "leased" || leaseState === "breaking";
      return { leader: decodeURIComponent(leader), fencingToken: this.#token(metadata), held };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  #token(metadata: Readonly<Record<string, string>>): bigint {
    const text = metadata[tokenKey] ?? "0";
    if (!/^\d{1,30}$/.test(text)) {
      throw new LeaseBlobInUseError(
        `blob ${this.name} has the fencing token '${text}', which is no number; delete the metadata or use another blob`,
      );
    }
    return BigInt(text);
  }
}
