/** Parts of answers of the service. */
import { EntityRefused } from "../entity-door.ts";
import type { StoredPolicy, Texts } from "../items.ts";

/** Says what lists of blobs are asked for. */
export interface Listing {
  /** False from the moment on when the server refuses to list versions. */
  versions: boolean;
  included(versions: boolean): { readonly includeSnapshots?: boolean; readonly includeVersions?: boolean };
}

export const statusOf = (error: unknown): number | undefined => (error as { readonly statusCode?: number }).statusCode;

/** Statuses by which a service says that it does not take a thing as it is, and never will. */
const refusals = [400, 409, 412, 413];
/** Codes of Node: no header can carry the text. */
const uncarried = ["ERR_INVALID_CHAR", "ERR_INVALID_HTTP_TOKEN"];

/** Says why a text with a lone surrogate is not put: UTF-8 has no bytes for it. */
export const halfCharacter = "a text of it has half of a character, which UTF-8 has not";

/** Why the service, or HTTP, does not take a thing; undefined for failures that have nothing to do with the thing. */
export function refusalOf(error: unknown): string | undefined {
  const {
    statusCode,
    status = statusCode,
    code = "",
  } = error as { readonly statusCode?: number; readonly status?: number; readonly code?: string };
  if (error instanceof URIError) return halfCharacter;
  if (uncarried.includes(code)) return "no header of HTTP can carry a text of it";
  if (status === undefined || !refusals.includes(status) || /BeingDeleted|Disabled/.test(code)) return undefined;
  return code === "" && error instanceof EntityRefused ? error.message : `the service answers ${status} ${code}`.trimEnd();
}

export const timeText = (time: Date | string | undefined): string =>
  time === undefined ? "" : typeof time === "string" ? time : Number.isNaN(time.getTime()) ? "" : time.toISOString();

/** Leaves out what is not set. `empty`: empty texts are values, too. */
export const textsOf = (texts: Readonly<Record<string, unknown>> | undefined, empty = false): Texts =>
  Object.fromEntries(
    Object.entries(texts ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === "string" && (empty || entry[1] !== "")),
  );

interface SignedIdentifierAnswer {
  readonly id: string;
  readonly accessPolicy?: {
    readonly permissions?: string;
    readonly startsOn?: Date | undefined;
    readonly expiresOn?: Date | undefined;
    readonly permission?: string;
    readonly start?: Date;
    readonly expiry?: Date;
  };
}

/** The SDK of tables has other names than the SDKs of blobs and queues. */
export const policiesOf = (identifiers: readonly SignedIdentifierAnswer[] | undefined): readonly StoredPolicy[] =>
  (identifiers ?? []).map(({ id, accessPolicy: policy = {} }) => ({
    id,
    permissions: policy.permissions ?? policy.permission ?? "",
    startsOn: timeText(policy.startsOn ?? policy.start),
    expiresOn: timeText(policy.expiresOn ?? policy.expiry),
  }));
