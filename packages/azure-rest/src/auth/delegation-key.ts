/**
 * User delegation keys ("Get User Delegation Key"). A key is not stored: it is derived from a secret of the account and from what the
 * SAS says of the key (who, when, for which service), so that any front-end has it. What the holder may do is part of the derivation: of
 * the keys of all roles one fits the signature, and that says the role. A new secret revokes every key.
 */
import { utf8 } from "@stamp/base";
import { formatIso, parseIso } from "../dates.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { badNode, childText, missingNode, parseXml } from "../xml/xml.ts";
import { element } from "../xml/xml-text.ts";
import { type BearerRole, bearerRoles } from "./authorization.ts";
import type { SasFields } from "./sas.ts";
import type { HmacSha256 } from "./shared-key.ts";

export const delegationSecretBytes = 32;
const lifetimeMaxMs = 7 * 24 * 60 * 60 * 1000;
const bodyBytesMax = 4 * 1024;
const purpose = "stamp user delegation key v1";

export interface DelegationKeyFields {
  readonly objectId: string;
  readonly tenantId: string;
  readonly startMs: number;
  readonly expiryMs: number;
  /** First letter of the service. */
  readonly service: string;
  readonly version: string;
  /** Tenant of the only user that may use the key, if it is another tenant; else "". */
  readonly delegatedTenantId: string;
}

export function deriveDelegationKey(secret: Uint8Array, role: BearerRole, fields: DelegationKeyFields, hmacSha256: HmacSha256): Uint8Array {
  const { objectId, tenantId, startMs, expiryMs, service, version, delegatedTenantId } = fields;
  const text = JSON.stringify([purpose, role, objectId, tenantId, startMs, expiryMs, service, version, delegatedTenantId]);
  return hmacSha256(secret, utf8(text));
}

/** Returns the keys, by role, that can have made a SAS with these fields. */
export function delegationKeysOf(
  secret: Uint8Array,
  fields: SasFields,
  hmacSha256: HmacSha256,
): { readonly key: Uint8Array; readonly is: BearerRole }[] {
  const of: DelegationKeyFields = {
    objectId: fields.skoid,
    tenantId: fields.sktid,
    startMs: parseIso(fields.skt) ?? 0,
    expiryMs: parseIso(fields.ske) ?? 0,
    service: fields.sks,
    version: fields.skv,
    delegatedTenantId: fields.skdutid,
  };
  return bearerRoles.map((role) => ({ key: deriveDelegationKey(secret, role, of, hmacSha256), is: role }));
}

export interface DelegationKeyRequest {
  readonly startMs: number;
  readonly expiryMs: number;
  readonly delegatedTenantId: string;
}

/** Parses the request for a user delegation key. Times count in whole seconds: SDKs write no more into the SAS. */
export function parseDelegationKeyRequest(body: Uint8Array, nowMs: number): Parsed<DelegationKeyRequest> {
  const root = parseXml(body, bodyBytesMax);
  if (!root.ok) return root;
  if (root.value.name !== "KeyInfo") return rejected("InvalidXmlDocument");
  const startText = childText(root.value, "Start") ?? "";
  const expiryText = childText(root.value, "Expiry");
  if (expiryText === undefined) return missingNode("Expiry");
  const start = startText === "" ? nowMs : parseIso(startText);
  const expiry = parseIso(expiryText);
  if (start === undefined) return badNode("Start", startText);
  if (expiry === undefined || expiry <= start || expiry <= nowMs) return badNode("Expiry", expiryText);
  // The bound counts from now: a key that begins in a week would else be good for two. Start is before Expiry, so it is bounded, too.
  if (expiry > nowMs + lifetimeMaxMs) return badNode("Expiry", expiryText);
  const whole = (ms: number): number => Math.floor(ms / 1000) * 1000;
  const delegatedTenantId = childText(root.value, "DelegatedUserTid") ?? "";
  return parsed({ startMs: whole(start), expiryMs: whole(expiry), delegatedTenantId });
}

export function delegationKeyXml(fields: DelegationKeyFields, value: string): string {
  const time = (ms: number): string => formatIso(ms).replace(/\.\d+Z$/, "Z");
  return (
    '<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>' +
    element("SignedOid", fields.objectId) +
    element("SignedTid", fields.tenantId) +
    element("SignedStart", time(fields.startMs)) +
    element("SignedExpiry", time(fields.expiryMs)) +
    element("SignedService", fields.service) +
    element("SignedVersion", fields.version) +
    (fields.delegatedTenantId === "" ? "" : element("SignedDelegatedUserTid", fields.delegatedTenantId)) +
    element("Value", value) +
    "</UserDelegationKey>"
  );
}
