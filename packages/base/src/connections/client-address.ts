/** The client that an address of a connection stands for, where one client's share is bounded. */
/** Returns what stands for a client: of an IPv6 address its /64, which is one client's; an IPv4 address is the same on an IPv6 socket. */
export function clientAddress(remoteAddress: string): string {
  if (remoteAddress.startsWith("::ffff:")) return remoteAddress.slice("::ffff:".length);
  if (!remoteAddress.includes(":")) return remoteAddress;
  const [head = "", tail] = remoteAddress.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  return [...groups, ...Array.from({ length: missing }, () => "0"), ...(tail ?? "").split(":")].slice(0, 4).join(":");
}
