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

/**
 * Characters that no name in a URL may have: controls, those for private use, and U+FFFD, which stands for what could not be decoded
 * (docs/api/outcomes.md, "Names"). U+FFFE and U+FFFF are allowed.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused.
const refusedCharacter = /[\u0000-\u001f\u007f\u0081\ue000-\uf8ff\ufffd]/;

export const hasRefusedCharacter = (name: string): boolean => refusedCharacter.test(name);

/** The path differs from its canonical form: a backslash, or a dot at the end of a segment. */
const notCanonical = /\\|\.(?=\/|$)/;
const onlyDots = /^\.+$/;

/**
 * Returns a decoded path as the service reads it, without the slash before it: a backslash is a slash; `..` takes the segment before it away,
 * but leads nowhere above the first one; other segments of dots only mean nothing; dots at the end of a segment are dropped. Empty segments
 * stay. The result is its own canonical form.
 */
export function canonicalPath(path: string): string {
  if (!notCanonical.test(path)) return path;
  const segments = path.replaceAll("\\", "/").split("/");
  const kept: string[] = [];
  for (const segment of segments) {
    if (!onlyDots.test(segment)) kept.push(withoutLastDots(segment));
    else if (segment === "..") kept.pop();
  }
  // The path of a segment of dots ends with a slash, as that of a folder does.
  if (onlyDots.test(segments.at(-1) ?? "")) kept.push("");
  return kept.join("/");
}

function withoutLastDots(segment: string): string {
  let end = segment.length;
  while (segment[end - 1] === ".") end--;
  return segment.slice(0, end);
}

/** Checks a decoded name; the service counts UTF-16 units. `older`: a name from before characters were refused (blob/resource.ts). */
export function checkBlobName(name: string, older = false): Parsed<string> {
  if (!older && hasRefusedCharacter(name)) return rejected("InvalidUri", { Reason: "A character that no name may have." });
  if (name === "" || name.length > blobNameCharactersMax) return rejected("OutOfRangeInput", {}, tooLong);
  let segments = 1;
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) === 0x2f) segments++;
  if (segments > blobNameSegmentsMax) return rejected("InvalidResourceName");
  return parsed(name);
}
