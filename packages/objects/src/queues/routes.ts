/** Where queues and messages belong. Takes the wire's values as well as ours: only names are looked at. */
import { assert, type Rules } from "@stamp/base";
import { type ListStart, listStart } from "../list-start.ts";
import type { Route } from "../operations/row.ts";
import { messagesPrefix, queueKey, queuesPrefix } from "./queue-keys.ts";

interface Address {
  readonly account: string;
  readonly queue: string;
}

export const queueRoute = (_rules: Rules, { account, queue }: Address): Route => ({ table: "Message", key: queueKey(account, queue) });

export const queuesRoute = (_rules: Rules, value: { readonly account: string } & ListStart): Route => ({
  table: "Message",
  key: listStart((text) => queuesPrefix(value.account, text), value),
});

export function messagesRoute(
  rules: Rules,
  { queue: name }: { readonly queue?: (Address & { readonly incarnation: number | bigint }) | undefined },
): Route {
  assert(name !== undefined, "an operation on messages names its queue");
  const { account, queue, incarnation } = name;
  return { table: "Message", key: messagesPrefix(rules, { account, queue, incarnation: Number(incarnation) }) };
}
