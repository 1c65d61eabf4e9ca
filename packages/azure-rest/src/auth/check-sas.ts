/**
 * Whether a SAS is genuine and good for a request: signature, stored policy, protocol, address, time, service, resource type, permission,
 * in this order, each with the code that the service answers. The signature first: nobody without one learns anything else.
 */
import { utf8 } from "@stamp/base";
import { formatIso } from "../dates.ts";
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import { lettersThatCount, sasIsSince, signedSince } from "../version.ts";
import { type OperationAuthorization, permits, type SignedResource } from "./authorization.ts";
import { isInRange } from "./ip-range.ts";
import type { Sas } from "./sas.ts";
import { type SignedRequest, sasStringToSign } from "./sas-string.ts";
import type { EqualBytes, HmacSha256 } from "./shared-key.ts";
import { shownString } from "./shown-string.ts";
import type { SasTerms } from "./signed-identifiers.ts";

export interface SigningKeys<K> {
  /** Keys that may have made the signature, each with `is`; the result says which one made it. */
  readonly keys: readonly { readonly key: Uint8Array; readonly is: K }[];
  readonly hmacSha256: HmacSha256;
  readonly equal: EqualBytes;
}

const refused = (detail: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });

/** Finds the key that the SAS was signed with. Tries every key, whichever fits. */
export function checkSasSignature<K>(sas: Sas, request: SignedRequest, signing: SigningKeys<K>): Parsed<K> {
  if (!coversResource(sas, request.resource)) return refused("The signed resource (sr) is not what the request names.");
  // Before, the text that is signed had no version and no range of entities.
  if (sas.kind === "service" && request.service !== "blob" && !sasIsSince(sas.version, "tableOrQueue")) {
    return refused("sv is mandatory. Cannot be empty");
  }
  // Before, the text that is signed does not name the service: that of a container would be that of the share of its name.
  if (sas.kind === "service" && request.service === "file" && !signedSince(sas.version, "serviceInResource"))
    return refused("sv is older than signatures that name the service.");
  const text = sasStringToSign(sas, request);
  if (!text.ok) return text;
  const message = utf8(text.value);
  let found: { readonly is: K } | undefined;
  for (const candidate of signing.keys) {
    if (signing.equal(signing.hmacSha256(candidate.key, message), sas.signature)) found = candidate;
  }
  if (found) return parsed(found.is);
  return refused(`Signature did not match. String to sign used was ${shownString(text.value)}`);
}

/** True if the path is deep enough to be the directory of a SAS, or something in it. */
const isBelow = (depth: string, path: string | undefined): boolean =>
  path !== undefined && path !== "" && path.split("/").length >= Number(depth);

/** Compares the kind of resource alone: the signature tells whether the names fit. */
function coversResource({ kind, fields }: Sas, resource: SignedResource): boolean {
  if (kind === "account") return true;
  switch (resource.kind) {
    case "account":
      return false;
    case "container":
      return fields.sr === "c" || (fields.sr === "d" && isBelow(fields.sdd, resource.directory));
    case "blob":
      if (fields.sr === "bs") return resource.snapshot !== undefined;
      if (fields.sr === "bv") return resource.versionId !== undefined;
      return fields.sr === "c" || fields.sr === "b" || (fields.sr === "d" && isBelow(fields.sdd, resource.blob));
    case "queue":
      return (fields.sr === "" || fields.sr === "q") && fields.tn === "";
    case "table":
      return fields.sr === "" && fields.tn.toLowerCase() === resource.table.toLowerCase();
    case "share":
      return fields.sr === "s";
    case "file":
      return fields.sr === "s" || fields.sr === "f";
  }
}

export interface SasUse {
  readonly service: ServiceName;
  readonly remoteAddress: string;
  readonly secure: boolean;
  readonly nowMs: number;
}

/** Checks the parts of a SAS that do not depend on the operation. */
export function checkSasUse(sas: Sas, terms: SasTerms, use: SasUse): Parsed<void> {
  if (sas.httpsOnly && !use.secure) return rejected("AuthorizationProtocolMismatch");
  if (sas.ip && !isInRange(sas.ip, use.remoteAddress)) return rejected("AuthorizationSourceIPMismatch", { SourceIP: use.remoteAddress });
  const { startMs, expiryMs } = terms;
  if ((startMs !== undefined && use.nowMs < startMs) || use.nowMs >= expiryMs) {
    const [start, now] = [startMs === undefined ? "" : formatIso(startMs), formatIso(use.nowMs)];
    return refused(
      `Signature not valid in the specified time frame: Start [${start}] - Expiry [${formatIso(expiryMs)}] - Current [${now}]`,
    );
  }
  if (sas.kind === "delegation") {
    if (sas.fields.sks !== use.service[0]) return rejected("AuthorizationServiceMismatch");
    if (use.nowMs < sas.keyStartMs || use.nowMs >= sas.keyExpiryMs) {
      const [start, end] = [formatIso(sas.keyStartMs), formatIso(sas.keyExpiryMs)];
      return refused(`The user delegation key is not valid now: Start [${start}] - Expiry [${end}] - Current [${formatIso(use.nowMs)}]`);
    }
  }
  if (sas.kind === "account" && !sas.fields.ss.includes(use.service[0] as string)) return rejected("AuthorizationServiceMismatch");
  return parsed(undefined);
}

/** Refuses if the signature does not allow the operation. */
export function checkSasOperation(sas: Sas, terms: SasTerms, needs: OperationAuthorization): Parsed<void> {
  if (sas.kind === "account" && ![...needs.resourceType].some((type) => sas.fields.srt.includes(type))) {
    return rejected("AuthorizationResourceTypeMismatch");
  }
  const groups = { account: needs.accountSas, service: needs.serviceSas, delegation: needs.delegationSas }[sas.kind];
  const letters = lettersThatCount(sas.version, terms.permissions, needs.since);
  return permits(letters, groups) ? parsed(undefined) : rejected("AuthorizationPermissionMismatch");
}

const headerText =
  "A header takes ASCII text only. Write the rest percent-encoded (a file name as filename*=UTF-8''…), and sign the SAS anew.";

/**
 * Returns the response headers that a service or user delegation SAS of the Blob service replaces: what its signature covers. A value that
 * no header can carry is refused: whoever made the SAS would get another answer than the SAS says.
 */
export function responseOverrides({ kind, fields, version }: Sas, service: ServiceName): Parsed<Record<string, string>> {
  if (kind === "account" || (service !== "blob" && service !== "file") || !signedSince(version, "responseOverrides")) return parsed({});
  const headers: Record<string, string> = {};
  for (const [field, name] of [
    ["rscc", "Cache-Control"],
    ["rscd", "Content-Disposition"],
    ["rsce", "Content-Encoding"],
    ["rscl", "Content-Language"],
    ["rsct", "Content-Type"],
  ] as const) {
    const value = fields[field];
    if (!/^[\t\x20-\x7e]*$/.test(value)) return badQuery(field, "", headerText);
    if (value !== "") headers[name] = value;
  }
  return parsed(headers);
}
