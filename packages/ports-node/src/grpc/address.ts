/** `host:port`; a host with colons stands in brackets, which `host` is without. A port that is none is NaN: whoever uses it refuses it. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(":");
  const port = address.slice(colon + 1);
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ""), port: /^\d+$/.test(port) ? Number(port) : Number.NaN };
}
