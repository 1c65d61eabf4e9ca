/**
 * Where an operation belongs: its table, the key by which its range is found, and the key of the row whose order it keeps. The
 * front-end routes by it and the partition server checks by it, so that both always mean the same place. Takes the wire's operations as
 * well as ours: only names are looked at.
 */
import { assert, type Rules } from "@stamp/base";
import { type ListStart, listStart } from "./list-start.ts";
import { accountKey, accountsFrom, blobPrefix, blobsPrefix, containerKey, containersPrefix } from "./object-keys.ts";
import { isOnMessages, type RoutableQueueKind, routeOfQueue } from "./queues/routing.ts";
import type { ObjectTable } from "./rows/schemas.ts";
import type { TableOperation } from "./tables/operation.ts";
import { lockKeysOfTables, routeOfTables } from "./tables/routing.ts";

interface Named {
  readonly account: string;
  readonly container: string;
  readonly containerIncarnation: number | bigint;
  readonly blob: string;
}

interface OfContainer {
  readonly account: string;
  readonly container: string;
}

type OnBlobKind =
  | "putBlob"
  | "getBlob"
  | "setBlobMetadata"
  | "setBlobHeaders"
  | "deleteBlob"
  | "putBlock"
  | "putBlockList"
  | "getBlockList"
  | "appendBlock"
  | "sealBlob"
  | "putPages"
  | "clearPages"
  | "setPageBlobProperties"
  | "getPageRanges"
  | "readParts"
  | "startCopy"
  | "addToCopy"
  | "endCopy"
  | "abortCopy"
  | "claimCopy"
  | "leaseBlob"
  | "snapshotBlob"
  | "undeleteBlob"
  | "setBlobTags"
  | "setBlobTier"
  | "setBlobExpiry"
  | "setImmutabilityPolicy"
  | "deleteImmutabilityPolicy"
  | "setLegalHold";

type OnContainerKind =
  | "createContainer"
  | "getContainer"
  | "setContainerMetadata"
  | "setContainerAcl"
  | "deleteContainer"
  | "leaseContainer"
  | "restoreContainer"
  | "markProtected"
  | "beginDeletion";

/**
 * The part of an operation that routing reads. Both `Operation` of this package and `Operation["kind"]` of the wire
 * fit.
 */
export type Routable =
  | { readonly case: "listAccounts"; readonly value: ListStart }
  | { readonly case: "getAccount" | "changeAccount"; readonly value: { readonly account: string } }
  | { readonly case: "putAccount"; readonly value: { readonly account?: { readonly name: string } | undefined } }
  | { readonly case: OnContainerKind; readonly value: OfContainer }
  | { readonly case: "listContainers"; readonly value: { readonly account: string } & ListStart }
  | { readonly case: "table"; readonly value: TableOperation }
  | { readonly case: "queue"; readonly value: { readonly kind?: RoutableQueueKind | { readonly case?: undefined } | undefined } }
  | { readonly case: OnBlobKind; readonly value: { readonly name?: Named | undefined } }
  | {
      readonly case: "listBlobs" | "findBlobs";
      readonly value: OfContainer & {
        readonly containerIncarnation: number | bigint;
      } & ListStart;
    };

export interface Route {
  readonly table: ObjectTable;
  readonly key: Uint8Array;
}

/** An operation on a blob must have a name, and putAccount an account: the one who makes it from user input sees to that. */
export function routeOf(rules: Rules, operation: Routable): Route {
  switch (operation.case) {
    case "listAccounts":
      return { table: "Account", key: accountsFrom(operation.value.marker ?? "") };
    case "getAccount":
    case "changeAccount":
      return { table: "Account", key: accountKey(operation.value.account) };
    case "putAccount":
      assert(operation.value.account !== undefined, "putAccount has an account");
      return { table: "Account", key: accountKey(operation.value.account.name) };
    case "createContainer":
    case "getContainer":
    case "setContainerMetadata":
    case "setContainerAcl":
    case "deleteContainer":
    case "leaseContainer":
    case "restoreContainer":
    case "markProtected":
    case "beginDeletion":
      return { table: "Blob", key: containerKey(operation.value.account, operation.value.container) };
    case "listContainers":
      return { table: "Blob", key: listStart((text) => containersPrefix(operation.value.account, text), operation.value) };
    case "listBlobs":
    case "findBlobs": {
      const container = { ...named(operation.value), container: operation.value.container };
      return { table: "Blob", key: listStart((text) => blobsPrefix(rules, container, text), operation.value) };
    }
    case "table":
      return routeOfTables(rules, operation.value);
    case "queue": {
      const kind = operation.value.kind;
      assert(kind?.case !== undefined, "an operation on queues has a kind");
      return routeOfQueue(rules, kind);
    }
    default: {
      const name = operation.value.name;
      assert(name !== undefined, "an operation on a blob has a name");
      return { table: "Blob", key: blobPrefix(rules, { ...named(name), container: name.container, blob: name.blob }) };
    }
  }
}

const named = (name: { readonly account: string; readonly containerIncarnation: number | bigint }) => ({
  account: name.account,
  containerIncarnation: Number(name.containerIncarnation),
});

/** Operations that share a lock key are decided one after another; others, independently. Reads need none. */
export const lockKeysOf = (rules: Rules, operation: Routable): Uint8Array[] =>
  operation.case === "table" ? lockKeysOfTables(rules, operation.value) : [routeOf(rules, operation).key];

/** Whether many of one lock key are decided before the first of them is durable: each sees what those before it decided. */
export function isPipelined(operation: Routable): boolean {
  const kind = operation.case === "queue" ? operation.value.kind?.case : undefined;
  return kind !== undefined && isOnMessages(kind);
}
