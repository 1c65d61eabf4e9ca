/**
 * Paths of an account without a hierarchical namespace: blobs, and directories that are a blob or only a part of other names (lists.ts).
 * Nothing here is atomic but what one blob is.
 */
import {
  blobHeaders,
  directoryMark,
  etagAndTime,
  etagHeader,
  isDirectoryMark,
  metadataHeaders,
  notImplemented,
  type Parsed,
  parsed,
  rejected,
} from "@stamp/azure-rest";
import type { Container } from "@stamp/wire";
import { underKey } from "../../../accounts/content-key.ts";
import type { LocatedBlob } from "../../../objects/objects.ts";
import { conditionsToWire } from "../../../objects/wire-conditions.ts";
import { blobOf, containerOf } from "../../../objects/wire-to-rest.ts";
import { withKey } from "../../blob/content/scopes.ts";
import { type Answer, respond } from "../../exchange.ts";
import { typeHeader } from "../access.ts";
import {
  asBlob,
  contentOf,
  coversOnePath,
  type DataLakeExchange,
  emptyBody,
  isConditional,
  metadataOf,
  type OnPath,
  rootUnder,
  rowOf,
} from "../exchange.ts";
import { propertiesHeader } from "../filesystems.ts";
import { missingOf } from "../paths.ts";
import { encodeToken } from "../tokens.ts";
import { blobAt, readBelow } from "./lists.ts";

type Creating = DataLakeExchange<"CreateFile"> | DataLakeExchange<"CreateDirectory">;

/** Writes of one blob that meet each other. */
const attemptsMax = 16;

export const createFlatFile = (exchange: DataLakeExchange<"CreateFile">): Promise<Answer> => createFlat(exchange, false);
export const createFlatDirectory = (exchange: DataLakeExchange<"CreateDirectory">): Promise<Answer> => createFlat(exchange, true);

async function createFlat(exchange: Creating, isDirectory: boolean): Promise<Answer> {
  const { conditions, content, ownership, properties, umask } = exchange.asked;
  const path = exchange.resource.path ?? "";
  const feature = missingOf(exchange);
  if (feature !== undefined) return notImplemented(feature);
  if (umask !== undefined || Object.values(ownership).some((one) => one !== undefined)) return rejected("HierarchicalNamespaceNotEnabled");
  if (path === "") return rejected("InvalidUri");
  const given = metadataOf(properties);
  if (!given.ok) return given;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const keyed = await withKey(asBlob(exchange, "PutBlob", row.value));
  if (!keyed.ok) return keyed;
  const metadata = isDirectory ? { ...given.value, ...directoryMark } : given.value;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const there = await blobAt(exchange, row.value, path);
    if (!there.ok) return there;
    const isNew = conditions.ifNoneMatch === "*";
    if (there.value && isNew) return rejected("PathAlreadyExists");
    if (there.value && isDirectoryMark(there.value) !== isDirectory) return rejected("ResourceTypeMismatch");
    // Without a condition the write is one on what was looked at.
    const { leaseId, ...asked } = conditions;
    const looked = there.value ? { ifMatch: etagHeader(exchange.version, there.value.etag) } : { ifNoneMatch: "*" };
    const wanted = { ...(isConditional(asked) ? asked : looked), ...(leaseId === undefined ? {} : { leaseId }) };
    const value = {
      name: nameOf(exchange, row.value, path),
      headers: contentOf(content),
      metadata,
      body: emptyBody,
      conditions: underKey(keyed.value.key, conditionsToWire(wanted, exchange.access)),
    };
    const made = await exchange.objects.execute({ case: "putBlob", value }, "blob", exchange.limits());
    if (made.ok) return respond(201, { ...etagAndTime(exchange.version, blobOf(made.value)), "x-ms-request-server-encrypted": "true" });
    const isChanged = made.error.code === "ConditionNotMet" || made.error.code === "BlobAlreadyExists";
    if (!isChanged || (isConditional(asked) && !isNew)) return made;
  }
  return rejected("ServerBusy");
}

const nameOf = (exchange: OnPath, row: Container, path: string): LocatedBlob =>
  exchange.objects.located({ account: exchange.target.account, container: row.name, blob: path }, row);

/** True if names of blobs begin with the path and a slash. */
async function isImplied(exchange: OnPath, row: Container, path: string): Promise<Parsed<boolean>> {
  const page = await readBelow(exchange, row, path, { marker: "", recursive: true, maxResults: 1 });
  return page.ok ? parsed(page.value.blobs.length > 0) : page;
}

type Shown = DataLakeExchange<"GetPathProperties"> | DataLakeExchange<"GetPathStatus">;

