/** Get User Delegation Key: for whoever shows a bearer token, in its own name and with its own role. */
import {
  badHeader,
  type DelegationKeyFields,
  delegationKeyXml,
  delegationSecretBytes,
  deriveDelegationKey,
  type Parsed,
  parseDelegationKeyRequest,
  parsed,
  rejected,
  restError,
  type ServiceName,
  toBase64,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { documentBody } from "./body.ts";
import { type Answer, type Exchange, respond } from "./exchange.ts";

const bodyBytesMax = 4 * 1024;

export async function getUserDelegationKey(exchange: Exchange, service: ServiceName): Promise<Answer> {
  const { bearer } = exchange.access;
  if (bearer?.role === undefined) {
    return rejected("AuthenticationFailed", {
      AuthenticationErrorDetail: "A user delegation key is given to the bearer of a token only, not to whoever has the account's key.",
    });
  }
  const body = await documentBody(exchange, bodyBytesMax);
  if (!body.ok) return body;
  if (body.value.length === 0) return badHeader("Content-Length", "0");
  const { world } = exchange.objects.parts;
  const asked = parseDelegationKeyRequest(body.value, world.clock.wallMs());
  if (!asked.ok) return asked;
  const secret = await delegationSecret(exchange);
  if (!secret.ok) return secret;
  const fields: DelegationKeyFields = {
    ...asked.value,
    objectId: bearer.objectId,
    tenantId: bearer.tenantId,
    service: service.slice(0, 1),
    version: exchange.version,
  };
  const key = deriveDelegationKey(secret.value, bearer.role, fields, (one, message) => world.digest.hmacSha256(one, message));
  return respond(200, { "Content-Type": "application/xml" }, utf8(delegationKeyXml(fields, toBase64(key))));
}

/** Returns the delegation secret, made when the first key is asked for. */
async function delegationSecret(exchange: Exchange): Promise<Parsed<Uint8Array>> {
  const { account } = exchange.target;
  const row = await exchange.objects.execute({ case: "getAccount", value: { account } }, "account", exchange.limits());
  if (!row.ok) return row;
  if (row.value.delegationSecret.length > 0) return parsed(row.value.delegationSecret);
  // A copy's secret is its primary's.
  if (exchange.account.role !== undefined && exchange.account.role.role !== "primary") return { ok: false, error: restError("ServerBusy") };
  const sameRole = row.value.geoRole === "" ? {} : { expectedGeoRole: row.value.geoRole };
  const value = {
    account,
    ...sameRole,
    delegationSecret: exchange.objects.parts.world.random.bytes(delegationSecretBytes),
    expectedDelegationSecret: new Uint8Array(0),
  };
  const changed = await exchange.objects.execute({ case: "changeAccount", value }, "account", exchange.limits());
  if (changed.ok) {
    exchange.accounts.forget(account);
    return parsed(changed.value.delegationSecret);
  }
  // Another request has made it meanwhile.
  return changed.error.code === "ConditionNotMet" ? delegationSecret(exchange) : changed;
}
