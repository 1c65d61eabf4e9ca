/** Errors of Data Lake Storage: its names for what the Blob service calls otherwise, and their JSON. */
import type { ErrorCode } from "../error-codes.ts";
import { type RestError, restError } from "../rest-error.ts";

const names: Partial<Record<ErrorCode, ErrorCode>> = {
  BlobAlreadyExists: "PathAlreadyExists",
  BlobNotFound: "PathNotFound",
  ContainerAlreadyExists: "FilesystemAlreadyExists",
  ContainerBeingDeleted: "FilesystemBeingDeleted",
  ContainerNotFound: "FilesystemNotFound",
  LeaseAlreadyBroken: "LeaseIsAlreadyBroken",
  LeaseIdMismatchWithBlobOperation: "LeaseIdMismatch",
  LeaseIdMismatchWithContainerOperation: "LeaseIdMismatch",
  LeaseNotPresentWithBlobOperation: "LeaseNotPresent",
  LeaseNotPresentWithContainerOperation: "LeaseNotPresent",
};

/** Returns the error under the name that this service has for it. Other errors stay as they are. */
export function dataLakeError(error: RestError): RestError {
  const code = names[error.code];
  return code === undefined ? error : restError(code, error.details, { headers: error.headers });
}

/** Returns the body of an error. `requestId` and `time` (ISO 8601) stand in the text, as in the Blob service's. */
export const dataLakeErrorJson = ({ code, message }: RestError, requestId: string, time: string): string =>
  JSON.stringify({ error: { code, message: `${message}\nRequestId:${requestId}\nTime:${time}` } });
