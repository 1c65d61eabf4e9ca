/** User delegation keys as raw requests get them: SDKs ask for them over https only, and that of tables does not ask at all. */
import assert from "node:assert/strict";
import type { Clients } from "./target.ts";

export interface DelegationKey {
  readonly signedObjectId: string;
  readonly signedTenantId: string;
  readonly signedStartsOn: Date;
  readonly signedExpiresOn: Date;
  readonly signedService: string;
  readonly signedVersion: string;
  /** Base64. */
  readonly value: string;
}

export const delegationVersion = "2025-07-05";

/** What a bearer of this role shows; its object id is the role. */
export async function bearerHeaders(clients: Clients, role: string): Promise<Record<string, string>> {
  const { issuer } = clients.target;
  if (!issuer) throw new Error("this target takes no bearer tokens");
  return { authorization: `Bearer ${await issuer.token({ oid: role, roles: [role] })}`, "x-ms-version": delegationVersion };
}

/** In whole seconds, as SDKs write times into a SAS. */
export const secondsFromNow = (seconds: number): Date => new Date((Math.floor(Date.now() / 1000) + seconds) * 1000);

/** A key for ten minutes, in the name of a bearer of this role. `path` begins behind the account. */
export async function delegationKey(clients: Clients, role: string, path = ""): Promise<DelegationKey> {
  const body = `<KeyInfo><Start>${secondsFromNow(-60).toISOString()}</Start><Expiry>${secondsFromNow(600).toISOString()}</Expiry></KeyInfo>`;
  const headers = await bearerHeaders(clients, role);
  const asked = await clients.raw("POST", `${path}?restype=service&comp=userdelegationkey`, { sign: false, body, headers });
  const text = await asked.text();
  assert.equal(asked.status, 200, text);
  const of = (name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1] ?? "";
  return {
    signedObjectId: of("SignedOid"),
    signedTenantId: of("SignedTid"),
    signedStartsOn: new Date(of("SignedStart")),
    signedExpiresOn: new Date(of("SignedExpiry")),
    signedService: of("SignedService"),
    signedVersion: of("SignedVersion"),
    value: of("Value"),
  };
}
