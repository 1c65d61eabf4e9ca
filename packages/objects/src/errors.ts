/**
 * The service's own answers that something can't be done, as they are made here. `x-ms-error-code` is the code; the front-end maps it to
 * a status and a text (@stamp/azure-rest). Nothing happened when one of these is the answer.
 */
export const serviceErrorCodes = [
  "AccountNotFound",
  "AppendPositionConditionNotMet",
  "BlobAlreadyExists",
  "BlobCustomerSpecifiedEncryptionMismatch",
  "BlobDoesNotUseCustomerSpecifiedEncryption",
  "BlobIsSealed",
  "BlobArchived",
  "BlobImmutableDueToLegalHold",
  "BlobImmutableDueToPolicy",
  "BlobNotFound",
  "BlobOverwritten",
  "BlobOperationNotSupported",
  "BlobUsesCustomerSpecifiedEncryption",
  "BlockCountExceedsLimit",
  "BlockListTooLong",
  "ConditionNotMet",
  "ContainerAlreadyExists",
  "ContainerNotFound",
  "CopyIdMismatch",
  "ContentLengthExceeded",
  "DeletePending",
  "EntityAlreadyExists",
  "EntityTooLarge",
  "FileLockConflict",
  "InfiniteLeaseDurationRequired",
  "InvalidBlobOrBlock",
  "InvalidBlobType",
  "InvalidBlockId",
  "InvalidBlockList",
  "InvalidDuplicateRow",
  "InvalidPageRange",
  "InvalidQueryParameterValue",
  "InvalidHeaderValue",
  "InvalidOperation",
  "InvalidRange",
  "LeaseAlreadyPresent",
  "LeaseIdMismatchWithBlobOperation",
  "LeaseIdMismatchWithContainerOperation",
  "LeaseIdMismatchWithLeaseOperation",
  "LeaseIdMissing",
  "LeaseIsBreakingAndCannotBeAcquired",
  "LeaseIsBreakingAndCannotBeChanged",
  "LeaseIsBrokenAndCannotBeRenewed",
  "LeaseLost",
  "LeaseNotPresentWithBlobOperation",
  "LeaseNotPresentWithContainerOperation",
  "LeaseNotPresentWithLeaseOperation",
  "MaxBlobSizeConditionNotMet",
  "MessageNotFound",
  "MultipleConditionHeadersNotSupported",
  "OperationNotAllowedOnRootBlob",
  "NoPendingCopyOperation",
  "PendingCopyOperation",
  "PreviousSnapshotCannotBeNewer",
  "PreviousSnapshotNotFound",
  "ReadOnlyAttribute",
  "ResourceNotFound",
  "SharingViolation",
  "SnapshotCountExceeded",
  "SnapshotsPresent",
  "TableAlreadyExists",
  "TableNotFound",
  "TooManyProperties",
  "UpdateConditionNotSatisfied",
  "SequenceNumberConditionNotMet",
  "SequenceNumberIncrementTooLarge",
  "ServerBusy",
  "QueueAlreadyExists",
  "QueueNotFound",
  "UnauthorizedBlobOverwrite",
] as const;
export type ServiceErrorCode = (typeof serviceErrorCodes)[number];

export interface ServiceError {
  readonly code: ServiceErrorCode;
  /**
   * ConditionNotMet of a read whose If-None-Match or If-Modified-Since says that the reader has it already is 304 Not Modified, every
   * other one 412 Precondition Failed: `details.status` says which. InvalidRange carries `details.contentLength`. What a change of entities
   * was refused for says in `details.index` which change it was.
   */
  readonly details: Readonly<Record<string, string>>;
}

export const serviceError = (code: ServiceErrorCode, details: Readonly<Record<string, string>> = {}): ServiceError => ({ code, details });
