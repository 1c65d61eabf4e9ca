/**
 * Changes of entities, alone or as a transaction ("Performing entity group transactions"), and reading one. All changes of a transaction
 * have one PartitionKey and are decided and committed together: the first that can't be done is named, and nothing is written.
 */

import { type ServiceError, serviceError } from "../errors.ts";
import { answer, type Decision, errorAnswer, fail, getRow, type Plan, type PlanContext, type RowWrite, refuse } from "../plan.ts";
import { decodeEntity, type EntityState, encodeEntity, entityBytes, entityBytesMax, propertiesMax, timestampOf } from "./entity-rows.ts";
import { entityKey, partitionPrefix } from "./keys.ts";
import type { ChangeEntities, Entity, EntityChange, EntityProperties, GetEntity } from "./operation.ts";

/** Most changes in one transaction. */
export const changesMax = 100;

export function* changeEntities(value: ChangeEntities, context: PlanContext): Plan {
  const { table, partitionKey, changes } = value;
  if (changes.length === 0 || changes.length > changesMax) return refuse("badRequest", `1 to ${changesMax} changes, not ${changes.length}`);
  const prefix = partitionPrefix(context.rules, table, partitionKey);
  const timestamps: bigint[] = [];
  const writes: RowWrite[] = [];
  const seen = new Set<string>();
  for (const [index, change] of changes.entries()) {
    if (seen.has(change.rowKey)) return failedAt(index, serviceError("InvalidDuplicateRow"));
    seen.add(change.rowKey);
    const key = entityKey(prefix, change.rowKey);
    const row = yield* getRow(key);
    const state = row && decodeEntity(row);
    const error = refusalOf(change, state);
    if (error) return failedAt(index, error);
    if (change.action === "delete") {
      timestamps.push(state?.timestamp ?? 0n);
      writes.push({ kind: "delete", key });
      continue;
    }
    const timestamp = timestampOf(context.wallMs, context.sequence, state?.timestamp);
    const properties = propertiesAfter(change, state);
    if (properties.length > propertiesMax) return failedAt(index, serviceError("TooManyProperties"));
    if (entityBytes(partitionKey, change.rowKey, properties) > entityBytesMax) return failedAt(index, serviceError("EntityTooLarge"));
    timestamps.push(timestamp);
    writes.push({ kind: "put", key, value: encodeEntity({ timestamp, properties }) });
  }
  return answer({ case: "table", value: { case: "changed", value: { timestamps } } }, writes);
}

const failedAt = (index: number, { code, details }: ServiceError): Decision =>
  errorAnswer(serviceError(code, { ...details, index: String(index) }));

/** Returns the refusal of an entity's change; undefined: it can be done. */
function refusalOf({ action, ifTimestamp }: EntityChange, state: EntityState | undefined): ServiceError | undefined {
  switch (action) {
    case "insert":
      return state ? serviceError("EntityAlreadyExists") : undefined;
    case "insertOrReplace":
    case "insertOrMerge":
      return undefined;
    default:
      if (!state) return serviceError("ResourceNotFound");
      return ifTimestamp === undefined || ifTimestamp === state.timestamp ? undefined : serviceError("UpdateConditionNotSatisfied");
  }
}

function propertiesAfter({ action, properties }: EntityChange, state: EntityState | undefined): EntityProperties {
  if (!state || (action !== "merge" && action !== "insertOrMerge")) return properties;
  const merged = new Map(state.properties.map((property) => [property.name, property]));
  for (const property of properties) merged.set(property.name, property);
  return [...merged.values()];
}

export function* getEntity(value: GetEntity, context: PlanContext): Plan {
  const { table, partitionKey, rowKey, select } = value;
  const row = yield* getRow(entityKey(partitionPrefix(context.rules, table, partitionKey), rowKey));
  if (!row) return fail("ResourceNotFound");
  return answer({ case: "table", value: { case: "entity", value: entityOf({ partitionKey, rowKey }, decodeEntity(row), select) } });
}

export function entityOf(key: { partitionKey: string; rowKey: string }, state: EntityState, select: readonly string[]): Entity {
  const { timestamp, properties } = state;
  return { ...key, timestamp, properties: select.length === 0 ? properties : properties.filter(({ name }) => select.includes(name)) };
}
