/** What makes a service: the part of the REST API that the door (door.ts) serves on one port. */
import type { HttpHeaders, Parsed, RestError, Target } from "@stamp/azure-rest";
import type { Answer, Exchange } from "./exchange.ts";

export interface RestService {
  readonly name: "blob" | "queue" | "table";
  /** As in the Server header. */
  readonly serverName: string;
  /** Suffixes of host names whose first label is the account. */
  readonly hostSuffixes: readonly string[];
  /** Which operation a request is, by method, target and headers; what can be refused without asking anybody is refused. */
  recognize(method: string, target: Target, headers: HttpHeaders): Parsed<RecognizedOperation>;
  /** The body of an error, in the form that the request asks for. */
  errorBody(error: RestError, about: ErrorAbout): { readonly contentType: string; readonly text: string };
}

export interface RecognizedOperation {
  /** As the REST reference names it, in one word: PutBlob. */
  readonly name: string;
  /** Whether it may be tried without Authorization; the handler decides. */
  readonly mayBeAnonymous: boolean;
  serve(exchange: Exchange): Promise<Answer>;
}

export interface ErrorAbout {
  readonly requestId: string;
  readonly nowMs: number;
  readonly headers: HttpHeaders;
}
