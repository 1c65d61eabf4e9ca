/**
 * Resource in the path of a Data Lake Storage request: the account, a filesystem, its root directory, or a path in it. The path is decoded
 * and made canonical as the Blob service's is (blob/resource.ts), since both services name the same files. Slashes at both ends of a path
 * mean nothing: `/fs//` is the root, `/fs/a/` is `a`. How long and how deep a path may be depends on the account, and is for the tree.
 */
import { canonicalPath, checkBlobName, checkContainerName } from "../names.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodePercent } from "../target.ts";

export interface DataLakeResource {
  /** Undefined: the account itself. */
  readonly filesystem: string | undefined;
  /** Path without slashes at its ends; empty: the root directory; undefined: the filesystem, if nothing in the query names its root. */
  readonly path: string | undefined;
}

/** Parses a path behind the account, without the slash before it. */
export function parseDataLakeResource(resource: string): Parsed<DataLakeResource> {
  const decoded = decodePercent(resource);
  if (decoded === undefined) return rejected("InvalidUri");
  const canonical = canonicalPath(decoded);
  const slash = canonical.indexOf("/");
  if (canonical === "") return parsed({ filesystem: undefined, path: undefined });
  if (slash < 0) return parsed({ filesystem: canonical, path: undefined });
  return parsed({ filesystem: canonical.slice(0, slash), path: withoutSlashes(canonical.slice(slash + 1)) });
}

/** Drops slashes at both ends. */
export function withoutSlashes(path: string): string {
  let begin = 0;
  let end = path.length;
  while (path[begin] === "/") begin++;
  while (end > begin && path[end - 1] === "/") end--;
  return path.slice(begin, end);
}

/** Directory of a query, as the path of a request is made canonical. */
export const canonicalDirectory = (text: string): string => withoutSlashes(canonicalPath(text));

/** Apart from parsing: first it is seen whose account it is, and who asks. */
export function checkDataLakeNames({ filesystem, path }: DataLakeResource): Parsed<void> {
  const named = filesystem === undefined ? undefined : checkContainerName(filesystem);
  if (named && !named.ok) return named;
  const checked = path === undefined || path === "" ? undefined : checkBlobName(path);
  return checked && !checked.ok ? checked : parsed(undefined);
}
