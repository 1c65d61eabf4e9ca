/**
 * The guard of the console: every request passes here first. The console is for this machine, so a request names it by an address or
 * name of loopback (a page of another site that has its name point here, DNS rebinding, names another). A request that changes something
 * comes from the console's own page. Pure.
 */

const hostNames = ["127.0.0.1", "localhost", "[::1]"];

/** Cookies of one host are shared by its ports: two consoles have two names. */
const cookieName = (headers: Head["headers"]): string => `stamp-console-${/:(\d+)$/.exec(headers.host ?? "")?.[1] ?? "80"}`;

export interface Head {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Why a request is refused before anything is looked at; undefined if it is not. */
export function refusalOf({ method, headers }: Head): string | undefined {
  const { host = "", origin, "sec-fetch-site": site } = headers;
  if (!hostNames.includes(host.replace(/:\d+$/, "")))
    return "the console answers only to 127.0.0.1, localhost and [::1]: open it by that name";
  if (origin !== undefined && origin !== `http://${host}`) return "the request comes from a page of another site";
  // A link from elsewhere opens the page, which has no data in it. It asks for them itself.
  if (site !== undefined && site !== "same-origin" && site !== "none" && !opensPage(method, headers))
    return "the request comes from a page of another site";
  if (method !== "GET" && method !== "HEAD" && origin === undefined) return "a request that changes something names its origin";
  return undefined;
}

const opensPage = (method: string, headers: Head["headers"]): boolean => method === "GET" && headers["sec-fetch-mode"] === "navigate";

/** Token of the session in the request's cookie; empty if there is none. */
export function tokenIn({ headers }: Pick<Head, "headers">): string {
  const pairs = (headers.cookie ?? "").split(/[;,]/).map((pair) => pair.trim());
  const name = `${cookieName(headers)}=`;
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length) ?? "";
}

/** Cookie with the token of a session; an empty token takes the cookie away. */
export const cookieOf = (token: string, { headers }: Pick<Head, "headers">): string =>
  `${cookieName(headers)}=${token}; HttpOnly; SameSite=Strict; Path=/api/${token === "" ? "; Max-Age=0" : ""}`;

/** Headers of every answer. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};
