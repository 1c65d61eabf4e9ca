/** Names of accounts, containers and blobs ("Naming and referencing containers, blobs, and metadata"). */
import { notImplemented, type Parsed, parsed, rejected } from "./rest-error.ts";

export const blobNameCharactersMax = 1024;
export const blobNameSegmentsMax = 254;
const specialContainers: ReadonlySet<string> = new Set(["$root", "$web", "$logs"]);

const tooLong = { message: "The specified resource name length is not within the permissible limits." } as const;

export const isAccountName = (name: string): boolean => /^[a-z0-9]{3,24}$/.test(name);

export function checkContainerName(name: string): Parsed<string> {
  if (specialContainers.has(name)) return parsed(name);
  if (name === "$blobchangefeed") return notImplemented("change feed");
  if (!/^[a-z0-9](-?[a-z0-9])*$/.test(name)) return rejected("InvalidResourceName");
  if (name.length < 3 || name.length > 63) return rejected("OutOfRangeInput", {}, tooLong);
  return parsed(name);
}

/** Decoded. Any character is allowed that UTF-8 has; the service counts characters as UTF-16 does. */
export function checkBlobName(name: string): Parsed<string> {
  if (name === "" || name.length > blobNameCharactersMax) return rejected("OutOfRangeInput", {}, tooLong);
  let segments = 1;
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) === 0x2f) segments++;
  if (segments > blobNameSegmentsMax) return rejected("InvalidResourceName");
  return parsed(name);
}
