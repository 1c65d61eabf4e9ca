/**
 * Shared access signatures written by hand from the reference, newest layout of each kind, with any letters: SDKs refuse to make the ones
 * that a test of refusals needs.
 */
import { createHmac } from "node:crypto";
import type { DelegationKey } from "./delegation.ts";

export interface SignedFor {
  readonly service: "blob" | "queue" | "table";
  readonly account: string;
  /** Base64. */
  readonly key: string;
}

/** Of a service or delegation SAS: `sr` of a blob, `tn` and the range of a table, and whatever else the query shall have. */
export type SasFields = Readonly<Record<string, string>>;

const seconds = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
const inTenMinutes = (): string => seconds(Date.now() + 600_000);
const hmac = (key: string, text: string): string => createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
const queryOf = (fields: SasFields): string => new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== "")).toString();
const of = (fields: SasFields, names: string): string[] => names.split(" ").map((name) => fields[name] ?? "");

export function accountSas({ account, key }: SignedFor, ss: string, srt: string, sp: string, more: SasFields = {}): string {
  const fields = { sv: "2026-04-06", ss, srt, sp, se: inTenMinutes(), ...more };
  const text = `${[account, ...of(fields, "sp ss srt st se sip spr sv ses")].join("\n")}\n`;
  return queryOf({ ...fields, sig: hmac(key, text) });
}

/** `name`: container, container/blob, queue or table in lower case. `time`: of the snapshot or version that `sr` is about. */
export function serviceSas({ service, account, key }: SignedFor, name: string, sp: string, more: SasFields = {}, time = ""): string {
  const fields: SasFields = { sv: "2026-04-06", sp, se: inTenMinutes(), ...more };
  const lines = [...of(fields, "sp st se"), `/${service}/${account}/${name}`, ...of(fields, "si sip spr sv")];
  if (service === "blob") lines.push(fields.sr ?? "", time, ...of(fields, "ses rscc rscd rsce rscl rsct"));
  if (service === "table") lines.push(...of(fields, "spk srk epk erk"));
  return queryOf({ ...fields, sig: hmac(key, lines.join("\n")) });
}

export function delegationSas(
  { service, account }: SignedFor,
  by: DelegationKey,
  name: string,
  sp: string,
  more: SasFields = {},
  time = "",
): string {
  const fields: SasFields = {
    sv: "2026-04-06",
    sp,
    se: inTenMinutes(),
    skoid: by.signedObjectId,
    sktid: by.signedTenantId,
    skt: seconds(by.signedStartsOn.getTime()),
    ske: seconds(by.signedExpiresOn.getTime()),
    sks: by.signedService,
    skv: by.signedVersion,
    ...more,
  };
  const lines = [...of(fields, "sp st se"), `/${service}/${account}/${name}`, ...of(fields, "skoid sktid skt ske sks skv")];
  if (service === "blob") lines.push(...of(fields, "saoid suoid scid"));
  lines.push(...of(fields, "skdutid sduoid sip spr sv"));
  // Two empty lines: headers and parameters that the SAS is bound to (since 2026-04-06).
  const bound = (fields.sv ?? "") >= "2026-04-06" ? ["", ""] : [];
  if (service === "blob") lines.push(fields.sr ?? "", time, fields.ses ?? "", ...bound, ...of(fields, "rscc rscd rsce rscl rsct"));
  if (service === "table") lines.push(...of(fields, "spk srk epk erk"));
  return queryOf({ ...fields, sig: hmac(by.value, lines.join("\n")) });
}
