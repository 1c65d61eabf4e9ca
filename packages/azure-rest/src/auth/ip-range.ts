/** `sip` of a SAS: an IPv4 address, or two of them and all between. Bounds are numbers of 32 bits. */
export interface IpRange {
  readonly from: number;
  readonly to: number;
}

export function parseIpv4(text: string): number | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (!match) return undefined;
  const bytes = match.slice(1).map(Number);
  return bytes.every((byte) => byte <= 255) ? bytes.reduce((sum, byte) => sum * 256 + byte, 0) : undefined;
}

export function parseIpRange(text: string): IpRange | undefined {
  const [first = "", last = first, ...more] = text.split("-").map((part) => part.trim());
  const from = parseIpv4(first);
  const to = parseIpv4(last);
  return more.length > 0 || from === undefined || to === undefined || to < from ? undefined : { from, to };
}

/** True if the address is in the range. A socket for both families shows an IPv4 address as `::ffff:1.2.3.4`; an IPv6 address is in no range. */
export function isInRange(range: IpRange, address: string): boolean {
  const number = parseIpv4(address.replace(/^::ffff:/i, ""));
  return number !== undefined && number >= range.from && number <= range.to;
}
