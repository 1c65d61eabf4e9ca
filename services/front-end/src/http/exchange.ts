/** One request on its way through the door: what was found out about it so far. */
import { type HttpHeaders, type Parsed, parsed, type ResponseHeaders, type ServiceProperties, type Target } from "@stamp/azure-rest";
import type { HttpRequest, HttpResponse } from "@stamp/ports";
import type { Objects } from "../objects.ts";
import type { CallLimits } from "../router.ts";

export interface Exchange {
  readonly objects: Objects;
  readonly request: HttpRequest;
  readonly headers: HttpHeaders;
  readonly target: Target;
  readonly version: string;
  /** Without Authorization: only what the object's public access allows. */
  readonly anonymous: boolean;
  readonly access: Access;
  /** Of this service in this account, at most some seconds old. */
  readonly serviceProperties: ServiceProperties;
  /** What is left of the time for this request, counted from now on. */
  readonly limits: () => CallLimits;
}

/** By what right a request that was let in is here. */
export interface Access {
  readonly by: "key" | "anonymous";
  /** Whether it may also do what needs this permission of a SAS: `w` to overwrite what `c` alone could only create. */
  may(permission: string): boolean;
}

/** What an operation answers; the door adds what every answer has. */
export type Answer = Parsed<HttpResponse>;

export const respond = (status: number, headers: ResponseHeaders = {}, body?: HttpResponse["body"]): Answer =>
  parsed(body === undefined ? { status, headers } : { status, headers, body });

/** `http://host/` or `http://host/account/`, as lists show it. */
export function serviceEndpoint(exchange: Exchange): string {
  const scheme = exchange.request.secure ? "https" : "http";
  const host = exchange.headers.host ?? "localhost";
  return exchange.target.addressing === "host" ? `${scheme}://${host}/` : `${scheme}://${host}/${exchange.target.account}/`;
}
