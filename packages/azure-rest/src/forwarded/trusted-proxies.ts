/**
 * Headers of trusted proxies about a request: the address of its client, whether the client spoke HTTPS, and the host that the
 * client asked for (X-Forwarded-For, -Proto, -Host). Headers of any other peer say nothing.
 *
 * Each proxy adds what it saw at the right end of X-Forwarded-For, so an entry is as good as the peer that added it. Invariants:
 * - Entries are read from the right, as long as the peer that added them is trusted. The first address that is not trusted is the client's;
 *   what stands left of it was sent by the client and is ignored.
 * - An entry that is no address ends the reading: the client is then the proxy that added the entry.
 * - -Proto and -Host are taken at the place of the client's address, counted from the right. A proxy that replaces them instead of adding to
 *   them leaves one value, which counts.
 */
import ipaddr from "ipaddr.js";
import type { HttpHeaders } from "../headers.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = readonly [Address, number];

export interface Peer {
  readonly remoteAddress: string;
  readonly secure: boolean;
  readonly headers: HttpHeaders;
}

/** Returns the network of an address or CIDR, undefined for anything else. Every address at once (`/0`) is no network of proxies. */
export function parseNetwork(text: string): Network | undefined {
  const trimmed = text.trim();
  const [base = "", bits, ...more] = trimmed.split("/");
  const address = addressOf(base);
  if (address === undefined || more.length > 0) return undefined;
  const longest = address.kind() === "ipv4" ? 32 : 128;
  if (bits === undefined) return [address, longest];
  // An IPv4 address in IPv6 form counts its bits otherwise.
  if (!/^\d{1,3}$/.test(bits) || (address.kind() === "ipv4") === base.includes(":")) return undefined;
  return Number(bits) >= 1 && Number(bits) <= longest ? [address, Number(bits)] : undefined;
}

/** True if the peer at this address is one of the proxies. */
export function isTrusted(proxies: readonly Network[], remoteAddress: string): boolean {
  if (proxies.length === 0) return false;
  const address = addressOf(remoteAddress);
  return address !== undefined && isProxy(proxies, address);
}

/** Returns the client, its scheme and the headers with its host. `proxies` empty, or a peer that is none of them: the request as it came. */
export function seenThroughProxies(proxies: readonly Network[], peer: Peer): Peer {
  const nearest = proxies.length === 0 ? undefined : addressOf(peer.remoteAddress);
  if (nearest === undefined || !isProxy(proxies, nearest)) return peer;
  const { headers } = peer;
  const { address, hops } = clientOf(proxies, nearest, listOf(headers["x-forwarded-for"]));
  const proto = entryAt(listOf(headers["x-forwarded-proto"]), hops)?.toLowerCase();
  const host = entryAt(listOf(headers["x-forwarded-host"]), hops);
  return {
    remoteAddress: address.toString(),
    secure: proto === undefined ? peer.secure : proto === "https",
    headers: host !== undefined && hostForm.test(host) ? { ...headers, host } : headers,
  };
}

/** A name, an IPv4 address or an IPv6 address in brackets, with or without a port. */
const hostForm = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i;

/** `hops`: number of entries that proxies before the nearest one added. */
function clientOf(proxies: readonly Network[], nearest: Address, entries: readonly string[]): { address: Address; hops: number } {
  let address = nearest;
  let hops = 0;
  for (let at = entries.length - 1; at >= 0; at--) {
    const before = addressOf(withoutPort(entries[at] ?? ""));
    if (before === undefined) break;
    address = before;
    hops = entries.length - 1 - at;
    if (!isProxy(proxies, address)) break;
  }
  return { address, hops };
}

const listOf = (value: string | undefined): readonly string[] => (value === undefined ? [] : value.split(",").map((entry) => entry.trim()));

function entryAt(entries: readonly string[], fromRight: number): string | undefined {
  const entry = entries[Math.max(entries.length - 1 - fromRight, 0)];
  return entry === "" ? undefined : entry;
}

/** Returns the address without a port, which some proxies add. */
const withoutPort = (text: string): string => text.replace(/^\[([^\]]*)\](:\d+)?$/, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");

/** Returns the address of a text, without the zone of a link-local one (`%eth0`), which is this machine's own matter. */
function addressOf(text: string): Address | undefined {
  const bare = text.replace(/%[a-z0-9._-]+$/i, "");
  return ipaddr.IPv4.isValidFourPartDecimal(bare) || (bare.includes(":") && ipaddr.IPv6.isValid(bare)) ? ipaddr.process(bare) : undefined;
}

const isProxy = (proxies: readonly Network[], address: Address): boolean =>
  proxies.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
