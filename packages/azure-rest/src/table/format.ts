/**
 * In which form a request brings its entity and wants its answer. Atom is not supported (the service itself has given it up for versions
 * since 2015-12-11), and neither is verbose JSON; a request that does not say gets JSON with minimal metadata.
 */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, type Parsed, parsed, type RestError, rejected } from "../rest-error.ts";
import { type Query, queryValue } from "../target.ts";
import type { MetadataLevel } from "./entity-json.ts";

/** Levels of texts that clients send with most requests. */
const commonLevels: ReadonlyMap<string, Parsed<MetadataLevel>> = new Map<string, Parsed<MetadataLevel>>([
  ["", parsed("minimal")],
  ["application/json;odata=nometadata", parsed("none")],
  ["application/json;odata=minimalmetadata", parsed("minimal")],
  ["application/json;odata=fullmetadata", parsed("full")],
]);

/** Returns the level of metadata that a request asks for. `$format` is preferred to Accept. */
export function parseMetadataLevel(headers: HttpHeaders, query: Query): Parsed<MetadataLevel> {
  const accept = queryValue(query, "$format") ?? headers.accept ?? "";
  const common = commonLevels.get(accept);
  if (common !== undefined) return common;
  let first: Parsed<MetadataLevel> | undefined;
  for (const range of accept.split(",")) {
    const level = levelOf(range);
    if (level.ok) return level;
    first ??= level;
  }
  return first ?? parsed("minimal");
}

function levelOf(range: string): Parsed<MetadataLevel> {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const odata = parameters.find((parameter) => parameter.startsWith("odata="))?.slice("odata=".length);
  switch (type) {
    case "":
    case "*/*":
    case "application/*":
      return parsed("minimal");
    case "application/json":
    case "json":
      break;
    case "application/atom+xml":
    case "application/xml":
    case "atom":
      return rejected("AtomFormatNotSupported");
    default:
      return rejected("MediaTypeNotSupported");
  }
  switch (odata) {
    case "nometadata":
      return parsed("none");
    case undefined:
    case "minimalmetadata":
      return parsed("minimal");
    case "fullmetadata":
      return parsed("full");
    case "verbose":
      return rejected("JsonVerboseFormatNotSupported");
    default:
      return rejected("MediaTypeNotSupported");
  }
}

export const jsonContentType = (level: MetadataLevel): string =>
  `application/json;odata=${level === "none" ? "nometadata" : `${level}metadata`};streaming=true;charset=utf-8`;

/** Checks the type of a request with an entity. */
export function checkContentType(headers: HttpHeaders): Parsed<void> {
  const type = (headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (type === "application/json") return parsed(undefined);
  return type === "application/atom+xml" ? rejected("AtomFormatNotSupported") : rejected("MediaTypeNotSupported");
}

/** Returns true if the insert answers with the entity that it made. */
export function parsePrefer(headers: HttpHeaders): Parsed<"return-content" | "return-no-content" | undefined> {
  const text = headers.prefer?.trim().toLowerCase();
  if (text === undefined) return parsed(undefined);
  return text === "return-content" || text === "return-no-content" ? parsed(text) : badHeader("Prefer", text);
}

/** `index`: position in the transaction of the change that failed. */
export function odataErrorBody(error: RestError, about: { requestId: string; time: string; index?: string | undefined }): string {
  const { requestId, time, index } = about;
  const details = Object.entries(error.details).filter(([name]) => name !== "index");
  const more = details.map(([name, value]) => `\n${name}:${value}`).join("");
  const value = `${index === undefined ? "" : `${index}:`}${error.message}${more}\nRequestId:${requestId}\nTime:${time}`;
  return JSON.stringify({ "odata.error": { code: error.code, message: { lang: "en-US", value } } });
}