/** Properties of a blob, or of a directory without one: those have the filesystem's ETag and time, as the root has. */
export async function getFlatProperties(exchange: Shown): Promise<Answer> {
  const { asked, version } = exchange;
  const path = exchange.resource.path ?? "";
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const value = { name: nameOf(exchange, row.value, path), conditions: conditionsToWire(asked.conditions), withoutContent: true };
  const blob =
    path === "" ? rejected("BlobNotFound") : await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok && blob.error.code !== "BlobNotFound") return blob;
  if (blob.ok) {
    const shown = blobOf(blob.value);
    const told = exchange.access.may("t") ? shown : { ...shown, tagCount: 0 };
    const length = { "Content-Length": String(shown.contentLengthBytes) };
    const kind = typeHeader(isDirectoryMark(shown) ? "directory" : "file");
    return respond(200, { ...blobHeaders(version, told), ...propertiesHeader(withoutMark(shown.metadata)), ...length, ...kind });
  }
  const implied = path === "" ? parsed(true) : await isImplied(exchange, row.value, path);
  if (!implied.ok) return implied;
  if (!implied.value) return rejected("PathNotFound");
  const root = await rootUnder(exchange, asked.conditions, row.value);
  if (!root.ok) return root;
  // Clients in C++ know a directory by its metadata.
  const told = { ...typeHeader("directory"), ...metadataHeaders(directoryMark), "Content-Length": "0" };
  return respond(200, { ...etagAndTime(version, containerOf(root.value)), ...told });
}

const withoutMark = (metadata: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => !(name.toLowerCase() in directoryMark)));

/** Refuses what is no file of blocks. */
export async function checkFlatFile(exchange: OnPath): Promise<Parsed<void>> {
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const blob = await blobAt(exchange, row.value, exchange.resource.path ?? "");
  if (!blob.ok) return blob;
  if (!blob.value) return rejected("PathNotFound");
  if (isDirectoryMark(blob.value)) return rejected("PathConflict");
  return blob.value.blobType === "BlockBlob" ? parsed(undefined) : rejected("InvalidBlobType");
}

/** Blobs of a page of a recursive deletion, and of these at once. */
const pageBlobs = 256;
const deletedAtOnce = 16;
/** Time after which a recursive deletion answers with a continuation, and the client goes on. */
const deletesWithinMs = 15_000;

/** A recursive deletion is one of blob after blob: what it came to is gone, also if it ends with a refusal. */
export async function deleteFlatPath(exchange: DataLakeExchange<"DeletePath">): Promise<Answer> {
  const { asked, objects } = exchange;
  const path = exchange.resource.path ?? "";
  if (path === "") return rejected("InvalidUri");
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const value = { name: nameOf(exchange, row.value, path), conditions: conditionsToWire(asked.conditions), withoutContent: true };
  const blob = await objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok && blob.error.status === 304) return rejected("ConditionNotMet", {}, { status: 412 });
  if (!blob.ok && blob.error.code !== "BlobNotFound") return blob;
  if (!blob.ok || isDirectoryMark(blobOf(blob.value))) {
    const implied = await isImplied(exchange, row.value, path);
    if (!implied.ok) return implied;
    // The page before may have taken the last of a directory without a blob.
    if (!blob.ok && !implied.value) return asked.continuation === undefined ? rejected("PathNotFound") : respond(200, {});
    if (implied.value && asked.recursive !== true) return rejected("DirectoryNotEmpty");
    if (implied.value && coversOnePath(exchange)) return rejected("AuthorizationPermissionMismatch");
    const below = implied.value ? await deleteBelow(exchange, row.value, path) : parsed("all");
    if (!below.ok) return below;
    if (below.value === "some") return respond(200, { "x-ms-continuation": encodeToken([path]) });
    if (!blob.ok) return respond(200, {});
  }
  const { name, conditions } = value;
  const gone = await objects.deleteBlob({ name, conditions, snapshots: "", permanent: false }, exchange.limits);
  return gone.ok ? respond(200, {}) : gone;
}

async function deleteBelow(exchange: OnPath, row: Container, path: string): Promise<Parsed<"all" | "some">> {
  const { clock } = exchange.objects.parts.world;
  const untilMs = clock.monotonicMs() + deletesWithinMs;
  let marker = "";
  do {
    const page = await readBelow(exchange, row, path, { marker, recursive: true, maxResults: pageBlobs });
    if (!page.ok) return page;
    const { blobs, next } = page.value;
    for (let at = 0; at < blobs.length; at += deletedAtOnce) {
      if (clock.monotonicMs() > untilMs) return parsed("some");
      const names = blobs.slice(at, at + deletedAtOnce).map(({ name }) => nameOf(exchange, row, name));
      const gone = await Promise.all(
        names.map((name) => exchange.objects.deleteBlob({ name, snapshots: "", permanent: false }, exchange.limits)),
      );
      const refused = gone.find((one) => !one.ok && one.error.code !== "BlobNotFound");
      if (refused && !refused.ok) return refused;
    }
    marker = next;
  } while (marker !== "");
  return parsed("all");
}
