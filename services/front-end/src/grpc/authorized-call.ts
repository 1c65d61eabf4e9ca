/** How the handlers of this door get the token of a call checked first. */
import type { Parsed } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import type { CallContext } from "@stamp/ports";
import type { CallLimits } from "../routing/router.ts";

/** A handler of requests whose token is for their account. `operation`: its name in the REST reference. */
export type AuthorizedCall = <R extends { readonly account: string }, T>(
  operation: string,
  work: (request: R, limits: CallLimits) => Promise<Parsed<T>>,
) => (request: R, context: CallContext) => Promise<Outcome<T>>;
