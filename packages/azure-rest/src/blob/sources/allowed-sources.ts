/**
 * Sources of copies outside of this stamp: a list of patterns that the operator gives. It is what stands between a request's
 * `x-ms-copy-source` and networks that only the front-end can reach.
 *
 *     https://*.blob.core.windows.net          every name below it, port 443
 *     https://files.example:8443               one name and port; `:*` is any port
 *     https://*                                every name
 *     http://10.1.2.3:10000                    one address
 *     http://stamp-b.internal:10000=10.0.0.0/8 one name, which stands for addresses of this network
 *
 * A name may stand for addresses of the public Internet only: not for this machine, private networks, link-local addresses (metadata
 * services) or others that are special. Such addresses have to be named: as the host itself, or as the network behind `=`.
 */
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export interface SourcePattern {
  readonly secure: boolean;
  /** An address; else a name: all of it, or with `anyBelow` its end. "" with `anyBelow`: every name. */
  readonly host: Address | string;
  readonly anyBelow: boolean;
  /** Port of the source; undefined: any port. */
  readonly port: number | undefined;
  readonly network: readonly [Address, number] | undefined;
}

const patternForm = /^(https?):\/\/(\*|\*\.[a-z0-9._-]+|[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}|\*))?(?:=([0-9a-f:.]+\/\d{1,3}))?$/;

/** Returns undefined for what is no pattern. */
export function parseSourcePattern(text: string): SourcePattern | undefined {
  const match = patternForm.exec(text.trim().toLowerCase());
  if (!match) return undefined;
  const [, scheme, host = "", port, network] = match;
  const secure = scheme === "https";
  if (port !== undefined && port !== "*" && Number(port) > 65_535) return undefined;
  if (network !== undefined && !ipaddr.isValidCIDR(network)) return undefined;
  const address = addressOf(host);
  if (host.startsWith("[") && !address) return undefined;
  return {
    secure,
    host: address ?? host.replace(/^\*\.?/, ""),
    anyBelow: host.startsWith("*"),
    port: port === "*" ? undefined : port === undefined ? defaultPort(secure) : Number(port),
    network: network === undefined ? undefined : ipaddr.parseCIDR(network),
  };
}

const defaultPort = (secure: boolean): number => (secure ? 443 : 80);

function addressOf(host: string): Address | undefined {
  const text = host.replace(/^\[|\]$/g, "");
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(":") && ipaddr.IPv6.isValid(text)) ? ipaddr.process(text) : undefined;
}

/** A source that may be connected to. */
export interface AllowedSource {
  /** Name or address to connect to; an IPv6 address without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly mayConnectTo: (address: string) => boolean;
}

const authorityForm = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;

/** Returns the source that patterns allow. `host` as in a URL, with a port if it has one; undefined: none allows it. */
export function allowedSource(patterns: readonly SourcePattern[], secure: boolean, host: string): AllowedSource | undefined {
  const match = authorityForm.exec(host.toLowerCase());
  if (!match) return undefined;
  const [, name = "", portText] = match;
  const port = portText === undefined ? defaultPort(secure) : Number(portText);
  const address = addressOf(name);
  if ((name.startsWith("[") && !address) || port === 0 || port > 65_535) return undefined;
  const allowing = patterns.filter(
    (pattern) => pattern.secure === secure && (pattern.port ?? port) === port && matches(pattern, name, address),
  );
  if (allowing.length === 0) return undefined;
  return {
    hostname: name.replace(/^\[|\]$/g, ""),
    port,
    mayConnectTo: (text) => {
      const to = addressOf(text);
      return to !== undefined && allowing.some((pattern) => mayStandFor(pattern, to));
    },
  };
}

function matches({ host, anyBelow, network }: SourcePattern, name: string, address: Address | undefined): boolean {
  if (typeof host !== "string") return address !== undefined && isSame(host, address);
  // Addresses are no names: they are allowed as such, or as part of a network.
  if (address) return anyBelow && host === "" && network !== undefined && isIn(address, network);
  return anyBelow ? host === "" || name.endsWith(`.${host}`) : name === host;
}

function mayStandFor({ host, network }: SourcePattern, to: Address): boolean {
  if (typeof host !== "string") return isSame(host, to);
  return network === undefined ? isPublic(to) : isIn(to, network);
}

const isSame = (a: Address, b: Address): boolean => a.toNormalizedString() === b.toNormalizedString();

const isIn = (address: Address, [base, bits]: readonly [Address, number]): boolean =>
  address.kind() === base.kind() && address.match(base, bits);

const globalUnicast = ipaddr.parseCIDR("2000::/3");
/** Inside the public range, but answered by the machine's own host: Azure's platform address. */
const metadataAddresses: ReadonlySet<string> = new Set(["168.63.129.16"]);

const isPublic = (address: Address): boolean =>
  address.range() === "unicast" &&
  (address.kind() === "ipv4" || address.match(globalUnicast[0], globalUnicast[1])) &&
  !metadataAddresses.has(address.toString());
