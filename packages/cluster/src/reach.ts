/**
 * Reach of a cluster's ports, and the account with which strangers come in: warnings for a person who binds it beyond
 * loopback.
 */

import type { ClusterConfig } from "./config.ts";
import { type ClusterPlan, servedAccount } from "./plan.ts";
import { isBeyondLoopback } from "./topology/addresses.ts";

/** Returns the REST ports that other machines can reach, in words; undefined if none. */
export function restReachOf(config: ClusterConfig, plan: Pick<ClusterPlan, "httpPorts">): string | undefined {
  return isBeyondLoopback(config.httpBind) ? `REST on ${spans([...plan.httpPorts.keys()])}` : undefined;
}

/** Returns the internal ports that other machines can reach, in words; undefined if none. */
export function internalReachOf(config: ClusterConfig, plan: Pick<ClusterPlan, "internalPorts">): string | undefined {
  if (!isBeyondLoopback(config.internalBind)) return undefined;
  const wanted = [...plan.internalPorts];
  const portsOf = (pattern: RegExp): string => spans(wanted.filter(([, what]) => pattern.test(what)).map(([port]) => port));
  return (
    `gRPC on ${portsOf(/^gRPC/)}, where callers prove the secret of the cluster; ` +
    `/live, /ready and /metrics on ${portsOf(/^readiness/)}, which answer everybody`
  );
}

/** Returns why no account of the configuration is served; undefined if one is. */
export function noAccountServed(config: ClusterConfig): string | undefined {
  if (servedAccount(config) !== undefined) return undefined;
  return (
    "the configuration names only devstoreaccount1, whose key everybody knows, and it is refused because other machines can connect. " +
    "Make an account: ./stamp account create NAME"
  );
}

/** Returns what a person should know of a start that others can reach. `addresses`: of this machine, besides loopback. */
export function reachRemarks(
  config: ClusterConfig,
  plan: Pick<ClusterPlan, "httpPorts" | "internalPorts">,
  addresses: readonly string[],
): string[] {
  const none = noAccountServed(config);
  return [
    ...internalRemarks(config, internalReachOf(config, plan)),
    ...restRemarks(config, restReachOf(config, plan), addresses),
    ...(none === undefined ? [] : [none]),
  ];
}

function internalRemarks({ internalBind, topology }: ClusterConfig, reach: string | undefined): string[] {
  if (reach === undefined) return [];
  return [
    `internalBind is ${internalBind}: other machines reach ${reach}. Let a firewall pass only the stamp's own machines ` +
      `(docs/guides/internal-ports.md)${topology === undefined ? ", or close these ports: --internal-bind 127.0.0.1" : ""}`,
  ];
}

function restRemarks(config: ClusterConfig, reach: string | undefined, addresses: readonly string[]): string[] {
  if (reach === undefined) return [];
  const remarks = [`httpBind is ${config.httpBind}: other machines reach ${reach}`];
  if (config.httpBind === "0.0.0.0" || config.httpBind === "::")
    remarks.push(
      `clients on other machines put an address of this one in place of 127.0.0.1: ${addresses.join(", ") || "this machine has none now"}`,
    );
  if (config.tlsCert === undefined)
    remarks.push("REST goes over the network without TLS: ./stamp certs init --host NAME, then --tls-cert and --tls-key");
  // An earlier start may have made the account, whichever accounts this one names.
  if (config.allowDevelopmentAccount)
    remarks.push("allowDevelopmentAccount: everybody who can connect reads and writes the data of devstoreaccount1, whose key is public");
  return remarks;
}

/** Returns ports in order, with runs as spans: `10000-10002, 10010-10012`. */
function spans(ports: readonly number[]): string {
  const found: [number, number][] = [];
  for (const port of ports.toSorted((one, other) => one - other)) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === port - 1) last[1] = port;
    else found.push([port, port]);
  }
  return found.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(", ");
}
