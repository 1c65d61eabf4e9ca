/**
 * Writes of the Blob service that make a file or remove one. Put Blob, Put Block and Put Block List of a path where nothing is make an entry
 * first, and the directories above it. The entry's blob has no head until content is committed, so nobody finds the file before that, and
 * the commit is one of the blob: its conditions hold. A write that fails takes the entry away, if nobody else has written to it, blocks
 * without content among them. Whoever has met the entry and comes to write when it is gone is told to try again.
 */
import { newPathAccess, type Parsed, parseConditions, parsed, pathAccessText, rejected } from "@stamp/azure-rest";
import type { HeldEntry } from "@stamp/objects";
import { create, remove, resolve } from "@stamp/tree";
import { type BlobExchange, containerOfRequest } from "../blob/exchange.ts";
import { type Answer, respond } from "../exchange.ts";
import { changeAccess, creatorOf, readAccess } from "./access.ts";
import { namesOf, type OnPath, treeNameOf } from "./exchange.ts";
import { type Making, makeParents } from "./paths.ts";
import { refused } from "./refusals.ts";
import { runInTree } from "./run.ts";

export type WritingExchange = BlobExchange & Pick<OnPath, "resource">;

/** Times that others make and remove parts of the path meanwhile. */
const attemptsMax = 16;

/** Runs the write with a file under the path. */
export async function writeFile(exchange: WritingExchange, write: () => Promise<Answer>): Promise<Answer> {
  const type = exchange.headers["x-ms-blob-type"];
  if (exchange.operation === "PutBlob" && type?.toLowerCase() !== "blockblob" && type !== undefined) {
    return rejected("FeatureNotYetSupportedForHierarchicalNamespaceAccounts");
  }
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const row = await containerOfRequest(exchange);
  if (!row.ok) return row;
  const making: Making = { exchange, blob: exchange, row: row.value, tree: treeNameOf(exchange, row.value) };
  const names = namesOf(exchange.resource.path);
  const found = await fileAt(making, names, conditions.value.ifMatch === undefined && conditions.value.leaseId === undefined);
  if (!found.ok) return found;
  const { held, parent, isMade } = found.value;
  const takeAway = async (): Promise<void> => {
    const unwritten = { kind: "file" as const, recursive: false, conditions: { ifNoneMatch: "*" } };
    if (isMade) await runInTree(exchange, making.tree, (context) => remove(context, names, unwritten));
  };
  // A body that ends early is thrown.
  const answer = await write().catch(async (error: unknown) => {
    await takeAway();
    throw error;
  });
  if (!answer.ok) await takeAway();
  // These operations make what is not there: the entry has gone, or names another file, since it was looked at.
  if (!answer.ok && answer.error.code === "BlobNotFound") return rejected("ServerBusy");
  if (!answer.ok || exchange.operation === "PutBlock" || !parent) return answer;
  const access = await readAccess(exchange, row.value, parent.held);
  const creator = creatorOf(exchange);
  if (!access.ok || !creator.ok) return answer;
  const asked = { owner: undefined, group: undefined, permissions: undefined, lists: undefined };
  const own = newPathAccess("file", access.value, creator.value, { asked, umask: undefined });
  if (pathAccessText("file", own) !== "") await changeAccess(exchange, row.value, held, { conditions: {}, change: () => parsed(own) });
  return answer;
}

interface FileToWrite {
  readonly held: HeldEntry;
  /** Directory that a new file gets its access control from; undefined: the file is not new. */
  readonly parent: { readonly held: HeldEntry | undefined } | undefined;
  /** True if this request made the entry. */
  readonly isMade: boolean;
}

async function fileAt(making: Making, names: readonly string[], mayMake: boolean): Promise<Parsed<FileToWrite>> {
  const { exchange, row, tree } = making;
  if (names.length === 0) return rejected("InvalidUri");
  const creator = creatorOf(exchange);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const above = await runInTree(exchange, tree, (context) => resolve(context, names.slice(0, -1)));
    const found = above.ok ? await runInTree(exchange, tree, (context) => resolve(context, names, above.value)) : above;
    if (!found.ok && found.refusal !== "notFound") return refused(found);
    const held = found.ok ? found.value.at(-1)?.held : undefined;
    const parent = { held: above.ok ? above.value.at(-1)?.held : undefined };
    if (held?.kind === "directory") return rejected("ResourceTypeMismatch");
    if (held) {
      const blob = await readAccess(exchange, row, held);
      if (!blob.ok && blob.error.code !== "BlobNotFound") return blob;
      if (!blob.ok && !creator.ok) return creator;
      return parsed({ held, parent: blob.ok ? undefined : parent, isMade: false });
    }
    if (!mayMake) return rejected("ConditionNotMet", {}, { status: 412 });
    if (!creator.ok) return creator;
    if (!above.ok) {
      const made = await makeParents(making, names);
      if (made) return made;
      continue;
    }
    const made = await runInTree(exchange, tree, (context) => create(context, names, "file"));
    if (made.ok) return parsed({ held: made.value, parent, isMade: true });
    if (made.refusal !== "exists" && made.refusal !== "notFound") return refused(made);
  }
  return rejected("ServerBusy");
}

/** Delete Blob: a file, or a directory that is empty. */
export async function deleteFile(exchange: WritingExchange): Promise<Answer> {
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const row = await containerOfRequest(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const names = namesOf(exchange.resource.path);
  const options = { kind: "either" as const, recursive: false, conditions: conditions.value };
  const removed = await runInTree(exchange, tree, (context) => remove(context, names, options));
  if (removed.ok) return respond(202, { "x-ms-delete-type-permanent": "true" });
  const isAbsent = removed.refusal === "notFound" || removed.refusal === "notDirectory";
  return isAbsent ? rejected("BlobNotFound") : refused(removed);
}
