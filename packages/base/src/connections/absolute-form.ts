/**
 * Absolute-form request targets (RFC 9112, section 3.2.2): `http://host/path?query`. A server has to take them from every client, whether
 * the client believes in a proxy or not; the authority then replaces the Host header. HTTP doors, batches and transactions read them.
 */

export interface AbsoluteForm {
  /** Host, with the port if the target has one. */
  readonly authority: string;
  /** Path and query; begins with a slash. */
  readonly originForm: string;
}

/** Splits an absolute-form target. Returns undefined for any other form, and for targets with user information or a fragment. */
export function parseAbsoluteForm(target: string): AbsoluteForm | undefined {
  if (target.startsWith("/")) return undefined;
  const match = /^https?:\/\/([^/?#@\s]+)([/?][^#]*)?$/i.exec(target);
  if (!match) return undefined;
  const [, authority = "", rest = ""] = match;
  return { authority, originForm: rest.startsWith("/") ? rest : `/${rest}` };
}
