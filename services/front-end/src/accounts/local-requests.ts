/**
 * Whether a request comes from this machine. A proxy on the machine (TLS in front of HTTP) connects from loopback, too; it is known by what
 * it adds, or by the name that its client has asked for. A proxy that adds nothing and writes a loopback name into Host can't be told from
 * a local client: SECURITY.md says so.
 */
import type { CallContext, HttpRequest } from "@stamp/ports";

/** Headers that proxies add. */
const forwarded = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-forwarded-ssl",
  "x-original-host",
  "x-real-ip",
  "x-client-ip",
  "x-envoy-external-address",
  "cf-connecting-ip",
  "true-client-ip",
  "front-end-https",
] as const;

export function isLocalRequest({ headers, remoteAddress }: Pick<HttpRequest, "headers" | "remoteAddress">): boolean {
  return !isForwarded(headers) && isLoopbackAddress(remoteAddress) && isLoopbackName(headers.host ?? "");
}

/** True if a gRPC call comes from this machine. */
export const isLocalCall = ({ peer, metadata }: Pick<CallContext, "peer" | "metadata">): boolean =>
  !isForwarded(metadata) && isLoopbackAddress(addressOfPeer(peer));

/** Returns the address of a peer, `address:port`. */
export const addressOfPeer = (peer: string): string => peer.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");

const isForwarded = (headers: Readonly<Record<string, string | undefined>>): boolean =>
  forwarded.some((name) => headers[name] !== undefined);

const isLoopbackAddress = (address: string): boolean => /^(::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/i.test(address);

function isLoopbackName(host: string): boolean {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(name);
}
