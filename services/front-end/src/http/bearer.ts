/** Bearer tokens of the configured issuer: who it is, and which role the claims give. */
import { type BearerRole, bearerRoles, type Parsed, parsed, rejected, type ServiceName } from "@stamp/azure-rest";
import type { TokenClaims, TokenIssuer } from "@stamp/ports";

export interface Bearer {
  readonly objectId: string;
  readonly tenantId: string;
  /** Undefined: none of the token's roles is a role here. Lists of access control may give rights on paths then. */
  readonly role: BearerRole | undefined;
  /** Roles of the token, as an error shows them. */
  readonly hadRoles: string;
  readonly groups: readonly string[];
}

/** Roles by value of the token's claim. */
export type RoleMap = Readonly<Record<string, BearerRole>>;

/** The service's own roles, known without being configured; each is for one service. */
const dataRoles: Readonly<Record<ServiceName, RoleMap>> = {
  blob: {
    "Storage Blob Data Reader": "read",
    "Storage Blob Data Contributor": "contribute",
    "Storage Blob Data Owner": "own",
  },
  queue: { "Storage Queue Data Reader": "read", "Storage Queue Data Contributor": "contribute" },
  table: { "Storage Table Data Reader": "read", "Storage Table Data Contributor": "contribute" },
  file: { "Storage File Data Privileged Reader": "read", "Storage File Data Privileged Contributor": "own" },
};

export interface BearerTokens {
  readonly issuer: TokenIssuer;
  /** Roles in the configuration, for every service. */
  readonly roles: RoleMap;
}

/** Larger ones are not looked at. */
const tokenCharactersMax = 16_384;

export async function checkBearer(tokens: BearerTokens | undefined, header: string, service: ServiceName): Promise<Parsed<Bearer>> {
  const claims = await claimsOf(tokens, header);
  if (!claims.ok) return claims;
  const { subject, tenant, roles, groups } = claims.value;
  const role = highest(roles.map((name) => roleOf(tokens, service, name)));
  return parsed({ objectId: subject, tenantId: tenant, role, hadRoles: roles.join(", ") || "it has none", groups });
}

/** Returns the claims of a token, with any roles. */
export async function claimsOf(tokens: BearerTokens | undefined, header: string): Promise<Parsed<TokenClaims>> {
  if (!tokens) {
    return rejected("AuthenticationFailed", { AuthenticationErrorDetail: "No issuer of bearer tokens is configured (oidcIssuer)." });
  }
  const token = header.replace(/^bearer\s+/i, "").trim();
  if (token.length > tokenCharactersMax) return rejected("InvalidAuthenticationInfo");
  const check = await tokens.issuer.verify(token);
  if (check.kind === "valid") return parsed(check.claims);
  if (check.kind === "unavailable") return rejected("ServerBusy", { Reason: check.reason });
  const message = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
  return rejected(
    "InvalidAuthenticationInfo",
    { AuthenticationErrorDetail: check.reason },
    { status: 401, message, headers: challenge(tokens) },
  );
}

function roleOf(tokens: BearerTokens | undefined, service: ServiceName, name: string): BearerRole | undefined {
  const known = dataRoles[service];
  if (tokens && Object.hasOwn(tokens.roles, name)) return tokens.roles[name];
  return Object.hasOwn(known, name) ? known[name] : undefined;
}

const highest = (roles: readonly (BearerRole | undefined)[]): BearerRole | undefined =>
  bearerRoles.findLast((role) => roles.includes(role));

export const challenge = (tokens: BearerTokens): Record<string, string> => ({
  "WWW-Authenticate": `Bearer authorization_uri=${tokens.issuer.authorizationUri} resource_id=${tokens.issuer.audience}`,
});
