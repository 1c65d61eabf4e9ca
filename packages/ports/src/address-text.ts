/** Lists of addresses as people write them: host:port, separated by commas. */

/** Returns the parts of a list. Blanks around a part count for nothing. */
export const addressesIn = (list: string): string[] => list.split(",").flatMap((text) => (text.trim() === "" ? [] : [text.trim()]));

/** Returns why a text is no host:port that can be called; undefined if it is one. An IPv6 address stands in brackets. */
export function whyNoAddress(text: string): string | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? [];
  if (scheme !== undefined) return `${text}: host:port, without ${scheme}://`;
  const [, host, digits] = /^(\[[0-9a-f:.%]+\]|[a-z0-9_.-]+):(\d{1,5})$/i.exec(text) ?? [];
  if (host === undefined) return `${text}: host:port, with an IPv6 address in brackets`;
  const port = Number(digits);
  return port >= 1 && port <= 65_535 ? undefined : `${text}: ports are 1 to 65535`;
}
