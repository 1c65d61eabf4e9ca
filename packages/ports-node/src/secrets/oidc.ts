/** An OpenID Connect issuer whose bearer tokens are verified. What verifies them is loaded with the first token: most processes see none. */
import type { Clock, TokenCheck, TokenIssuer } from "@stamp/ports";

export interface OidcOptions {
  /** Issuer that each token must name (`iss`). */
  readonly issuer: string;
  /** Audiences of which each token must name one (`aud`). */
  readonly audiences: readonly string[];
  /** URL or path of the key set; "" for what the issuer's discovery document says. */
  readonly jwks: string;
  /** Claim with the names of roles: a list, or one text separated by spaces. */
  readonly rolesClaim: string;
  /** True if the issuer's documents may be had over plain HTTP from another machine. Whoever is between the two could give other keys. */
  readonly plainHttp?: boolean;
  /** URL that is told to whoever shows no token; "" for the issuer itself. */
  readonly authorizationUri: string;
  readonly clock: Clock;
  /** Replacement of fetch, in tests. */
  readonly fetch?: typeof fetch;
}

export function oidcIssuer(options: OidcOptions): TokenIssuer {
  let loading: Promise<(token: string) => Promise<TokenCheck>> | undefined;
  return {
    authorizationUri: options.authorizationUri === "" ? options.issuer : options.authorizationUri,
    audience: options.audiences[0] ?? "",
    async verify(token): Promise<TokenCheck> {
      loading ??= import("./oidc-check.ts").then(({ tokenCheck }) => tokenCheck(options));
      try {
        return (await loading)(token);
      } catch (error) {
        // Too many open files, for one, may pass.
        loading = undefined;
        throw error;
      }
    },
  };
}
