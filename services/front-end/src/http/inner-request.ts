/** A request that comes inside of another one, as a part of a batch does. */
import type { HttpRequest } from "@stamp/ports";
import { noBody } from "./answer-bodies.ts";
import type { RequestCaller } from "./authorize.ts";
import type { InnerRequest } from "./exchange.ts";

/** Facts of an outer request, for a request inside of it. */
export interface OuterRequest {
  /** Version of the outer request, which the inner one takes over. */
  readonly version: string;
  readonly only: ReadonlySet<string>;
  /** True if the key that everybody knows counts for the outer request (peers/well-known-key.ts). */
  readonly wellKnown: boolean;
  /** Caller of the outer request; undefined: the inner one is let in on its own. */
  readonly asker?: RequestCaller;
}

export function innerRequest(outer: HttpRequest, { method, target, headers }: InnerRequest): HttpRequest {
  const host = outer.headers.host === undefined ? {} : { host: outer.headers.host };
  const { remoteAddress, secure, signal } = outer;
  return { method, target, headers: { ...host, ...headers }, body: noBody, remoteAddress, secure, signal };
}
