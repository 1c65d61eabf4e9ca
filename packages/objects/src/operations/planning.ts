/** The plan of every operation. */
import { guarded } from "../blobs/protect/protection.ts";
import { besideHandles } from "../handles/handle-steps.ts";
import { type BlobName, blobPrefix } from "../object-keys.ts";
import type { Operation } from "../operation.ts";
import type { Plan, PlanContext } from "../plan.ts";
import { inTree } from "../tree/in-tree.ts";
import { isRead, unguardedPlanOf } from "./rows.ts";

/**
 * Returns the plan of an operation. `guarded` keeps protected states as they are, whatever the operation; `inTree` lets nothing be written to a
 * file that is removed or about to be; `besideHandles` looks at who has the file of a share open.
 */
export function planOf(operation: Operation, context: PlanContext): Plan {
  const name = blobOfOperation(operation);
  if (name === undefined) return unguardedPlanOf(operation, context);
  const unguarded = besideHandles(blobPrefix(context.rules, name), operation, context, unguardedPlanOf(operation, context));
  if (isRead(operation)) return unguarded;
  const plan = context.policy.hierarchical ? inTree(blobPrefix(context.rules, name), unguarded) : unguarded;
  const policy = operation.case === "setImmutabilityPolicy" || operation.case === "deleteImmutabilityPolicy";
  return guarded(blobPrefix(context.rules, name), context, { hold: operation.case === "setLegalHold", policy }, plan);
}

const blobOfOperation = ({ value }: Operation): BlobName | undefined =>
  "name" in value && typeof value.name === "object" ? value.name : undefined;
