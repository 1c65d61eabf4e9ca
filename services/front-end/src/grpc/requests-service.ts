/** `stamp.v1.Requests` over the requests of `http/request-trace.ts`. */
import { FailureError, ok, refused } from "@stamp/base";
import type { CallContext, Handlers } from "@stamp/ports";
import { type FollowRequest, type Requests, toWire } from "@stamp/wire";
import type { EndedRequest, RequestTrace } from "../http/request-trace.ts";

export function requestsHandlers(trace: RequestTrace): Handlers<typeof Requests> {
  return {
    countByAccount: async () =>
      ok({
        accounts: trace.accounts.map(({ requests, clientErrors, serverErrors, ...count }) => ({
          ...count,
          requests: toWire(requests),
          clientErrors: toWire(clientErrors),
          serverErrors: toWire(serverErrors),
        })),
      }),
    follow: (request, context) => follow(trace, request, context),
  };
}

async function* follow(trace: RequestTrace, wanted: FollowRequest, context: CallContext) {
  const following = trace.follow(wanted);
  if (following === undefined)
    throw new FailureError(refused("resourceExhausted", "overloaded", "this front-end has as many followers as it takes").failure);
  try {
    yield { requests: [], missed: 0n };
    while (!context.aborted && !trace.ended) {
      const { requests, missed } = await following.next(context.signal);
      if (requests.length > 0 || missed > 0) yield { requests: requests.map(ended), missed: toWire(missed) };
    }
    if (!context.aborted) throw new FailureError(refused("unavailable", "stopping", "this front-end stops").failure);
  } finally {
    following.close();
  }
}

const ended = ({ endedMs, ...request }: EndedRequest) => ({ ...request, endedMs: toWire(Math.round(endedMs)) });
