/** Errors of the Files service: its names for what the Blob service calls otherwise. */
import type { ErrorCode } from "../error-codes.ts";
import { type RestError, restError } from "../rest-error.ts";

const names: Partial<Record<ErrorCode, ErrorCode>> = {
  BlobAlreadyExists: "ResourceAlreadyExists",
  BlobNotFound: "ResourceNotFound",
  ContainerAlreadyExists: "ShareAlreadyExists",
  ContainerBeingDeleted: "ShareBeingDeleted",
  ContainerNotFound: "ShareNotFound",
  InvalidPageRange: "InvalidRange",
  LeaseIdMismatchWithBlobOperation: "LeaseIdMismatchWithFileOperation",
  LeaseIdMismatchWithContainerOperation: "LeaseIdMismatchWithShareOperation",
  LeaseNotPresentWithBlobOperation: "LeaseNotPresentWithFileOperation",
  LeaseNotPresentWithContainerOperation: "LeaseNotPresentWithShareOperation",
};

const refusedByHandle = "The handle was not opened for this, the range is empty, or there are too many handles or locks.";

/** Returns the error under the name that this service has for it. Other errors stay as they are. */
export function fileError(error: RestError): RestError {
  if (error.code === "DirectoryNotEmpty") return restError(error.code, {}, { message: "The specified directory is not empty." });
  if (error.code === "InvalidOperation") return restError(error.code, error.details, { message: refusedByHandle });
  const code = names[error.code];
  return code === undefined ? error : restError(code, error.details, { headers: error.headers });
}
