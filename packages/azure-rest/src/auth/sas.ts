/**
 * Shared access signatures: what the query says ("Create an account SAS", "Create a service SAS", "Create a user delegation SAS"), as one
 * value, and the texts that are signed in each version (`sas-string.ts`). Nothing here says whether it is genuine or sufficient.
 */
import { fromBase64 } from "../base64.ts";
import { parseIso } from "../dates.ts";
import { isId } from "../dfs/access/access-list.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { sasParameters } from "../single-parameters.ts";
import { type Query, queryValue } from "../target.ts";
import { isVersion, sasIsSince, signedSince } from "../version.ts";
import { type IpRange, parseIpRange } from "./ip-range.ts";

/** Fields of a SAS as the query has them; "" for those that are absent. */
export type SasFields = Readonly<Record<SasField, string>>;

export type SasField = (typeof sasParameters)[number];

export type SasKind = "account" | "service" | "delegation";

export interface Sas {
  readonly kind: SasKind;
  readonly fields: SasFields;
  /** `sv`; "" before 2012-02-12. */
  readonly version: string;
  readonly signature: Uint8Array;
  /** Permission letters; undefined: those of the stored access policy. */
  readonly permissions: string | undefined;
  readonly startMs: number | undefined;
  readonly expiryMs: number | undefined;
  /** Id of a stored access policy; "" without one. */
  readonly identifier: string;
  readonly ip: IpRange | undefined;
  readonly httpsOnly: boolean;
  /** Start and end of the key of a user delegation SAS, in milliseconds since 1970. */
  readonly keyStartMs: number;
  readonly keyExpiryMs: number;
}

export const sasFieldCharactersMax = 4096;

const refused = (detail: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });

/** True if the query holds a signature. */
export const hasSas = (query: Query): boolean => query.has("sig");

export function parseSas(query: Query): Parsed<Sas> {
  const fields = Object.fromEntries(sasParameters.map((name) => [name, queryValue(query, name) ?? ""])) as Record<SasField, string>;
  const long = sasParameters.find((name) => fields[name].length > sasFieldCharactersMax);
  if (long !== undefined) return refused(`${long} is too long.`);
  // A line break inside a field could make one signed text out of two different requests.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
  const broken = sasParameters.find((name) => /[\u0000-\u001f\u007f]/.test(fields[name]));
  if (broken !== undefined) return refused(`${broken} has characters that it can't have.`);
  const signature = fromBase64(fields.sig);
  if (signature?.length !== 32) return refused("Signature size is invalid.");
  if (fields.sv !== "" && !isVersion(fields.sv)) return refused("sv is not a version of the service.");
  const kind: SasKind =
    fields.ss !== "" || fields.srt !== "" ? "account" : fields.skoid !== "" || fields.ske !== "" ? "delegation" : "service";
  const lacks = missingOf(kind, fields);
  if (lacks !== undefined) return refused(`${lacks} is mandatory. Cannot be empty`);
  const wrong = contradictionOf(kind, fields);
  if (wrong !== undefined) return refused(wrong);
  if (fields.spr !== "" && !/^(https|https,http|http,https)$/.test(fields.spr)) return refused("spr is not https or https,http.");
  const ip = fields.sip === "" ? undefined : parseIpRange(fields.sip);
  if (fields.sip !== "" && !ip) return refused("sip is not an IPv4 address or a range of them.");
  const times = parseTimes(fields);
  if (!times.ok) return times;
  return parsed({
    kind,
    fields,
    version: fields.sv,
    signature,
    permissions: fields.sp === "" ? undefined : fields.sp,
    identifier: fields.si,
    ip,
    httpsOnly: fields.spr === "https",
    startMs: times.value.st,
    expiryMs: times.value.se,
    keyStartMs: times.value.skt ?? 0,
    keyExpiryMs: times.value.ske ?? 0,
  });
}

function missingOf(kind: SasKind, fields: SasFields): SasField | undefined {
  const needed: Readonly<Record<SasKind, readonly SasField[]>> = {
    account: ["sv", "ss", "srt", "sp", "se"],
    delegation: ["sv", "sr", "sp", "se", "skoid", "sktid", "skt", "ske", "sks", "skv"],
    service: [],
  };
  const queueToo = kind === "delegation" && fields.sks !== "" && fields.sks !== "b";
  return needed[kind].find((name) => fields[name] === "" && !(name === "sr" && queueToo));
}

/** Letters of any service and kind. */
const knownLetters = /^[rwdlacxyupftmeoi]*$/;

/** Fields that do not go together. Refused, because the reading that ignores one of them would grant more than was meant. */
function contradictionOf(kind: SasKind, fields: SasFields): string | undefined {
  const { sv, sp, si, sr, ses, spk, srk, epk, erk, sdd, saoid, suoid } = fields;
  if (!knownLetters.test(sp)) return "sp has a letter that is no permission.";
  if (kind !== "service" && !sasIsSince(sv, kind)) return `sv is older than shared access signatures of this kind: ${sv}.`;
  if (kind !== "service" && si !== "") return "Only a service SAS has a stored access policy (si).";
  if ((sr === "bs" || sr === "bv") && !sasIsSince(sv, sr)) return `sr=${sr} is newer than sv.`;
  if (sr === "d" && !sasIsSince(sv, "d")) return "sr=d is newer than sv.";
  if ((sr === "d") !== (sdd !== "")) return "sdd is the depth of the directory that sr=d is for.";
  if (sdd !== "" && !/^[1-9]\d{0,2}$/.test(sdd)) return "sdd is not a number of directories, from 1 on: sign a filesystem by sr=c.";
  if (suoid !== "" && saoid !== "") return "Only one of saoid and suoid is good.";
  if ((suoid !== "" || saoid !== "") && kind !== "delegation") return "saoid and suoid are those of a user delegation SAS.";
  const agent = saoid || suoid;
  if (agent !== "" && !isId(agent)) return "saoid and suoid are ids of users: without spaces, commas and colons.";
  // An older version does not sign them.
  if (agent !== "" && !signedSince(sv, "delegationAgents")) return "saoid and suoid are newer than sv.";
  if (ses !== "" && !signedSince(sv, "encryptionScope")) return "ses is newer than sv.";
  // A row key bounds only inside the partition that the other bound names.
  if (srk !== "" && spk === "") return "srk is given without spk.";
  if (erk !== "" && epk === "") return "erk is given without epk.";
  return undefined;
}

type Times = { readonly [K in "st" | "se" | "skt" | "ske"]: number | undefined };

function parseTimes(fields: SasFields): Parsed<Times> {
  const times: { -readonly [K in keyof Times]: number | undefined } = { st: undefined, se: undefined, skt: undefined, ske: undefined };
  for (const name of ["st", "se", "skt", "ske"] as const) {
    if (fields[name] === "") continue;
    times[name] = parseIso(fields[name]);
    if (times[name] === undefined) return refused(`${name} is not an ISO 8601 time: '${fields[name]}'.`);
  }
  return parsed(times);
}
