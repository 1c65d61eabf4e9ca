/** Where accounts, containers and blobs belong. Takes the wire's values as well as ours: only names are looked at. */
import { assert, type Rules } from "@stamp/base";
import { type ListStart, listStart } from "../list-start.ts";
import { accountKey, accountsFrom, blobPrefix, blobsPrefix, containerKey, containersPrefix } from "../object-keys.ts";
import type { Route } from "./row.ts";

export interface OfAccount {
  readonly account: string;
}

export interface OfContainer extends OfAccount {
  readonly container: string;
}

export interface LocatedContainer extends OfContainer {
  readonly containerIncarnation: number | bigint;
}

export interface NamedBlob extends LocatedContainer {
  readonly blob: string;
}

export const accountRoute = (_rules: Rules, { account }: OfAccount): Route => ({ table: "Account", key: accountKey(account) });

export const accountsRoute = (_rules: Rules, { marker = "" }: ListStart): Route => ({ table: "Account", key: accountsFrom(marker) });

/** Returns the place of an operation on an account. Whoever makes the operation from a request checks that it names one. */
export function wholeAccountRoute(_rules: Rules, { account }: { readonly account?: { readonly name: string } | undefined }): Route {
  assert(account !== undefined, "putAccount has an account");
  return { table: "Account", key: accountKey(account.name) };
}

export const containerRoute = (_rules: Rules, { account, container }: OfContainer): Route => ({
  table: "Blob",
  key: containerKey(account, container),
});

export const containersRoute = (_rules: Rules, value: OfAccount & ListStart): Route => ({
  table: "Blob",
  key: listStart((text) => containersPrefix(value.account, text), value),
});

export const blobsRoute = (rules: Rules, value: LocatedContainer & ListStart): Route => ({
  table: "Blob",
  key: listStart((text) => blobsPrefix(rules, located(value), text), value),
});

/** Returns the place of an operation on a blob. Whoever makes the operation from a request checks that it has a name. */
export function blobRoute(rules: Rules, { name }: { readonly name?: NamedBlob | undefined }): Route {
  assert(name !== undefined, "an operation on a blob has a name");
  return { table: "Blob", key: blobPrefix(rules, { ...located(name), blob: name.blob }) };
}

const located = ({ account, container, containerIncarnation }: LocatedContainer) => ({
  account,
  container,
  containerIncarnation: Number(containerIncarnation),
});
