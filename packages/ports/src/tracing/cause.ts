/**
 * The client's request that causes work. It goes along as metadata of calls, from a front-end to partition servers and extent nodes, so that
 * log lines and spans of all of them have the id that the client got in `x-ms-request-id`.
 */
import type { CallOptions } from "../transport.ts";

/** Metadata of a call. */
export type Cause = {
  /** Id of the request. Work for several requests, as an append of a group commit, has their ids with commas between. */
  readonly "request-id": string;
  /** Span above this work, as W3C Trace Context writes it; absent if the request is not traced. */
  readonly traceparent?: string;
};

/** Most requests whose ids go along with work for several. */
const idsMax = 16;
const ids = /^[\w-]{1,64}(,[\w-]{1,64}){0,15}$/;
const traceparents = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns the text if it is a traceparent of version 00; undefined for anything else. */
export const traceparentOf = (text: string | undefined): string | undefined =>
  text !== undefined && traceparents.test(text) ? text : undefined;

/**
 * Reads the cause from the metadata of a call; undefined if the caller told none. A client of gRPC with a span of its own sends no id of a
 * request: the id of its trace stands for it.
 */
export function causeOf(metadata: Readonly<Record<string, string>>): Cause | undefined {
  const traceparent = traceparentOf(metadata.traceparent);
  const id = metadata["request-id"] ?? traceparent?.split("-")[1];
  if (id === undefined || !ids.test(id)) return undefined;
  return traceparent === undefined ? { "request-id": id } : { "request-id": id, traceparent };
}

/** Returns the options of calls that are made for this cause. */
export const causedBy = (cause: Cause | undefined): Pick<CallOptions, "metadata"> => (cause === undefined ? {} : { metadata: cause });

/** Joins the causes of work that is done at once: ids of the first 16; the span of the first that is traced. */
export function causedTogether(causes: readonly (Cause | undefined)[]): Cause | undefined {
  const known = causes.filter((cause) => cause !== undefined);
  const [first] = known;
  if (first === undefined || known.length === 1) return first;
  const id = known
    .flatMap((cause) => cause["request-id"].split(","))
    .slice(0, idsMax)
    .join(",");
  const traceparent = known.find((cause) => cause.traceparent !== undefined)?.traceparent;
  return traceparent === undefined ? { "request-id": id } : { "request-id": id, traceparent };
}
