/** What the path of a Blob service request names: the account itself, a container, or a blob in it. */
import type { SignedResource } from "../auth/authorization.ts";
import { checkBlobName, checkContainerName } from "../names.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodePercent, type Query, queryValue, type Target } from "../target.ts";

export interface BlobResource {
  /** Undefined: the account itself. A blob without container in the URL is in `$root`. */
  readonly container?: string;
  readonly blob?: string;
}

export function parseBlobResource({ resource, query }: Target): Parsed<BlobResource> {
  if (resource === "") return parsed({});
  const slash = resource.indexOf("/");
  const first = decodePercent(slash < 0 ? resource : resource.slice(0, slash));
  const rest = slash < 0 ? "" : decodePercent(resource.slice(slash + 1));
  if (first === undefined || rest === undefined) return rejected("InvalidUri");
  if (rest !== "") return parsed({ container: first, blob: rest });
  // One segment is a container where the query says so, else a blob of $root.
  return parsed(query.has("restype") || slash >= 0 ? { container: first } : { container: "$root", blob: first });
}

/** Apart from parsing: first it is seen whose account it is, and who asks. */
export function checkNames({ container, blob }: BlobResource): Parsed<void> {
  const checked = container === undefined ? undefined : checkContainerName(container);
  if (checked && !checked.ok) return checked;
  const checkedBlob = blob === undefined ? undefined : checkBlobName(blob);
  return checkedBlob && !checkedBlob.ok ? checkedBlob : parsed(undefined);
}

export function signedBlobResource({ container, blob }: BlobResource, query: Query): SignedResource {
  if (container === undefined) return { kind: "account" };
  if (blob === undefined) return { kind: "container", container };
  return { kind: "blob", container, blob, snapshot: queryValue(query, "snapshot"), versionId: queryValue(query, "versionid") };
}
