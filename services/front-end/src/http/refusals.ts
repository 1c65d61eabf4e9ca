/** Answers to bytes that never became a request: the HTTP parser refused them, or the headers did not come. */
import { type RestError, restError } from "@stamp/azure-rest";
import type { HttpRefusal, HttpRequest } from "@stamp/ports";
import { busyError } from "../objects/failures.ts";

const errors: Readonly<Record<HttpRefusal, () => RestError>> = {
  verb: () => restError("InvalidHttpVerb"),
  target: () => restError("RequestUrlFailedToParse"),
  header: () => restError("InvalidHeaderValue", { Reason: "A header is no header of HTTP." }),
  // The service has no answer of its own: what is in front of it refuses with 400, not with 431.
  headersTooLarge: () => restError("InvalidHeaderValue", { Reason: "The request line and the headers are too long together." }),
  contentLength: () => restError("InvalidHeaderValue", { HeaderName: "Content-Length" }),
  transferEncoding: () => restError("InvalidHeaderValue", { HeaderName: "Transfer-Encoding" }),
  hostMissing: () => restError("MissingRequiredHeader", { HeaderName: "Host" }),
  expectation: () => restError("InvalidHeaderValue", { HeaderName: "Expect" }),
  pipelined: () => busyError("This connection has sent too many requests ahead, without waiting for answers."),
  late: () => restError("OperationTimedOut", {}, { status: 408 }),
  malformed: () => restError("InvalidInput", { Reason: "What came is not HTTP." }),
};

export const refusalOf = (why: HttpRefusal): RestError => errors[why]();

/** Stands where a request would. */
export const noRequest: Omit<HttpRequest, "body"> = {
  method: "",
  target: "",
  headers: {},
  remoteAddress: "",
  secure: false,
  signal: new AbortController().signal,
};

/** Methods that carry a body: without one, they say so by a Content-Length of 0. */
const withBody: ReadonlySet<string> = new Set(["PUT", "POST", "MERGE", "PATCH"]);

/** True if the request should announce the length of its body, and does not. */
export const lacksLength = ({ method, headers }: Pick<HttpRequest, "method" | "headers">): boolean =>
  withBody.has(method) && headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
