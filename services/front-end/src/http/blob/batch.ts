/**
 * Blob Batch, of an account or a container: every request in it is let in on its own and answered in its order. It is not atomic: what
 * one request does stays done when another fails.
 */
import {
  type BatchAnswer,
  type BatchRequest,
  type BlobOperationName,
  batchAnswerText,
  batchBytesMax,
  errorBody,
  formatIso,
  olderBlob,
  parseBatch,
  parseBatchBoundary,
  parseBlobResource,
  parseTarget,
  type RestError,
  reasonPhraseOf,
  restError,
} from "@stamp/azure-rest";
import { fromUtf8, utf8 } from "@stamp/base";
import { type HttpResponse, uuid } from "@stamp/ports";
import { lengthWithin, wholeBody } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import type { BlobExchange } from "./exchange.ts";

/** Operations that the service allows in a batch. */
const batched: ReadonlySet<string> = new Set<BlobOperationName | "SetBlobTier">(["DeleteBlob", "SetBlobTier"]);
const atOnceMax = 8;

export async function blobBatch(exchange: BlobExchange): Promise<Answer> {
  const length = lengthWithin(exchange, batchBytesMax);
  if (!length.ok) return length;
  const body = await wholeBody(exchange, length.value);
  if (!body.ok) return body;
  const boundary = parseBatchBoundary(exchange.headers["content-type"]);
  const requests = boundary.ok ? parseBatch(body.value, boundary.value) : boundary;
  // The service answers a batch that it can't read with one part, however many requests the batch has.
  if (!requests.ok) return batchAnswer(exchange, [refusal(exchange, undefined, requests.error)]);
  const answers = new Array<BatchAnswer>(requests.value.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < requests.value.length; at = next++) {
      answers[at] = await answerOf(exchange, requests.value[at] as BatchRequest);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnceMax, requests.value.length) }, worker));
  return batchAnswer(exchange, answers);
}

function batchAnswer(exchange: BlobExchange, answers: readonly BatchAnswer[]): Answer {
  const named = `batchresponse_${uuid(exchange.objects.parts.world.random)}`;
  return respond(202, { "Content-Type": `multipart/mixed; boundary=${named}` }, utf8(batchAnswerText(named, answers)));
}

const invalid = (reason: string): RestError => restError("InvalidInput", { Reason: reason });

async function answerOf(exchange: BlobExchange, request: BatchRequest): Promise<BatchAnswer> {
  const { contentId } = request;
  if (!inScope(exchange, request))
    return refusal(exchange, contentId, invalid("The request is not about a blob of the batch's container."));
  // By the reference it has none; clients of object_store send that of the batch, and an empty one says nothing.
  const version = request.headers["x-ms-version"];
  if (version && version !== exchange.headers["x-ms-version"]) {
    return refusal(exchange, contentId, invalid("A request of a batch has no version of its own."));
  }
  // The account is found in the path, or in the host of the whole batch.
  const { host: _host, ...own } = request.headers;
  const { status, reason, headers, body } = await exchange.inner({ ...request, headers: own }, batched);
  const { Server: _server, ...shown } = headers;
  return { contentId, status, statusText: reason ?? (status === 202 ? "Accepted" : "OK"), headers: shown, body: textOf(body) };
}

/** Bodies are errors: short, and whole. */
const textOf = (body: HttpResponse["body"]): string => (body instanceof Uint8Array ? fromUtf8(body) : "");

/** True if the requests of a container's batch are about blobs of that container. */
function inScope(exchange: BlobExchange, { target }: BatchRequest): boolean {
  const { container, account } = exchange.target;
  if (container === undefined) return true;
  const parsed = parseTarget(target, exchange.headers.host ?? "", { hostSuffixes: exchange.hostSuffixes });
  if (!parsed.ok || parsed.value.account !== account) return false;
  const resource = parseBlobResource(parsed.value);
  const older = olderBlob(parsed.value);
  return resource.ok && resource.value.container === container && (older === undefined || older.container === container);
}

function refusal(exchange: BlobExchange, contentId: string | undefined, error: RestError): BatchAnswer {
  const { world } = exchange.objects.parts;
  return {
    contentId,
    status: error.status,
    statusText: reasonPhraseOf(error),
    headers: { "x-ms-error-code": error.code, "Content-Type": "application/xml" },
    body: errorBody(error, uuid(world.random), formatIso(world.clock.wallMs())),
  };
}
