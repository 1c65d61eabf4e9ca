/**
 * Needs of operations for callers without an account key: the types, and the function that turns the table
 * (permissions.ts) into the needs of one request. Nothing else adds to or takes from these needs.
 */

import type { HttpHeaders } from "../headers.ts";
import { type Query, queryValue } from "../target.ts";

/**
 * Letters as in `sp` of a SAS. One letter of every group is needed: `["cw", "t"]` is create or write, and tags. "never": no SAS of this
 * kind is enough.
 */
export type PermissionGroups = readonly string[] | "never";

/** Roles of a bearer, each with what those before it may do. */
export const bearerRoles = ["read", "contribute", "own"] as const;
export type BearerRole = (typeof bearerRoles)[number];

export interface OperationAuthorization {
  /** Resource type that an account SAS must have for the operation; several letters: one of them. */
  readonly resourceType: string;
  readonly accountSas: PermissionGroups;
  /** Needs of a service SAS whose resource covers what the request names. */
  readonly serviceSas: PermissionGroups;
  /** Needs of a user delegation SAS whose resource covers what the request names. */
  readonly delegationSas: PermissionGroups;
  /** `sv` since which a letter counts for this operation. A letter that is not named counts in every version that has it. */
  readonly since?: Readonly<Record<string, string>>;
  readonly role: BearerRole;
  /** True for an operation on a path, which lists of access control may allow where the role is not enough. */
  readonly byLists?: boolean;
  /** Public access of the container that lets everybody in: "blob" is at least for its blobs. Undefined: nobody is let in. */
  readonly anonymous?: "blob" | "container" | undefined;
}

const anyLetter = "rwdlacxyupftmeoi";

const groups = (text: string): PermissionGroups => (text === "-" ? "never" : text === "*" ? [anyLetter] : text.split("+"));

/** Needs of an operation, letters as in the tables of rows: groups are joined by "+"; "-" is never, "*" any letter. */
export const needs = (
  resourceType: string,
  accountSas: string,
  serviceSas: string,
  delegationSas: string,
  role: BearerRole,
  anonymous?: "blob" | "container",
): OperationAuthorization => ({
  resourceType,
  accountSas: groups(accountSas),
  serviceSas: groups(serviceSas),
  delegationSas: groups(delegationSas),
  role,
  ...(anonymous === undefined ? {} : { anonymous }),
});

/** A header or a parameter that makes a request ask for more (or for something else) than the row of its operation says. */
export interface Widening {
  /** Names of operations, or every operation of the service. */
  readonly operations: readonly string[] | "all";
  readonly header?: string;
  readonly parameter?: string;
  /**
   * Values, in lower case, for which it counts. `item`: as one of a list separated by commas. `not`: for every other value.
   * Undefined: for any value that is not empty.
   */
  readonly values?: { readonly is?: readonly string[]; readonly item?: readonly string[]; readonly not?: readonly string[] };
  /** A further group that every kind of SAS needs. */
  readonly adds?: string;
  /** Groups that every kind of SAS needs in place of those of the row. */
  readonly instead?: PermissionGroups;
  readonly since?: Readonly<Record<string, string>>;
  /** Least role of a bearer. */
  readonly role?: BearerRole;
  /** True if nobody is let in without authorization. */
  readonly notAnonymous?: boolean;
}

/** True if the permissions have a letter of every group. */
export const permits = (permissions: string, groups: PermissionGroups): boolean =>
  groups !== "never" && groups.every((group) => [...group].some((letter) => permissions.includes(letter)));

/** True if role ranks at least as high as needed. */
export const mayAs = (role: BearerRole, needed: BearerRole): boolean => bearerRoles.indexOf(role) >= bearerRoles.indexOf(needed);

export interface WideningRequest {
  readonly headers: HttpHeaders;
  readonly query: Query;
}

/** Returns the row with every widening that this request has. */
export function widenedNeeds(
  row: OperationAuthorization,
  operation: string,
  widenings: readonly Widening[],
  request: WideningRequest,
): OperationAuthorization {
  let needs = row;
  for (const one of widenings) if (applies(one, operation, request)) needs = withWidening(needs, one);
  return needs;
}

function applies({ operations, header, parameter, values }: Widening, operation: string, { headers, query }: WideningRequest): boolean {
  if (operations !== "all" && !operations.includes(operation)) return false;
  if (header !== undefined) {
    const text = headers[header]?.toLowerCase();
    if (text === undefined) return false;
    return values?.is ? values.is.includes(text) : true;
  }
  if (parameter === undefined) return false;
  if (values?.item) {
    const items = (query.get(parameter) ?? []).join(",").toLowerCase().split(",");
    return values.item.some((item) => items.some((one) => one.trim() === item));
  }
  // Handlers read the first value and take an empty one for none.
  const text = queryValue(query, parameter)?.toLowerCase() ?? "";
  if (text === "") return false;
  if (values?.not) return !values.not.includes(text);
  return values?.is ? values.is.includes(text) : true;
}

function withWidening(needs: OperationAuthorization, { adds, instead, since, role, notAnonymous }: Widening): OperationAuthorization {
  const more = (had: PermissionGroups): PermissionGroups => {
    // A kind of SAS that is never enough for the operation is not enough for a variant of it.
    const groups = had === "never" ? had : (instead ?? had);
    return groups === "never" || adds === undefined ? groups : [...groups, adds];
  };
  const { anonymous, ...rest } = needs;
  return {
    ...rest,
    accountSas: more(needs.accountSas),
    serviceSas: more(needs.serviceSas),
    delegationSas: more(needs.delegationSas),
    ...(since === undefined ? {} : { since: { ...needs.since, ...since } }),
    role: role === undefined || mayAs(needs.role, role) ? needs.role : role,
    ...(notAnonymous || anonymous === undefined ? {} : { anonymous }),
  };
}

/** Resource of a request, as a service SAS is made for it. Names are decoded. */
export type SignedResource =
  | { readonly kind: "account" }
  /** `directory`: directory whose paths are listed, without slashes at its ends. */
  | { readonly kind: "container"; readonly container: string; readonly directory?: string | undefined }
  | {
      readonly kind: "blob";
      readonly container: string;
      readonly blob: string;
      readonly snapshot?: string | undefined;
      readonly versionId?: string | undefined;
    }
  | { readonly kind: "queue"; readonly queue: string }
  | { readonly kind: "table"; readonly table: string }
  | { readonly kind: "share"; readonly share: string }
  /** A file or directory; `path` without a slash before it. */
  | { readonly kind: "file"; readonly share: string; readonly path: string };
