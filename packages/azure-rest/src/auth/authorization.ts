/**
 * What an operation asks of those who have no account key. Every service has a table with a row for each of its operations
 * (`blob/authorization.ts`, …), total by type: an operation without a row does not compile. A request may need more than its row says
 * (tags set while writing); the service's `authorizationOf` adds that.
 */

/**
 * Letters as in `sp` of a SAS. One letter of every group is needed: `["cw", "t"]` is create or write, and tags. "never": no SAS of this
 * kind is enough.
 */
export type PermissionGroups = readonly string[] | "never";

/** `srt` of an account SAS: the service, a container (queue, table), or an object in it (blob, message, entity). */
export type ResourceType = "s" | "c" | "o";

/** Roles of a bearer, each with what those before it may do. */
export const bearerRoles = ["read", "contribute", "own"] as const;
export type BearerRole = (typeof bearerRoles)[number];

export interface OperationAuthorization {
  /** Which resource type an account SAS must have for it; several letters: one of them. */
  readonly resourceType: string;
  readonly accountSas: PermissionGroups;
  /** A service or user delegation SAS whose resource covers what the request names. */
  readonly serviceSas: PermissionGroups;
  readonly role: BearerRole;
  /** With no authorization at all: "always", or where the container's public access says so ("blob": at least for its blobs). */
  readonly anonymous?: "always" | "blob" | "container";
}

/** Whether these permissions have one letter of every group. */
export const permits = (permissions: string, groups: PermissionGroups): boolean =>
  groups !== "never" && groups.every((group) => [...group].some((letter) => permissions.includes(letter)));

/** The same row, with further groups for both kinds of SAS. */
export function needingToo(row: OperationAuthorization, ...groups: readonly string[]): OperationAuthorization {
  const more = (had: PermissionGroups): PermissionGroups => (had === "never" ? had : [...had, ...groups]);
  return { ...row, accountSas: more(row.accountSas), serviceSas: more(row.serviceSas) };
}

/** What a request names, as a service SAS is made for it. Names are decoded. */
export type SignedResource =
  | { readonly kind: "account" }
  | { readonly kind: "container"; readonly container: string }
  | {
      readonly kind: "blob";
      readonly container: string;
      readonly blob: string;
      readonly snapshot?: string | undefined;
      readonly versionId?: string | undefined;
    }
  | { readonly kind: "queue"; readonly queue: string }
  | { readonly kind: "table"; readonly table: string };
