/**
 * The text that a SAS signs, by its version. Every field stands on a line of its own, as it was in the query, empty when it was not there.
 *
 *   account      2015-04-05  account sp ss srt st se sip spr sv          and a newline at the end
 *                2020-12-06  … sv ses
 *   blob         (none)      sp st se resource si
 *                2012-02-12  … si sv
 *                2013-08-15  … si sv rscc rscd rsce rscl rsct
 *                2015-04-05  … si sip spr sv rscc …
 *                2018-11-09  … sv sr time rscc …                         time: of the snapshot or version
 *                2020-12-06  … sr time ses rscc …
 *   delegation   2018-11-09  sp st se resource skoid sktid skt ske sks skv sip spr sv sr time rscc …
 *   (blob)       2020-02-10  … skv saoid suoid scid sip …
 *                2020-12-06  … time ses rscc …
 *                2025-07-05  … scid skdutid sduoid sip …
 *                2026-04-06  … ses headers parameters rscc …             those named by srh and srq, with their values
 *   queue        2012-02-12  sp st se resource si sv;   2015-04-05  … si sip spr sv
 *   file         2015-02-21  as blob, to 2018-11-08
 *   table        2012-02-12  … si sv spk srk epk erk;   2015-04-05  … si sip spr sv spk srk epk erk
 *   delegation   2025-07-05  sp st se resource skoid sktid skt ske sks skv skdutid sduoid sip spr sv, and the range for a table
 *   (queue, table, file)     … for a file rscc …
 *
 * The resource is /service/account/name since 2015-02-21, /account/name before.
 */
import type { HttpHeaders } from "../headers.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import type { Query } from "../target.ts";
import { signedSince } from "../version.ts";
import type { SignedResource } from "./authorization.ts";
import type { Sas, SasField, SasFields } from "./sas.ts";
import { checkNames, signedText } from "./signed-lines.ts";

export interface SignedRequest {
  readonly service: ServiceName;
  readonly account: string;
  readonly resource: SignedResource;
  readonly query: Query;
  readonly headers: HttpHeaders;
}

const refused = (detail: string): Parsed<never> => rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });

const overrides = ["rscc", "rscd", "rsce", "rscl", "rsct"] as const;
const linesOf = (fields: SasFields, names: readonly SasField[]): string[] => names.map((name) => fields[name]);

/**
 * Returns the text that the SAS signs for the request. Refuses a SAS that can't be for what the request names, and a request whose text
 * could be another request's, too.
 */
export function sasStringToSign(sas: Sas, request: SignedRequest): Parsed<string> {
  if (sas.kind === "account") return signedText(accountLines(sas, request.account));
  const resource = canonicalResource(sas, request);
  if (resource === undefined) return refused("Signature did not match. The signed resource is not what the request names.");
  if (sas.kind === "service") return signedText(serviceLines(sas, resource, request));
  const lines = delegationLines(sas, resource, request);
  return lines.ok ? signedText(lines.value) : lines;
}

