/** For which requests the key that everybody knows is good. */
import { isOwnHost, isTrusted, type Network } from "@stamp/azure-rest";
import type { HttpRequest } from "@stamp/ports";
import { isLocalRequest } from "../accounts/local-requests.ts";

export interface WellKnownKeyRules {
  readonly servedTo: "everybody" | "thisMachine" | "nobody";
  readonly trustedProxies: readonly Network[];
  /** Patterns of hosts, besides those that no stranger can own. */
  readonly hosts: readonly string[];
  /** Suffixes of hosts that have the account in front. */
  readonly hostSuffixes: readonly string[];
}

type From = Pick<HttpRequest, "headers" | "remoteAddress">;

/** True if the well-known key counts for this request, as it is seen through the trusted proxies. */
export function takesWellKnownKey({ servedTo, trustedProxies, hosts, hostSuffixes }: WellKnownKeyRules, request: From): boolean {
  switch (servedTo) {
    case "everybody":
      return isOwnHost(request.headers.host ?? "", hosts, hostSuffixes);
    case "thisMachine":
      // A trusted proxy on this machine that adds no header is not this machine's client either.
      return isLocalRequest(request) && !isTrusted(trustedProxies, request.remoteAddress);
    case "nobody":
      return false;
  }
}
