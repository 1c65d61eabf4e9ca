/**
 * Lets the SDK of tables know a Double by its digits. The service writes the Double 5 as 5.0 and without a type, JSON.parse makes 5 of it, and
 * the SDK an Int32: who edits the entity would change the type of the property.
 */
import type { TableServiceClientOptions } from "@azure/data-tables";

type Policies = NonNullable<TableServiceClientOptions["additionalPolicies"]>;

/** Before the SDK parses an answer: behind "Retry" on the way of a request, which answers go backwards. */
export const typedDoubles: Policies = [
  {
    position: "perRetry",
    policy: {
      name: "typedDoubles",
      async sendRequest(request, next) {
        const answer = await next(request);
        if (typeof answer.bodyAsText === "string") answer.bodyAsText = withTypes(answer.bodyAsText);
        return answer;
      },
    },
  },
];

/** Adds the type to each number that has a point or an exponent, as the service adds others. Text that is no JSON stays. */
export function withTypes(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text, typed));
  } catch {
    return text;
  }
}

function typed(this: Record<string, unknown>, key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value === "number" && /[.eE]/.test(context?.source ?? "")) this[`${key}@odata.type`] ??= "Edm.Double";
  return value;
}
