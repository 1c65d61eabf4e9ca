/**
 * Operations on queues. A queue is one row; its incarnation is the sequence of the commit that created it, as with containers: deleting
 * the row makes everything inside unreachable at once.
 */
import { listBatchLimits, pageSize, spanOf } from "../lists.ts";
import type { Metadata } from "../object-keys.ts";
import { afterPrefix } from "../object-keys.ts";
import {
  answer,
  type Decision,
  done,
  fail,
  getRow,
  intact,
  type Plan,
  type PlanContext,
  type RowWrite,
  scanRows,
  successor,
} from "../plan.ts";
import { decodeKey } from "../rows/key.ts";
import type { SignedIdentifier } from "../signed-identifiers.ts";
import type { ListQueues, Queue, QueueAddress, QueueResultKind } from "./operation.ts";
import { queueKey, queuesPrefix } from "./queue-keys.ts";
import { decodeQueue, encodeQueue, type QueueState, queueOf } from "./queue-rows.ts";
import { queuesRoute } from "./routes.ts";

const result = (kind: QueueResultKind, writes: readonly RowWrite[] = []): Decision => answer({ case: "queue", value: { kind } }, writes);

function* readQueue({ account, queue }: QueueAddress): Plan<QueueState | undefined> {
  const row = yield* getRow(queueKey(account, queue));
  return row ? decodeQueue(row) : undefined;
}

const put = ({ account, queue }: QueueAddress, state: QueueState): RowWrite => ({
  kind: "put",
  key: queueKey(account, queue),
  value: encodeQueue(state),
});

/** Creates a queue. One that is there with the same metadata counts as made. */
export function* createQueue(value: QueueAddress & { readonly metadata: Metadata }, context: PlanContext): Plan {
  const there = yield* readQueue(value);
  if (there) {
    return sameMetadata(there.metadata, value.metadata)
      ? result({ case: "queue", value: queueOf(value.queue, there) })
      : fail("QueueAlreadyExists");
  }
  const state: QueueState = {
    createdMs: Math.floor(context.wallMs),
    metadata: value.metadata,
    incarnation: context.sequence,
    signedIdentifiers: [],
  };
  return result({ case: "queue", value: queueOf(value.queue, state, true) }, [put(value, state)]);
}

function sameMetadata(a: Metadata, b: Metadata): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

export function* getQueue(value: QueueAddress): Plan {
  const state = yield* readQueue(value);
  return state ? result({ case: "queue", value: queueOf(value.queue, state) }) : fail("QueueNotFound");
}

export const setQueueMetadata = (value: QueueAddress & { readonly metadata: Metadata }): Plan =>
  changeQueue(value, { metadata: value.metadata });

export const setQueueAcl = (value: QueueAddress & { readonly signedIdentifiers: readonly SignedIdentifier[] }): Plan =>
  changeQueue(value, { signedIdentifiers: value.signedIdentifiers });

function* changeQueue(address: QueueAddress, change: Partial<QueueState>): Plan {
  const state = yield* readQueue(address);
  if (!state) return fail("QueueNotFound");
  const next = { ...state, ...change };
  return result({ case: "queue", value: queueOf(address.queue, next) }, [put(address, next)]);
}

export function* deleteQueue(value: QueueAddress): Plan {
  if (!(yield* readQueue(value))) return fail("QueueNotFound");
  return answer(done, [{ kind: "delete", key: queueKey(value.account, value.queue) }]);
}

export function* listQueues(value: ListQueues, context: PlanContext): Plan {
  const start = queuesRoute(context.rules, value).key;
  const span = spanOf(context, start, afterPrefix(queuesPrefix(value.account, value.prefix)));
  const queues: Queue[] = [];
  const size = pageSize(value.maxResults);
  for (let low = span.low, more = true; more; ) {
    const rowsMax = Math.min(listBatchLimits.rowsMax, size - queues.length + 1);
    const page = yield* scanRows(low, span.high, { ...listBatchLimits, rowsMax });
    for (const row of page.rows) {
      const name = String(intact(decodeKey(row.key))[1]?.[1]);
      if (queues.length === size) return result({ case: "queues", value: { queues, nextMarker: name, rangeEnded: false } });
      queues.push(queueOf(name, decodeQueue(row.value)));
      low = successor(row.key);
    }
    more = page.more;
  }
  return result({ case: "queues", value: { queues, nextMarker: "", rangeEnded: span.cut } });
}
