/** `stamp.v1.Signals` over the listeners of `signals.ts`. Each call is authorized by a token of its account. */
import { FailureError, ok, refused } from "@stamp/base";
import type { CallContext, Handlers } from "@stamp/ports";
import type { Signals as SignalsService, SubscribeRequest } from "@stamp/wire";
import { checkToken, type TokenParts } from "../accounts/account-token.ts";
import { Signals } from "./signals.ts";

interface Parts extends TokenParts {
  readonly signals: Signals;
}

interface Topic {
  readonly account: string;
  readonly topic: string;
}

export function signalsHandlers(parts: Parts): Handlers<typeof SignalsService> {
  const { signals } = parts;
  const check = async ({ account, topic }: Topic, context: CallContext) => {
    const limits = { deadlineMs: context.deadlineMs, signal: context.signal };
    const allowed = await checkToken(parts, account, context, limits);
    if (allowed.ok && !Signals.isTopic(topic)) return refused("invalidArgument", "badRequest", "topic must have 1 to 1,024 characters");
    return allowed;
  };
  return {
    publish: async (request, context) => {
      const allowed = await check(request, context);
      return allowed.ok ? ok({ listeners: signals.publish(request.account, request.topic) }) : allowed;
    },
    subscribe: (request, context) => subscribe(request, context),
  };

  async function* subscribe(request: SubscribeRequest, context: CallContext) {
    const allowed = await check(request, context);
    if (!allowed.ok) throw new FailureError(allowed.failure);
    const subscription = signals.subscribe(request.account, request.topic);
    if (subscription === undefined) {
      const full = refused("resourceExhausted", "overloaded", "this front-end has as many listeners as it takes; try another one");
      throw new FailureError(full.failure);
    }
    try {
      yield { signals: 0 };
      while (!context.aborted && !signals.ended) {
        const count = await subscription.next(context.signal);
        if (count > 0) yield { signals: count };
      }
      if (!context.aborted) throw new FailureError(refused("unavailable", "stopping", "this front-end stops; try another one").failure);
    } finally {
      subscription.close();
    }
  }
}
