/** Request on its way through the door, with the facts that were found so far. */
import {
  type HttpHeaders,
  type Identity,
  type OperationAuthorization,
  type Parsed,
  parsed,
  type ResponseHeaders,
  type ServiceProperties,
  secondaryName,
  type Target,
} from "@stamp/azure-rest";
import type { Cause, HttpRequest, HttpResponse } from "@stamp/ports";
import type { AccountKeys, Accounts } from "../accounts/accounts.ts";
import type { Objects } from "../objects/objects.ts";
import type { CallLimits } from "../routing/router.ts";
import type { Bearer } from "./bearer.ts";
import type { WrittenText } from "./turns.ts";

export interface Exchange {
  /** Goes along with every call that is made for this request. */
  readonly cause: Cause;
  readonly objects: Objects;
  readonly request: HttpRequest;
  readonly headers: HttpHeaders;
  readonly target: Target;
  readonly version: string;
  /** True if the request has no Authorization: it gets what the object's public access allows. */
  readonly anonymous: boolean;
  readonly access: Access;
  /** Ids of files and directories whose access control was looked at for this request; undefined: it has not to be (dfs/judge.ts). */
  readonly admitted?: Set<string>;
  readonly account: AccountKeys;
  readonly accounts: Accounts;
  /** Properties of this service in this account, at most some seconds old. */
  readonly serviceProperties: ServiceProperties;
  /** Suffixes of host names that the service has (target.ts). */
  readonly hostSuffixes: readonly string[];
  /** Admits a request that comes inside of this one, by its version, if it is one of these operations. */
  readonly admit: (request: InnerRequest, only: ReadonlySet<string>) => Promise<Parsed<Exchange>>;
  /** Admits an inner request and serves it. */
  readonly inner: (request: InnerRequest, only: ReadonlySet<string>) => Promise<HttpResponse>;
  /** Returns the rest of the request's time, counted from now on. */
  readonly limits: () => CallLimits;
}

export interface InnerRequest {
  readonly method: string;
  /** Path and query of the inner request. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: HttpHeaders;
}

/** Bounds of keys, inclusive; "": none. A row key counts only together with the partition key of the same end. */
export interface EntityRange {
  readonly startPartitionKey: string;
  readonly startRowKey: string;
  readonly endPartitionKey: string;
  readonly endRowKey: string;
}

/** Right by which a request was let in. */
export interface Access {
  readonly by: "key" | "sas" | "bearer" | "anonymous";
  /** True if the caller also has what this permission of a SAS needs: `w` to overwrite what `c` alone could only create. */
  may(permission: string): boolean;
  /** Refuses if the caller may not also do another operation, with that one's needs: for operations inside a transaction. */
  allows(operation: string, needs: OperationAuthorization): Parsed<void>;
  /** Public access that lets an anonymous request in; whether the container has it is asked where its row is read. */
  readonly publicFor?: "blob" | "container" | undefined;
  /** Headers that a SAS puts in the place of the blob's own. */
  readonly overrides?: ResponseHeaders;
  /** Encryption scope that a SAS gives to writes. */
  readonly encryptionScope?: string;
  /** Entities that a table's SAS is for; undefined: all. */
  readonly entityRange?: EntityRange;
  /** Identity that the access control of the path has to let in; undefined: the request was let in without. */
  readonly judged?: Identity;
  /** Id of whom a new path belongs to; undefined: the superuser. */
  readonly ownerId?: string;
  /** Bearer in whose name a user delegation key is made. */
  readonly bearer?: Bearer;
}

/** Answer of an operation; the door adds what every answer has. */
export type Answer = Parsed<HttpResponse>;

export const respond = (status: number, headers: ResponseHeaders = {}, body?: HttpResponse["body"]): Answer =>
  parsed(body === undefined ? { status, headers } : { status, headers, body });

/** Answers with a text in memory that is used again when the answer was sent. */
export const respondText = (headers: ResponseHeaders, { bytes, giveBack }: WrittenText): Answer =>
  parsed({ status: 200, headers, body: bytes, sent: giveBack });

/** Returns `http://host/` or `http://host/account/`, as lists show it. */
export function serviceEndpoint(exchange: Exchange): string {
  const scheme = exchange.request.secure ? "https" : "http";
  const host = exchange.headers.host ?? "localhost";
  const { account, secondary, addressing } = exchange.target;
  return addressing === "host" ? `${scheme}://${host}/` : `${scheme}://${host}/${secondary ? secondaryName(account) : account}/`;
}
