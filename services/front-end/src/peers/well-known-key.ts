/** Decides which requests may use the well-known key. */
import { isOwnHost, isTrusted, type Network } from "@stamp/azure-rest";
import type { CallContext, HttpRequest } from "@stamp/ports";
import { addressOfPeer, isLocalCall, isLocalRequest } from "../accounts/local-requests.ts";

export interface WellKnownKeyRules {
  readonly servedTo: "everybody" | "thisMachine" | "nobody";
  readonly trustedProxies: readonly Network[];
  /** Patterns of further hosts, besides those that no stranger can own. */
  readonly hosts: readonly string[];
  /** Suffixes of hosts that have the account in front. */
  readonly hostSuffixes: readonly string[];
}

type From = Pick<HttpRequest, "headers" | "remoteAddress">;

/** True if the well-known key counts for this request, seen through the trusted proxies. */
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

/** True if the well-known key counts for a gRPC call. No browser makes one, so there is no name of a host to look at. */
export function callTakesWellKnownKey(
  { servedTo, trustedProxies }: WellKnownKeyRules,
  call: Pick<CallContext, "peer" | "metadata">,
): boolean {
  switch (servedTo) {
    case "everybody":
      return true;
    case "thisMachine":
      return isLocalCall(call) && !isTrusted(trustedProxies, addressOfPeer(call.peer));
    case "nobody":
      return false;
  }
}