/** Returns the lines of an account SAS that are signed. The empty line at the end is the newline that ends the text. */
function accountLines({ fields, version }: Sas, account: string): string[] {
  const scope: readonly SasField[] = signedSince(version, "encryptionScope") ? ["ses"] : [];
  return [account, ...linesOf(fields, ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv", ...scope]), ""];
}

/** Returns the text that stands for the resource in the signed string: of a container's SAS always the container. */
function canonicalResource({ fields, version }: Sas, { service, account, resource }: SignedRequest): string | undefined {
  const name = nameOf(fields, resource);
  if (name === undefined) return undefined;
  return `${signedSince(version, "serviceInResource") ? `/${service}` : ""}/${account}/${name}`;
}

/** Returns the directory of the SAS, as far above the path as its depth says; undefined: the path is not that deep. */
function directoryIn({ sdd }: SasFields, container: string, path: string | undefined): string | undefined {
  const names = path === undefined || path === "" ? [] : path.split("/");
  return names.length < Number(sdd) ? undefined : `${container}/${names.slice(0, Number(sdd)).join("/")}`;
}

function nameOf(fields: SasFields, resource: SignedResource): string | undefined {
  switch (resource.kind) {
    case "account":
      return undefined;
    case "container":
      if (fields.sr === "d") return directoryIn(fields, resource.container, resource.directory);
      return fields.sr === "c" ? resource.container : undefined;
    case "blob":
      if (fields.sr === "d") return directoryIn(fields, resource.container, resource.blob);
      return fields.sr === "c" ? resource.container : fields.sr === "" ? undefined : `${resource.container}/${resource.blob}`;
    case "queue":
      return resource.queue;
    case "table":
      return resource.table.toLowerCase();
    case "share":
      return fields.sr === "s" ? resource.share : undefined;
    case "file":
      return fields.sr === "s" ? resource.share : fields.sr === "f" ? `${resource.share}/${resource.path}` : undefined;
  }
}

function serviceLines({ fields, version }: Sas, resource: string, request: SignedRequest): string[] {
  const lines = [...linesOf(fields, ["sp", "st", "se"]), resource, fields.si];
  if (version === "") return lines;
  lines.push(...linesOf(fields, signedSince(version, "ipAndProtocol") ? ["sip", "spr", "sv"] : ["sv"]));
  if (request.service === "queue") return lines;
  if (request.service === "file") return signedSince(version, "responseOverrides") ? [...lines, ...linesOf(fields, overrides)] : lines;
  if (request.service === "table") return [...lines, ...linesOf(fields, ["spk", "srk", "epk", "erk"])];
  if (signedSince(version, "resourceAndTime")) lines.push(fields.sr, timeOf(fields, request.resource));
  if (signedSince(version, "encryptionScope")) lines.push(fields.ses);
  return signedSince(version, "responseOverrides") ? [...lines, ...linesOf(fields, overrides)] : lines;
}

function delegationLines({ fields, version }: Sas, resource: string, request: SignedRequest): Parsed<string[]> {
  const lines = [...linesOf(fields, ["sp", "st", "se"]), resource, ...linesOf(fields, ["skoid", "sktid", "skt", "ske", "sks", "skv"])];
  const isBlob = request.service === "blob";
  if (isBlob && signedSince(version, "delegationAgents")) lines.push(...linesOf(fields, ["saoid", "suoid", "scid"]));
  if (signedSince(version, "delegatedUser")) lines.push(fields.skdutid, fields.sduoid);
  lines.push(...linesOf(fields, ["sip", "spr", "sv"]));
  if (request.service === "table") return parsed([...lines, ...linesOf(fields, ["spk", "srk", "epk", "erk"])]);
  if (request.service === "file") return parsed([...lines, ...linesOf(fields, overrides)]);
  if (!isBlob) return parsed(lines);
  lines.push(fields.sr, timeOf(fields, request.resource));
  if (signedSince(version, "encryptionScope")) lines.push(fields.ses);
  if (signedSince(version, "boundHeaders")) {
    const { headers, query } = request;
    const boundHeaders = boundLines("srh", fields.srh, (name) => (headers[name] === undefined ? [] : [headers[name]]));
    if (!boundHeaders.ok) return boundHeaders;
    const boundParameters = boundLines("srq", fields.srq, (name) => query.get(name) ?? []);
    if (!boundParameters.ok) return boundParameters;
    // A newline ends each header and begins each parameter: two empty lines are between them.
    lines.push(...boundHeaders.value, "", "", ...boundParameters.value);
  }
  return parsed([...lines, ...linesOf(fields, overrides)]);
}

const timeOf = (fields: SasFields, resource: SignedResource): string => {
  if (resource.kind !== "blob") return "";
  return (fields.sr === "bs" ? resource.snapshot : fields.sr === "bv" ? resource.versionId : "") ?? "";
};

const namesIn = (list: string): string[] => (list === "" ? [] : list.split(","));

/** Returns a line for each name that the SAS binds. An absent value is not an empty one: the request must have what is bound. */
function boundLines(field: "srh" | "srq", list: string, valuesOf: (name: string) => readonly string[]): Parsed<string[]> {
  const names = namesIn(list);
  const checked = checkNames(names, field);
  if (!checked.ok) return checked;
  const lines: string[] = [];
  for (const name of names) {
    const [value, ...more] = valuesOf(name.toLowerCase());
    if (value === undefined) return refused(`The request lacks ${name}, which its signature binds (${field}).`);
    if (more.length > 0) return refused(`${name}, which the signature binds (${field}), stands more than once in the request.`);
    lines.push(`${name}:${value}`);
  }
  return parsed(lines);
}
