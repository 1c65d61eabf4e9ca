/** Texts, keys and readings for tests of shared access signatures. */
import assert from "node:assert/strict";
import { createHmac, timingSafeEqual } from "node:crypto";
import { toBase64 } from "../../base64.ts";
import type { Parsed } from "../../rest-error.ts";
import type { ServiceName } from "../../service-properties/service-properties.ts";
import { parseQuery } from "../../target.ts";
import type { SignedResource } from "../authorization.ts";
import { parseSas, type Sas } from "../sas.ts";
import { type SignedRequest, sasStringToSign } from "../sas-string.ts";
import type { HmacSha256 } from "../shared-key.ts";

export const hmacSha256: HmacSha256 = (key, message) => createHmac("sha256", key).update(message).digest();
export const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);
export const key = Uint8Array.from({ length: 64 }, (_, i) => i);
export const anySignature = toBase64(new Uint8Array(32));
export const nowMs = Date.UTC(2026, 0, 15, 12);
export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

export const queryOf = (fields: Record<string, string>) => {
  const query = parseQuery(new URLSearchParams(fields).toString().replaceAll("+", "%20"));
  assert.ok(query.ok);
  return query.value;
};
export const sasOf = (fields: Record<string, string>): Parsed<Sas> => parseSas(queryOf({ sig: anySignature, ...fields }));
export function valid(fields: Record<string, string>): Sas {
  const sas = sasOf(fields);
  assert.ok(sas.ok, JSON.stringify(sas));
  return sas.value;
}
export const codeOf = (result: Parsed<unknown>): string => (result.ok ? "ok" : result.error.code);
export const detailOf = (result: Parsed<unknown>): string => (result.ok ? "" : (result.error.details.AuthenticationErrorDetail ?? ""));

export const blob = {
  kind: "blob",
  container: "pics",
  blob: "a/b c.png",
  snapshot: "SNAP",
  versionId: "VERS",
} as const satisfies SignedResource;
export const signedText = (
  fields: Record<string, string>,
  service: ServiceName,
  resource: SignedResource,
  headers = {},
): string | undefined => {
  const text = sasStringToSign(valid(fields), {
    service,
    account: "acct",
    resource,
    query: queryOf(fields),
    headers,
  } satisfies SignedRequest);
  return text.ok ? text.value : undefined;
};

export const service = { sp: "r", st: "2026-01-01", se: "2026-02-01", sip: "1.2.3.4", spr: "https" };
export const more = { rscc: "cc", rscd: "cd", rsce: "ce", rscl: "cl", rsct: "ct" };
export const key5 = { skoid: "oid", sktid: "tid", skt: "2026-01-01", ske: "2026-01-08", sks: "b", skv: "2025-01-05" };
