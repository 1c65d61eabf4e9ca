/**
 * Rewrites answers of the service so that the SDK of tables shows entities as they are.
 *
 * - The service writes the Double 5 as 5.0 and without a type, JSON.parse makes 5 of it, and the SDK an Int32: who edits the entity would
 *   change the type of the property.
 * - The SDK puts keys and ETag into fields that properties of these names overwrite: who deletes or edits the entity would delete or edit
 *   another one, which the writer of the properties chose. They get an "@" before their names, which nothing can be written with.
 */
import type { TableServiceClientOptions } from "@azure/data-tables";

type Policies = NonNullable<TableServiceClientOptions["additionalPolicies"]>;

/** Before the SDK parses an answer: behind "Retry" on the way of a request, which answers go backwards. */
export const exactEntities: Policies = [
  {
    position: "perRetry",
    policy: {
      name: "exactEntities",
      async sendRequest(request, next) {
        const answer = await next(request);
        if (typeof answer.bodyAsText === "string") answer.bodyAsText = rewritten(answer.bodyAsText);
        return answer;
      },
    },
  },
];

/** Text that is no JSON stays. */
function rewritten(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text, exact));
  } catch {
    return text;
  }
}

const fieldsOfSdk = ["partitionKey", "rowKey", "timestamp", "etag", "__proto__"];

/** Adds the type to each number that has a point or an exponent, and renames a property that the SDK takes for a field of its own. */
function exact(this: Record<string, unknown>, key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isTaken = fieldsOfSdk.includes(key) && "PartitionKey" in this;
  const shown = isTaken ? `@${key}` : key;
  const isDouble = typeof value === "number" && /[.eE]/.test(context?.source ?? "");
  const type = this[`${key}@odata.type`] ?? (isDouble ? "Edm.Double" : undefined);
  if (type !== undefined) this[`${shown}@odata.type`] = type;
  if (!isTaken) return value;
  this[shown] = value;
  return undefined;
}
