/**
 * Blobs from before names were made canonical (azure-rest/blob/resource.ts): whether one has the literal name of a request. Only a path that
 * is not canonical, or has a character that is refused, costs this question: the container's row and a list of at most one blob.
 *
 * - The question comes before authentication: what a SAS signs and what the request reaches are one name.
 * - A stranger is not told about blobs of a private container: for a request without a signature its literal names do not count.
 * - If the question can't be answered, the request fails: a guess could read or overwrite another blob.
 */
import { canonicalPath, hasRefusedCharacter, olderBlob, type Parsed, parsed, rejected, type Target } from "@stamp/azure-rest";
import type { Container } from "@stamp/wire";
import type { CallLimits } from "../routing/router.ts";
import type { Objects } from "./objects.ts";

/** Returns the target, marked as an older name if a blob has the literal name of its path. */
export async function targetAsNamed(objects: Objects, target: Target, signed: boolean, limits: CallLimits): Promise<Parsed<Target>> {
  const named = olderBlob(target);
  if (named === undefined) return parsed(target);
  const row = await objects.container(target.account, named.container, limits);
  if (!row.ok) return row.error.status === 404 ? parsed(target) : row;
  if (!signed && row.value.publicAccess === "") return parsed(target);
  const found = await isName(objects, target.account, row.value, named.blob, limits);
  if (!found.ok) return found;
  return parsed(found.value ? { ...target, older: true } : target);
}

/** Refuses a name that is no canonical one, unless a blob from before has it: for callers that name a blob without a URL. */
export async function checkLiteralName(
  objects: Objects,
  account: string,
  container: Container,
  blob: string,
  limits: CallLimits,
): Promise<Parsed<void>> {
  if (canonicalPath(blob) === blob && !hasRefusedCharacter(blob)) return parsed(undefined);
  const found = await isName(objects, account, container, blob, limits);
  if (!found.ok) return found;
  return found.value ? parsed(undefined) : rejected("InvalidUri", { Reason: "The name of the blob is not in its canonical form." });
}

/** True if there is anything of that name: a blob, snapshots, versions, blocks, or what is deleted softly. */
async function isName(objects: Objects, account: string, container: Container, blob: string, limits: CallLimits): Promise<Parsed<boolean>> {
  const question = {
    prefix: blob,
    delimiter: "",
    marker: "",
    maxResults: 1,
    includeMetadata: false,
    includeUncommitted: true,
    includeSnapshots: true,
    includeVersions: true,
    includeDeleted: true,
  };
  const page = await objects.listBlobs(account, container, question, limits);
  if (!page.ok) return page;
  // The first name with this prefix is the name itself, if there is one.
  const first = page.value.entries[0]?.kind;
  return parsed(first?.case === "blob" && first.value.name === blob);
}
