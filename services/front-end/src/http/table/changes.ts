/**
 * A request that changes one entity, as a change: the same for a request of its own and for one inside a transaction. Update, Merge and
 * Delete Entity need If-Match: an ETag, or `*` for whatever is there.
 */
import {
  checkContentType,
  type EntityBody,
  type HttpHeaders,
  type Parsed,
  parsed,
  parseEntity,
  refuseConditions,
  rejected,
  type TableOperationName,
  type TableResource,
  tableConditions,
  timestampOfEtag,
} from "@stamp/azure-rest";
import type { EntityAction, EntityChange, EntityKey } from "@stamp/objects";

export const entityActions = {
  InsertEntity: "insert",
  UpdateEntity: "replace",
  MergeEntity: "merge",
  DeleteEntity: "delete",
  InsertOrReplaceEntity: "insertOrReplace",
  InsertOrMergeEntity: "insertOrMerge",
} as const satisfies Partial<Record<TableOperationName, EntityAction>>;

export type ChangeName = keyof typeof entityActions;
export const isChange = (operation: TableOperationName): operation is ChangeName => Object.hasOwn(entityActions, operation);

export interface RequestedChange {
  readonly partitionKey: string;
  readonly change: EntityChange;
}

export function changeOf(operation: ChangeName, resource: TableResource, headers: HttpHeaders, body: string): Parsed<RequestedChange> {
  const action = entityActions[operation];
  const condition = conditionOf(operation, headers);
  if (!condition.ok) return condition;
  if (action === "delete") {
    const key = keyOf(resource, {});
    return key.ok ? requested(key.value, { action, properties: [], ifTimestamp: condition.value }) : key;
  }
  const type = checkContentType(headers);
  if (!type.ok) return type;
  const entity = parseEntity(body);
  if (!entity.ok) return entity;
  const key = keyOf(resource, entity.value);
  if (!key.ok) return key;
  return requested(key.value, { action, properties: entity.value.properties, ifTimestamp: condition.value });
}

const requested = ({ partitionKey, rowKey }: EntityKey, change: Omit<EntityChange, "rowKey">): Parsed<RequestedChange> =>
  parsed({ partitionKey, change: { ...change, rowKey } });

/** Returns the key of the entity: from the URL, or from the body of an insert. If both have it, they must agree. */
function keyOf(resource: TableResource, body: Pick<EntityBody, "partitionKey" | "rowKey">): Parsed<EntityKey> {
  if (resource.kind !== "entity") {
    const { partitionKey, rowKey } = body;
    if (partitionKey === undefined || rowKey === undefined) return rejected("PropertiesNeedValue");
    return parsed({ partitionKey, rowKey });
  }
  const { partitionKey, rowKey } = resource;
  if ((body.partitionKey ?? partitionKey) !== partitionKey || (body.rowKey ?? rowKey) !== rowKey) {
    return rejected("PartitionKeyPropertyCannotBeUpdated");
  }
  return parsed({ partitionKey, rowKey });
}

/** Timestamp that no entity has: the Edm.DateTime of an entity is after 1601. */
const noTimestamp = -(2n ** 62n);

/** Returns the Timestamp that If-Match names; undefined: any state will do. */
function conditionOf(operation: ChangeName, headers: HttpHeaders): Parsed<bigint | undefined> {
  const conditions = refuseConditions(headers, tableConditions("PUT", operation));
  if (!conditions.ok) return conditions;
  const etag = headers["if-match"];
  if (etag === undefined || etag.trim() === "*") return parsed(undefined);
  const timestamp = timestampOfEtag(etag);
  if (timestamp !== undefined) return parsed(timestamp);
  // A well-formed ETag of another service or another time is the ETag of nothing here.
  if (/^W\/"[^"]*"$/.test(etag.trim())) return parsed(noTimestamp);
  return rejected("InvalidInput", { Reason: `The etag value '${etag}' specified in one of the request headers is not valid.` });
}
