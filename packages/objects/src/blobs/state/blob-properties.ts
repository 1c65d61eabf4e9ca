/** Tags, tier, expiry, immutability policy and legal hold of a blob, or of one of its snapshots or versions where the service has that. */
import { checkWriteConditions } from "../../conditions.ts";
import { lastModifiedMs } from "../../etag.ts";
import type { OperationValue } from "../../operation.ts";
import { answer, errorAnswer, fail, type Plan, type PlanContext, put } from "../../plan.ts";
import { timeMsMax } from "../../rows/row.ts";
import { changeHead, checkWrite, type FoundState, findState, isArchived, readBlob } from "./blob-state.ts";
import { blobOf, encodeHead, type HeadState } from "./head-row.ts";
import { text } from "./row-values.ts";

/** Returns the state with these changes; its ETag and time stay. */
function amend(context: PlanContext, blob: string, { key, head, stamp }: FoundState, change: Partial<HeadState>) {
  const next: HeadState = { ...head, ...change };
  return answer({ case: "blob", value: blobOf(context, blob, next, stamp) }, [put(key, encodeHead(next))]);
}

export function* setBlobTags(value: OperationValue<"setBlobTags">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, found.head, false);
  return error ? errorAnswer(error) : amend(context, value.name.blob, found, { tags: value.tags });
}

/**
 * Tiers are for block blobs. What was archived can be read again at once: nothing has to be fetched from anywhere. An archived snapshot or
 * version stays in the archive; a copy takes its content out.
 */
export function* setBlobTier(value: OperationValue<"setBlobTier">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, found.head, false);
  if (error) return errorAnswer(error);
  if (found.head.blobType !== "BlockBlob") return fail("InvalidBlobType");
  if (isArchived(found.head) && found.head.role !== "base" && value.tier !== "Archive") return fail("BlobOperationNotSupported");
  return amend(context, value.name.blob, found, { tier: { name: value.tier, changedMs: lastModifiedMs(context.wallMs, undefined) } });
}

export function* setBlobExpiry(value: OperationValue<"setBlobExpiry">, context: PlanContext): Plan {
  const { prefix, head } = yield* readBlob(context, value.name);
  if (!head) return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, head, false);
  if (error) return errorAnswer(error);
  const expiresMs = expiryOf(value, context, head);
  if (expiresMs !== undefined && (expiresMs <= context.wallMs || expiresMs > timeMsMax))
    return fail("InvalidHeaderValue", { HeaderName: "x-ms-expiry-time" });
  return changeHead(context, value.name, prefix, head, { expiresMs });
}

/** Sets access control and gives a new ETag: a change of a list is made of the list that its caller read. */
export function* setPathAccess(value: OperationValue<"setPathAccess">, context: PlanContext): Plan {
  const { prefix, head } = yield* readBlob(context, value.name);
  if (!head) return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, head, false);
  return error ? errorAnswer(error) : changeHead(context, value.name, prefix, head, { pathAccess: text(value.pathAccess) });
}

function expiryOf({ option, timeMs }: OperationValue<"setBlobExpiry">, context: PlanContext, head: HeadState): number | undefined {
  switch (option) {
    case "never":
      return undefined;
    case "absolute":
      return timeMs;
    case "relativeToNow":
      return context.wallMs + timeMs;
    case "relativeToCreation":
      return head.createdMs + timeMs;
  }
}

/** Sets a policy. A locked one can only be extended: `guarded` sees to it while it is in force, this also afterwards. */
export function* setImmutabilityPolicy(value: OperationValue<"setImmutabilityPolicy">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  const error = checkWriteConditions(value.conditions, found.head, false);
  if (error) return errorAnswer(error);
  if (value.untilMs <= context.wallMs || value.untilMs > timeMsMax)
    return fail("InvalidHeaderValue", { HeaderName: "x-ms-immutability-policy-until-date" });
  const { immutability } = found.head;
  const locked = immutability?.mode === "Locked";
  if (locked && (value.untilMs < immutability.untilMs || value.mode !== "Locked")) return fail("BlobImmutableDueToPolicy");
  return amend(context, value.name.blob, found, { immutability: { untilMs: value.untilMs, mode: value.mode } });
}

export function* deleteImmutabilityPolicy(value: OperationValue<"deleteImmutabilityPolicy">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  if (found.head.immutability?.mode === "Locked") return fail("BlobImmutableDueToPolicy");
  return amend(context, value.name.blob, found, { immutability: undefined });
}

export function* setLegalHold(value: OperationValue<"setLegalHold">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  return amend(context, value.name.blob, found, { legalHold: value.hold });
}
