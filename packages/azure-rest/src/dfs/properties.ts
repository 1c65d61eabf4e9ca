/**
 * User-defined properties, the value of `x-ms-properties`: `name=value` with commas between them, values in base64. They are what the Blob
 * service calls metadata, so their names are those of metadata, and names and values have 8 KiB together.
 */
import { fromBase64, toBase64 } from "../base64.ts";
import { type HttpHeaders, metadataBytesMax } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";

const header = "x-ms-properties";

/** Values by names as they were written. Names differ by more than case. */
export type PathProperties = ReadonlyMap<string, Uint8Array>;

/** Returns undefined if the header is absent. */
export function parseProperties(headers: HttpHeaders): Parsed<PathProperties | undefined> {
  const text = headers[header];
  if (text === undefined) return parsed(undefined);
  const properties = new Map<string, Uint8Array>();
  const seen = new Set<string>();
  let bytes = 0;
  for (const item of text.split(",")) {
    const equals = item.indexOf("=");
    const name = (equals < 0 ? item : item.slice(0, equals)).trim();
    if (name === "") return rejected("InvalidPropertyName", { HeaderName: header }, { message: "A property name cannot be empty." });
    if (!/^[a-z_][a-z0-9_]*$/i.test(name)) return rejected("InvalidPropertyName", { HeaderName: header, HeaderValue: name });
    const value = equals < 0 ? undefined : fromBase64(item.slice(equals + 1).trim());
    if (value === undefined) return badHeader(header, item.trim(), "A property is name=value, with the value in base64.");
    if (seen.has(name.toLowerCase())) return badHeader(header, item.trim(), "It names a property twice.");
    bytes += name.length + value.length;
    if (bytes > metadataBytesMax) return rejected("MetadataTooLarge");
    seen.add(name.toLowerCase());
    properties.set(name, value);
  }
  return parsed(properties);
}

/** Returns the header that an answer shows the properties in. */
export const propertiesText = (properties: PathProperties): string =>
  [...properties].map(([name, value]) => `${name}=${toBase64(value)}`).join(",");

/** Metadata by which clients know that a blob stands for a directory, in an account without a hierarchical namespace. */
export const directoryMark = { hdi_isfolder: "true" } as const;

/** True if the metadata say that the blob stands for a directory. Clients write the name in any case. */
export const isDirectoryMark = ({ metadata }: { readonly metadata: Readonly<Record<string, string>> }): boolean =>
  Object.entries(metadata).some(([name, value]) => name.toLowerCase() === "hdi_isfolder" && value.toLowerCase() === "true");
