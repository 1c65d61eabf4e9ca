/** Claims of tokens that an issuer outside made (OpenID Connect), as the front-end uses them. */
export interface TokenClaims {
  /** Subject of the token: `oid`, or else `sub`. */
  readonly subject: string;
  /** Tenant of the token (`tid`), or "". */
  readonly tenant: string;
  /** Roles in the claim that the configuration names; as they came. */
  readonly roles: readonly string[];
  /** Ids in the claim `groups`. */
  readonly groups: readonly string[];
}

export type TokenCheck =
  | { readonly kind: "valid"; readonly claims: TokenClaims }
  | { readonly kind: "invalid"; readonly reason: string }
  /** The keys of the issuer can't be had now. */
  | { readonly kind: "unavailable"; readonly reason: string };

export interface TokenIssuer {
  /** URL for WWW-Authenticate where a token can be had. */
  readonly authorizationUri: string;
  readonly audience: string;
  verify(token: string): Promise<TokenCheck>;
}
