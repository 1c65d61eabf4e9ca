/**
 * Hosts under which the account with the well-known key may be asked for when it is served to everybody. A web page of a stranger can have
 * its own name resolve to an address of the stamp (DNS rebinding); its browser then sends that name as Host. So names that a stranger can own
 * must be listed by the operator.
 */

const portForm = /:\d{1,5}$/;
const addressForm = /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])$/;
/** Names that nobody can own in the public DNS (RFC 6761, and `internal`, which ICANN reserved in 2024). */
const reserved = ["localhost", "internal"] as const;

/** `name`, `*.name` for every name below it, or `*` for all. */
export const isHostPattern = (text: string): boolean => /^(\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*)$/i.test(text);

/**
 * True for an address, a name without a dot (a container, a machine of the local network), a reserved name, a name below one of `suffixes`
 * (of hosts with the account in front), and what `patterns` name. False for no host.
 */
export function isOwnHost(host: string, patterns: readonly string[], suffixes: readonly string[]): boolean {
  const name = host.toLowerCase().replace(portForm, "").replace(/\.$/, "");
  if (name === "") return false;
  if (addressForm.test(name) || /^[a-z0-9_-]+$/.test(name)) return true;
  if ([...reserved, ...suffixes].some((suffix) => name.endsWith(`.${suffix.toLowerCase()}`))) return true;
  return patterns.some((pattern) => {
    const wanted = pattern.toLowerCase();
    return wanted === "*" || (wanted.startsWith("*.") ? name.endsWith(wanted.slice(1)) : name === wanted);
  });
}
