/**
 * Resource in the path of a Files request: the account, a share, its root directory, or a path in it. A path is a list of names:
 * an escaped slash or backslash divides them as a slash does. Dots at the end of a name are dropped unless the request says
 * `x-ms-allow-trailing-dot: true`, as the service does. How long and deep a path may be is for the tree.
 */
import type { HttpHeaders } from "../headers.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodePercent } from "../target.ts";

export interface FileResource {
  /** Undefined: the account itself. */
  readonly share: string | undefined;
  /** Names on the way from the root; empty: the root directory, or the share. */
  readonly path: readonly string[];
}

/** Parses a path behind the account, without the slash before it. */
export function parseFileResource(resource: string, headers: HttpHeaders = {}): Parsed<FileResource> {
  const keepsDots = headers["x-ms-allow-trailing-dot"]?.toLowerCase() === "true";
  const path = namesOfPath(resource, keepsDots);
  if (!path.ok) return path;
  const [share, ...rest] = path.value;
  return parsed({ share, path: rest });
}

/** Returns the names of a path as it stands in a URL. */
export function namesOfPath(text: string, keepsDots: boolean): Parsed<string[]> {
  const names: string[] = [];
  for (const segment of text.split("/")) {
    if (segment === "") continue;
    const decoded = decodePercent(segment);
    if (decoded === undefined) return rejected("InvalidUri");
    // A backslash in a URL is a slash to clients of Windows.
    for (const name of decoded.split(/[\\/]/)) if (name !== "") names.push(keepsDots || /^\.+$/.test(name) ? name : withoutLastDots(name));
  }
  return parsed(names);
}

function withoutLastDots(name: string): string {
  let end = name.length;
  while (name[end - 1] === ".") end--;
  return name.slice(0, end);
}

/** Names of shares have the form of those of containers. */
export function checkShareName(name: string): Parsed<string> {
  if (!/^[a-z0-9](-?[a-z0-9])*$/.test(name)) return rejected("InvalidResourceName");
  if (name.length < 3 || name.length > 63) {
    return rejected("OutOfRangeInput", {}, { message: "The specified resource name length is not within the permissible limits." });
  }
  return parsed(name);
}
