/**
 * Decides by the access control of a path, and of all directories above it, whether the caller may do the operation. Judged are callers
 * whose role is not enough and whom a user delegation SAS names (`suoid`): those with `access.judged`. No others are.
 *
 * Invariants:
 * - Every row that decides is read after the request arrived.
 * - What was looked at is remembered by id: an operation that meets another file or directory under the path does nothing.
 */
import {
  allows,
  type DataLakeRequest,
  grants,
  type Identity,
  mayEmpty,
  mayList,
  type Parsed,
  type PathAccess,
  type PathOperationName,
  parsed,
  rejected,
} from "@stamp/azure-rest";
import type { HeldEntry } from "@stamp/objects";
import { list, reach } from "@stamp/tree";
import type { Container } from "@stamp/wire";
import { rootId } from "../../trees/trees.ts";
import { type Named, readAccess } from "./access.ts";
import { namesOf, type OnPath, rowOf, treeNameOf } from "./exchange.ts";
import { refused } from "./refusals.ts";
import { runInTree } from "./run.ts";

const forbidden = rejected("AuthorizationPermissionMismatch");

const guardedBy = (access: PathAccess) => ({ ...access, access: access.lists.access });

export interface ToJudge {
  readonly operation: PathOperationName;
  /** A rename has two. */
  readonly paths: readonly string[];
  /** Rights on the path that the request asks about. */
  readonly rights?: number | undefined;
}

/** Returns what lists have to decide about for a request of Data Lake Storage. */
export function toJudge(operation: PathOperationName, asked: DataLakeRequest, path: string | undefined): ToJudge {
  switch (asked.operation) {
    case "ListPaths":
      return { operation, paths: [asked.directory] };
    case "RenamePath":
      return { operation, paths: [asked.source.path, path ?? ""] };
    case "CheckAccess":
      return { operation, paths: [path ?? ""], rights: asked.rights };
    default:
      return { operation, paths: [path ?? ""] };
  }
}

/** Returns the request with what was looked at, if the caller may do it. */
export async function admit<E extends OnPath>(exchange: E, toJudge: ToJudge | undefined): Promise<Parsed<E>> {
  const { judged } = exchange.access;
  if (!judged) return parsed(exchange);
  // Whoever needs a role has none that is enough.
  if (!toJudge) return forbidden;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const admitted = new Set<string>();
  for (const path of toJudge.paths) {
    const may = await admitPath(exchange, row.value, judged, toJudge, namesOf(path));
    if (!may.ok) return may;
    for (const id of may.value) admitted.add(id);
  }
  return parsed({ ...exchange, admitted });
}

/** Returns the ids on the way, as far as it leads. */
async function admitPath(
  exchange: OnPath,
  row: Container,
  judged: Identity,
  { operation, rights }: ToJudge,
  names: readonly string[],
): Promise<Parsed<readonly string[]>> {
  const found = await runInTree(exchange, treeNameOf(exchange, row), (context) => reach(context, names));
  if (!found.ok) return refused(found);
  const isThere = found.value.length === names.length;
  // A file on the way ends it: only whoever may look into its directory is told more than who may not.
  const onTheWay = isThere ? found.value : found.value.filter(({ held }) => held.kind === "directory");
  const chain: Named[] = [undefined, ...onTheWay.map(({ held }) => held)];
  const read = await readAll(exchange, row, chain);
  if (!read.ok) return read;
  // A file without content is not there yet.
  const path = isThere ? read.value.at(-1) : undefined;
  const above = (isThere ? read.value.slice(0, -1) : read.value).filter((each) => each !== undefined);
  if (above.length < chain.length - (isThere ? 1 : 0)) return rejected("BlobNotFound");
  if (!allows(judged, operation, above, path)) return forbidden;
  if (rights !== undefined && path && !grants(judged, path, rights)) return forbidden;
  return parsed(chain.map((held) => held?.id ?? rootId));
}

type GuardedPath = ReturnType<typeof guardedBy>;

/** Paths whose access control is read at once. */
const readAtOnce = 64;

/** Undefined: it was removed since, or has no content yet. */
async function readAll(exchange: OnPath, row: Container, paths: readonly Named[]): Promise<Parsed<readonly (GuardedPath | undefined)[]>> {
  const guarded: (GuardedPath | undefined)[] = [];
  for (let at = 0; at < paths.length; at += readAtOnce) {
    const some = paths.slice(at, at + readAtOnce);
    for (const access of await Promise.all(some.map((held) => readAccess(exchange, row, held)))) {
      if (!access.ok && access.error.code !== "BlobNotFound") return access;
      guarded.push(access.ok ? guardedBy(access.value) : undefined);
    }
  }
  return parsed(guarded);
}

/** Refuses at the first directories that may not; what is gone is left out. */
async function mayAll(
  exchange: OnPath,
  row: Container,
  directories: readonly Named[],
  may: (directory: GuardedPath) => boolean,
): Promise<Parsed<void>> {
  for (let at = 0; at < directories.length; at += readAtOnce) {
    const some = directories.slice(at, at + readAtOnce);
    for (const access of await Promise.all(some.map((held) => readAccess(exchange, row, held)))) {
      if (access.ok ? !may(guardedBy(access.value)) : access.error.code !== "BlobNotFound") return access.ok ? forbidden : access;
    }
  }
  return parsed(undefined);
}

/** Entries of a directory that are looked at in one turn; the directories among them are read at once. */
const entriesAtOnce = 256;

/** Refuses a recursive deletion of a directory if the caller may not empty it, or one below it. Ends when the client goes away. */
export async function mayRemoveBelow(
  exchange: OnPath,
  row: Container,
  directory: HeldEntry,
  names: readonly string[],
): Promise<Parsed<void>> {
  const { judged } = exchange.access;
  if (!judged) return parsed(undefined);
  let directories: Named[] = [directory];
  let continuation: Uint8Array | undefined;
  for (let isLast = false; ; ) {
    const may = await mayAll(exchange, row, directories, (each) => mayEmpty(judged, each));
    if (!may.ok) return may;
    if (isLast) return parsed(undefined);
    if (exchange.limits().signal?.aborted) return rejected("ServerBusy");
    const options = { recursive: true, entriesMax: entriesAtOnce, continuation };
    const page = await runInTree(exchange, treeNameOf(exchange, row), (context) => list(context, names, options));
    if (!page.ok) return refused(page);
    directories = page.value.entries.flatMap(({ held }) => (held.kind === "directory" ? [held] : []));
    continuation = page.value.continuation;
    isLast = continuation === undefined;
  }
}

/** Refuses a page of a list if the caller may not list one of these directories. */
export async function mayListAll(exchange: OnPath, row: Container, ids: readonly string[]): Promise<Parsed<void>> {
  const { judged } = exchange.access;
  if (!judged) return parsed(undefined);
  const directories = ids.map((id): Named => (id === rootId ? undefined : { kind: "directory", id, name: "" }));
  return mayAll(exchange, row, directories, (each) => mayList(judged, each));
}
