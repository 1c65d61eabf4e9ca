/** Who can reach the ports of a cluster, and as which account: what a person should know who binds it beyond loopback. */
import type { ClusterConfig } from "./config.ts";
import { bindsBeyondLoopback, isPublic, type Plan, servedAccount } from "./plan.ts";

/** Returns what other machines can reach, in words; undefined if nothing. */
export function reachOf(config: ClusterConfig, plan: Pick<Plan, "ports">): string | undefined {
  if (!bindsBeyondLoopback(config)) return undefined;
  const wanted = [...plan.ports];
  const portsOf = (pattern: RegExp): string => spans(wanted.filter(([, what]) => pattern.test(what)).map(([port]) => port));
  return (
    `REST on ${portsOf(/^(blob|queue|table)/)}; gRPC on ${portsOf(/^gRPC/)}, where callers prove the secret of the cluster; ` +
    `/live, /ready and /metrics on ${portsOf(/^readiness/)}, which answer everybody`
  );
}

/** Why no account of the configuration is served; undefined if one is. */
export function noAccountServed(config: ClusterConfig): string | undefined {
  if (servedAccount(config) !== undefined) return undefined;
  return (
    "the configuration names only devstoreaccount1, whose key everybody knows, and it is refused because other machines can connect. " +
    "Make an account: ./stamp account create NAME"
  );
}

/** Returns what a person should know of a start that others can reach. `addresses`: of this machine, besides loopback. */
export function reachRemarks(config: ClusterConfig, plan: Pick<Plan, "ports">, addresses: readonly string[]): string[] {
  const reach = reachOf(config, plan);
  if (reach === undefined) return [];
  const remarks = [`bind is ${config.bind}: other machines reach ${reach}. Let a firewall pass REST only (docs/guides/internal-ports.md)`];
  if (config.bind === "0.0.0.0" || config.bind === "::")
    remarks.push(
      `clients on other machines put an address of this one in place of 127.0.0.1: ${addresses.join(", ") || "this machine has none now"}`,
    );
  if (config.tlsCert === undefined)
    remarks.push("REST goes over the network without TLS: ./stamp certs init --host NAME, then --tls-cert and --tls-key");
  if (config.allowDevelopmentAccount && config.accounts.some(isPublic))
    remarks.push("allowDevelopmentAccount: everybody who can connect reads and writes the data of devstoreaccount1, whose key is public");
  const none = noAccountServed(config);
  return none === undefined ? remarks : [...remarks, none];
}

/** Ports in order, runs of them as spans: `10000-10002, 10010-10012`. */
function spans(ports: readonly number[]): string {
  const found: [number, number][] = [];
  for (const port of ports.toSorted((one, other) => one - other)) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === port - 1) last[1] = port;
    else found.push([port, port]);
  }
  return found.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(", ");
}
