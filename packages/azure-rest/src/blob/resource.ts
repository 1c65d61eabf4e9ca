/**
 * Resource in the path of a Blob service request: the account itself, a container, or a blob in it.
 *
 * The path is decoded once and made canonical (names.ts) before it is divided, as the service does: `a%5Cb`, `x/../a/b` and `a./b` name the
 * blob `a/b`. Everything that needs the name takes it from here: operations, SAS, requests of a batch, sources of copies. A shared key signs
 * the path as it came.
 *
 * Stamp did not always do so. A blob from before, whose literal name is not canonical or has a character that is refused now, keeps its
 * name: `olderBlob` says which blob that would be, the front-end asks whether it exists, and sets `older` in the target.
 */
import type { SignedResource } from "../auth/authorization.ts";
import { canonicalPath, checkBlobName, checkContainerName, hasRefusedCharacter } from "../names.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodePercent, type Query, queryValue, type Target } from "../target.ts";

export interface BlobResource {
  /** Undefined: the account itself. A blob without container in the URL is in `$root`. */
  readonly container?: string;
  readonly blob?: string;
}

export function parseBlobResource({ resource, query, older }: Target): Parsed<BlobResource> {
  if (older) return literalResource(resource, query);
  const path = decodePercent(resource);
  if (path === undefined) return rejected("InvalidUri");
  const canonical = canonicalPath(path);
  const slash = canonical.indexOf("/");
  return parsed(
    slash < 0 ? resourceOf(canonical, undefined, query) : resourceOf(canonical.slice(0, slash), canonical.slice(slash + 1), query),
  );
}

/** Splits the path as the client wrote it, and decodes the parts. */
function literalResource(resource: string, query: Query): Parsed<BlobResource> {
  const slash = resource.indexOf("/");
  const first = decodePercent(slash < 0 ? resource : resource.slice(0, slash));
  const rest = slash < 0 ? undefined : decodePercent(resource.slice(slash + 1));
  if (first === undefined || (slash >= 0 && rest === undefined)) return rejected("InvalidUri");
  return parsed(resourceOf(first, rest, query));
}

/** `rest`: path behind the first slash; undefined without one. */
function resourceOf(first: string, rest: string | undefined, query: Query): BlobResource {
  if (first === "" && rest === undefined) return {};
  if (rest !== undefined && rest !== "") return { container: first, blob: rest };
  // One segment is a container where the query says so, else a blob of $root.
  return query.has("restype") || rest !== undefined ? { container: first } : { container: "$root", blob: first };
}

/** Returns the blob that the path names literally, if an older blob could have this name and the path's canonical form names something else. */
export function olderBlob(target: Target): { readonly container: string; readonly blob: string } | undefined {
  const { container, blob } = okOf(literalResource(target.resource, target.query)) ?? {};
  if (container === undefined || blob === undefined) return undefined;
  if (!checkContainerName(container).ok || !checkBlobName(blob, true).ok) return undefined;
  const canonical = okOf(parseBlobResource(target));
  const same = canonical?.container === container && canonical.blob === blob;
  return same && !hasRefusedCharacter(blob) ? undefined : { container, blob };
}

const okOf = <T>(result: Parsed<T>): T | undefined => (result.ok ? result.value : undefined);

/** Checks names. It is apart from parsing, because account and caller are looked at first. */
export function checkNames({ container, blob }: BlobResource, older = false): Parsed<void> {
  const checked = container === undefined ? undefined : checkContainerName(container);
  if (checked && !checked.ok) return checked;
  const checkedBlob = blob === undefined ? undefined : checkBlobName(blob, older);
  return checkedBlob && !checkedBlob.ok ? checkedBlob : parsed(undefined);
}

export function signedBlobResource({ container, blob }: BlobResource, query: Query): SignedResource {
  if (container === undefined) return { kind: "account" };
  if (blob === undefined) return { kind: "container", container };
  return { kind: "blob", container, blob, snapshot: queryValue(query, "snapshot"), versionId: queryValue(query, "versionid") };
}
