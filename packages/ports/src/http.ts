/**
 * HTTP as the front-end sees it: what `node:http` gives in production, what a workload makes in the simulator. Header names are
 * lower case; a header that came several times is joined by ", ".
 */
export interface HttpRequest {
  readonly method: string;
  /** Path and query exactly as they came, undecoded; of an absolute-form target, the part behind the authority. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values in turn, unchanged; absent: nobody needs them. */
  readonly rawHeaders?: readonly string[];
  /**
   * In chunks of at most 1 MiB, slowed down by its reader. Throws when the client went away or sent less than it announced; with the detail
   * `slow: "client"` when it sends too slowly.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /**
   * Returns the whole body if it is small and came with the head; then `body` is not read. Undefined: it has to be read from `body`. Absent
   * at doors that do not know.
   */
  smallBody?(): Promise<Uint8Array | undefined>;
  readonly remoteAddress: string;
  readonly secure: boolean;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** Body that arrives in chunks. */
export interface HttpBody extends AsyncIterable<Uint8Array> {
  /**
   * Called when the system has taken a chunk: nobody looks at its bytes any more. Never called for a chunk that was not taken whole, and by
   * doors that can't tell.
   */
  taken?(chunk: Uint8Array): void;
}

export interface HttpResponse {
  readonly status: number;
  /** Headers by the service's spelling of names; an array is sent as that many headers. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Text behind the status in the first line: printable ASCII. Absent: the one that HTTP has for the status. */
  readonly reason?: string;
  readonly body?: Uint8Array | HttpBody;
  /**
   * Called once when the system has taken the whole answer: nobody looks at the bytes of `body` any more. Never called if the answer was not
   * taken whole, and by doors that can't tell.
   */
  readonly sent?: (() => void) | undefined;
  /** True to end the connection without an answer; nothing else of the response is sent. */
  readonly endsConnection?: boolean;
}

/** Why a request never became one. */
export type HttpRefusal =
  /** The first line does not begin with a method that HTTP knows, or is a CONNECT. */
  | "verb"
  | "target"
  | "header"
  | "headersTooLarge"
  | "contentLength"
  | "transferEncoding"
  | "hostMissing"
  | "expectation"
  /** Sent ahead, behind more requests than one connection may have without an answer. */
  | "pipelined"
  /** The request's headers did not come in time. */
  | "late"
  /** Anything else that is no HTTP, as a chunk without a length. */
  | "malformed";

export interface HttpHandler {
  /** Never throws: a bug inside becomes a 500. */
  (request: HttpRequest): Promise<HttpResponse>;
  /** Answers bytes that are no request, before their connection ends; absent: a bare status is sent. */
  readonly refused?: (why: HttpRefusal) => HttpResponse & { readonly body?: Uint8Array };
}
