/** A request of the Files service: its share, and the file or directory that its path names. */
import { type FileResource, notImplemented, type Parsed, parsed, queryValue, rejected } from "@stamp/azure-rest";
import { type HeldEntry, shareContainer, type TreeName } from "@stamp/objects";
import { resolve } from "@stamp/tree";
import { type Blob, type Container, fromWire } from "@stamp/wire";
import type { LocatedBlob } from "../../objects/objects.ts";
import type { WireConditions } from "../../objects/wire-conditions.ts";
import type { Answer, Exchange } from "../exchange.ts";
import { refusedFile } from "./refusals.ts";

export interface FileExchange extends Exchange {
  readonly resource: FileResource;
}

export type FileHandler = (exchange: FileExchange) => Promise<Answer>;

/** Name of the container that the request's share is. */
export const containerName = ({ resource }: FileExchange): string => shareContainer(resource.share ?? "");

export const shareRow = (exchange: FileExchange): Promise<Parsed<Container>> =>
  exchange.objects.container(exchange.target.account, containerName(exchange), exchange.limits());

export const treeNameOf = (exchange: FileExchange, row: Container): TreeName => ({
  account: exchange.target.account,
  filesystem: row.name,
  incarnation: fromWire(row.incarnation),
});

/** The blob that holds content and properties of what has this id. */
export const locatedOf = (exchange: FileExchange, row: Container, id: string): LocatedBlob =>
  exchange.objects.located({ account: exchange.target.account, container: row.name, blob: id }, row);

/** A file or directory that a path names. */
export interface FoundEntry {
  readonly row: Container;
  readonly name: LocatedBlob;
  readonly held: HeldEntry;
  /** Id of the directory that it is in; undefined: the root. */
  readonly parentId: string | undefined;
}

/** Finds the entry of the request's path; `root` if the path is empty. Refuses one of the other kind. */
export async function entryOf(
  exchange: FileExchange,
  kind: HeldEntry["kind"],
): Promise<Parsed<FoundEntry | { readonly row: Container; readonly root: true }>> {
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const { path } = exchange.resource;
  if (path.length === 0) return parsed({ row: row.value, root: true });
  const tree = treeNameOf(exchange, row.value);
  const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, path), exchange.limits());
  if (!found.ok) {
    if (found.refusal !== "notFound" && found.refusal !== "notDirectory") return refusedFile(found);
    return rejected((await hasParent(exchange, tree)) ? "ResourceNotFound" : "ParentNotFound");
  }
  const held = found.value.at(-1)?.held as HeldEntry;
  // Clients that look whether a path is a file or a directory take another error for a failure.
  if (held.kind !== kind) return rejected("ResourceNotFound");
  return parsed({ row: row.value, held, name: locatedOf(exchange, row.value, held.id), parentId: found.value.at(-2)?.held.id });
}

async function hasParent(exchange: FileExchange, tree: TreeName): Promise<boolean> {
  const above = exchange.resource.path.slice(0, -1);
  const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, above), exchange.limits());
  return found.ok && found.value.at(-1)?.held.kind !== "file";
}

/** Finds the entry, and refuses the root: it has none. */
export async function belowRoot(exchange: FileExchange, kind: HeldEntry["kind"]): Promise<Parsed<FoundEntry>> {
  const found = await entryOf(exchange, kind);
  if (!found.ok) return found;
  return "root" in found.value ? notImplemented("This operation on the root directory of a share") : parsed(found.value);
}

export async function headOf(exchange: FileExchange, name: LocatedBlob, conditions: WireConditions = {}): Promise<Parsed<Blob>> {
  const value = { name, conditions, withoutContent: true };
  return exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
}

const conditionHeaders = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"] as const;

/** Files have no conditions but leases: the last writer wins. */
export function leaseOf({ headers, target }: FileExchange): Parsed<WireConditions> {
  if (conditionHeaders.some((name) => headers[name] !== undefined)) return rejected("ConditionHeadersNotSupported");
  if (queryValue(target.query, "sharesnapshot") !== undefined) return notImplemented("Snapshots of shares (sharesnapshot)");
  const leaseId = headers["x-ms-lease-id"];
  return parsed(leaseId === undefined ? {} : { leaseId });
}
