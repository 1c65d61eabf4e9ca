/** A request of the Queue service whose operation is known. */
import type { Parsed, QueueResource, Target } from "@stamp/azure-rest";
import type { LocatedQueue, QueueAddress, Queues } from "../../objects/queues.ts";
import type { Answer, Exchange } from "../exchange.ts";

export interface QueueExchange extends Exchange {
  readonly target: Target & QueueResource;
}

export type QueueOperationHandler = (exchange: QueueExchange) => Promise<Answer>;

export const queuesOf = ({ objects }: QueueExchange): Queues => objects.parts.queues;

export const addressOf = ({ target: { account, queue = "" } }: QueueExchange): QueueAddress => ({ account, queue });

/** True if the rows here are another stamp's, or become so: a look at them writes nothing. */
export const isOfCopy = ({ account: { role } }: QueueExchange): boolean => role !== undefined && role.role !== "primary";

/** Returns the queue of the request, by a read of its row that is sent now or later. */
export const queueOfRequest = (exchange: QueueExchange): Promise<Parsed<LocatedQueue>> =>
  queuesOf(exchange).locate(addressOf(exchange), exchange.limits());
