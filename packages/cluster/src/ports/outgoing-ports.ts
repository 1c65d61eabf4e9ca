/**
 * Ports of a cluster among those that the system gives to outgoing connections (Linux: `ip_local_port_range`). A connection of any process, also of
 * the stamp itself, may have such a port when a process wants to listen there, and keep it for as long as it lives.
 */
import { readFileSync } from "node:fs";

export interface SystemPorts {
  /** First and last port of outgoing connections; undefined where the system does not say. */
  readonly range: readonly [number, number] | undefined;
  /** Ports that outgoing connections never get, as Linux writes them: `41000-41299,50000`. */
  readonly reserved: string;
}

export function systemPorts(): SystemPorts {
  const [first, last] = read("ip_local_port_range").trim().split(/\s+/).map(Number);
  const range = first !== undefined && last !== undefined && last > 0 ? ([first, last] as const) : undefined;
  return { range, reserved: read("ip_local_reserved_ports").trim() };
}

/** Returns what a person should know; undefined if no outgoing connection can take one of the ports. */
export function outgoingRemark(ports: readonly number[], { range, reserved }: SystemPorts): string | undefined {
  if (range === undefined) return undefined;
  const [first, last] = range;
  const kept = reserved.split(",").flatMap((span) => {
    const [from, to = from] = span.split("-").map(Number);
    return from === undefined || to === undefined ? [] : [[from, to] as const];
  });
  const exposed = ports.filter((port) => port >= first && port <= last && !kept.some(([from, to]) => port >= from && port <= to));
  if (exposed.length === 0) return undefined;
  const [lowest, highest] = [Math.min(...exposed), Math.max(...exposed)];
  const span = lowest === highest ? String(lowest) : `${lowest}-${highest}`;
  return (
    `${exposed.length === 1 ? "a port" : `${exposed.length} ports`} (${span}) ${exposed.length === 1 ? "is" : "are"} among those that this system gives to outgoing connections (${first}-${last}): a connection that has one ` +
    `keeps a process from starting. Choose a portBase below ${first}, or keep the ports free: sysctl -w net.ipv4.ip_local_reserved_ports=${span}`
  );
}

function read(name: string): string {
  try {
    return readFileSync(`/proc/sys/net/ipv4/${name}`, "utf8");
  } catch {
    return "";
  }
}
