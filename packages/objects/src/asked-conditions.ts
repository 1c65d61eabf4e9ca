/** Conditions of requests, in a file of their own because steps of trees have them, too. */

/**
 * Conditions as they came: an ETag with its quotes, or "*"; several separated by commas. Times in milliseconds since
 * 1970.
 */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly ifModifiedSinceMs?: number | undefined;
  readonly ifUnmodifiedSinceMs?: number | undefined;
  readonly leaseId?: string | undefined;
  /** True if the caller may create but not overwrite: UnauthorizedBlobOverwrite. */
  readonly createOnly?: boolean | undefined;
  /** Condition on a blob: an expression over tags. */
  readonly ifTags?: string | undefined;
  /** SHA-256 of the customer's key that the request brings: content is encrypted under it. */
  readonly encryptionKeySha256?: Uint8Array | undefined;
  /** Name of the encryption scope under which the content is encrypted, or that the request names. */
  readonly encryptionScope?: string | undefined;
  /** True if the request names no scope: the content is encrypted as the front-end found the blob. */
  readonly encryptionAsFound?: boolean | undefined;
  /** Handle of the file by which the caller acts (handles/handle-rules.ts). Undefined: by REST. */
  readonly handleId?: string | undefined;
  /** Rights that the operation uses of those who hold the file, whatever it does; it meets no lock. Undefined: what it does tells. */
  readonly usesRights?: number | undefined;
}
