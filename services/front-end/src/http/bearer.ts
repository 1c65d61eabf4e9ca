/** Bearer tokens of the configured issuer: who it is, and which role the claims give. */
import { type BearerRole, bearerRoles, type Parsed, parsed, rejected } from "@stamp/azure-rest";
import type { TokenIssuer } from "@stamp/ports";

export interface Bearer {
  readonly objectId: string;
  readonly tenantId: string;
  readonly role: BearerRole;
}

/** Claim values to roles; the names of the service's own roles are known without being configured. */
export type RoleMap = Readonly<Record<string, BearerRole>>;

export const serviceRoleNames: RoleMap = Object.fromEntries(
  ["Blob", "Queue", "Table"].flatMap((service) => [
    [`Storage ${service} Data Reader`, "read"],
    [`Storage ${service} Data Contributor`, "contribute"],
    [`Storage ${service} Data Owner`, "own"],
  ]),
);

export interface BearerTokens {
  readonly issuer: TokenIssuer;
  readonly roles: RoleMap;
}

/** Larger ones are not looked at. */
const tokenCharactersMax = 16_384;

export async function checkBearer(tokens: BearerTokens | undefined, header: string): Promise<Parsed<Bearer>> {
  if (!tokens)
    return rejected("AuthenticationFailed", { AuthenticationErrorDetail: "No issuer of bearer tokens is configured (oidcIssuer)." });
  const token = header.replace(/^bearer\s+/i, "").trim();
  if (token.length > tokenCharactersMax) return rejected("InvalidAuthenticationInfo");
  const check = await tokens.issuer.verify(token);
  if (check.kind === "unavailable") return rejected("ServerBusy", { Reason: check.reason });
  if (check.kind === "invalid") {
    return rejected(
      "InvalidAuthenticationInfo",
      { AuthenticationErrorDetail: check.reason },
      {
        status: 401,
        message: "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        headers: challenge(tokens),
      },
    );
  }
  const { subject, tenant, roles } = check.claims;
  const role = highest(roles.map((name) => tokens.roles[name]));
  if (role === undefined) {
    return rejected("AuthorizationFailure", {
      AuthenticationErrorDetail: `None of the token's roles is a role here: ${roles.join(", ") || "it has none"}.`,
    });
  }
  return parsed({ objectId: subject, tenantId: tenant, role });
}

const highest = (roles: readonly (BearerRole | undefined)[]): BearerRole | undefined =>
  bearerRoles.findLast((role) => roles.includes(role));

/** Whether the role may do what this one may. */
export const mayAs = (role: BearerRole, needed: BearerRole): boolean => bearerRoles.indexOf(role) >= bearerRoles.indexOf(needed);

export const challenge = (tokens: BearerTokens): Record<string, string> => ({
  "WWW-Authenticate": `Bearer authorization_uri=${tokens.issuer.authorizationUri} resource_id=${tokens.issuer.audience}`,
});
