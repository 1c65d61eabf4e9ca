/**
 * Conditional headers, as the service evaluates them ("Specifying conditional headers for Blob service operations").
 *
 *   ETags   If-Match compares strongly: a weak ETag (`W/"…"`) fits nothing. If-None-Match compares weakly (RFC 9110, 8.8.3.2), for proxies
 *           make ETags weak when they compress an answer.
 *   reads   If-Match && If-Unmodified-Since && (If-None-Match || If-Modified-Since), any combination; several ETags separated by commas.
 *           The first two give 412, the bracket gives 304.
 *   writes  one header, or If-Match with If-Unmodified-Since (If-Match decides), or If-None-Match with If-Modified-Since
 *           (If-None-Match decides); 412 always. If-None-Match: * on something that is there is 409 BlobAlreadyExists where the
 *           operation could have created it.
 *   tags    x-ms-if-tags, with any of them: 412 when the blob's tags don't fulfil it.
 */
import { type ServiceError, serviceError } from "./errors.ts";
import { sequenceOfEtag } from "./etag.ts";
import type { Metadata } from "./object-keys.ts";
import type { Conditions } from "./operation.ts";
import { holds, parseWhere } from "./tags/where.ts";

/** State that conditions are compared with; undefined if there is no such object. */
export interface ConditionedState {
  readonly etagSequence: number;
  readonly lastModifiedMs: number;
  /** Tags of the blob. */
  readonly tags?: Metadata;
}

export const notModified: ServiceError = serviceError("ConditionNotMet", { status: "304" });
export const preconditionFailed: ServiceError = serviceError("ConditionNotMet", { status: "412" });

const tagsOf = (header: string): string[] => header.split(",").map((tag) => tag.trim());

const matchesAny = (header: string, state: ConditionedState): boolean =>
  tagsOf(header).some((tag) => tag === "*" || sequenceOfEtag(tag) === state.etagSequence);

const noneMatches = (header: string, state: ConditionedState): boolean =>
  !matchesAny(
    tagsOf(header)
      .map((tag) => tag.replace(/^W\/(?=")/, ""))
      .join(),
    state,
  );

/** True if the tags fulfil the expression. The front-end refuses an unreadable one; here nothing fulfils it. */
function tagsFulfil(ifTags: string, state: ConditionedState | undefined): boolean {
  const parsed = parseWhere(ifTags, "condition");
  return parsed.ok && state !== undefined && holds(parsed.where, state.tags ?? {});
}

const wholeSeconds = (ms: number): number => Math.floor(ms / 1000) * 1000;

/** Checks the conditions of a read of an object that exists; undefined: the read may go on. */
export function checkReadConditions(conditions: Conditions, state: ConditionedState): ServiceError | undefined {
  const { ifMatch, ifNoneMatch, ifModifiedSinceMs, ifUnmodifiedSinceMs, ifTags } = conditions;
  if (ifTags !== undefined && !tagsFulfil(ifTags, state)) return preconditionFailed;
  if (ifMatch !== undefined && !matchesAny(ifMatch, state)) return preconditionFailed;
  if (ifUnmodifiedSinceMs !== undefined && state.lastModifiedMs > wholeSeconds(ifUnmodifiedSinceMs)) return preconditionFailed;
  const bracket: boolean[] = [];
  if (ifNoneMatch !== undefined) bracket.push(noneMatches(ifNoneMatch, state));
  if (ifModifiedSinceMs !== undefined) bracket.push(state.lastModifiedMs > wholeSeconds(ifModifiedSinceMs));
  return bracket.length > 0 && !bracket.includes(true) ? notModified : undefined;
}

/** Checks the conditions of a write; `creates`: it makes an object that is absent. Undefined: the write may go on. */
export function checkWriteConditions(
  conditions: Conditions,
  state: ConditionedState | undefined,
  creates: boolean,
): ServiceError | undefined {
  const { ifMatch, ifNoneMatch, ifModifiedSinceMs, ifUnmodifiedSinceMs, ifTags } = conditions;
  if (conditions.createOnly && state) return serviceError("UnauthorizedBlobOverwrite");
  const matchSide = ifMatch !== undefined || ifUnmodifiedSinceMs !== undefined;
  const noneMatchSide = ifNoneMatch !== undefined || ifModifiedSinceMs !== undefined;
  if (matchSide && noneMatchSide) return serviceError("MultipleConditionHeadersNotSupported");
  if (ifTags !== undefined && !tagsFulfil(ifTags, state)) return preconditionFailed;
  if (ifMatch !== undefined) return state && matchesAny(ifMatch, state) ? undefined : preconditionFailed;
  if (!state) return undefined;
  if (ifNoneMatch !== undefined) {
    if (noneMatches(ifNoneMatch, state)) return undefined;
    return creates && tagsOf(ifNoneMatch).includes("*") ? serviceError("BlobAlreadyExists") : preconditionFailed;
  }
  if (ifUnmodifiedSinceMs !== undefined && state.lastModifiedMs > wholeSeconds(ifUnmodifiedSinceMs)) return preconditionFailed;
  if (ifModifiedSinceMs !== undefined && state.lastModifiedMs <= wholeSeconds(ifModifiedSinceMs)) return preconditionFailed;
  return undefined;
}
