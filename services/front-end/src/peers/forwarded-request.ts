/** A request as its client sent it to a trusted proxy: what is behind the door sees the client, its scheme and the host it asked for. */
import { type Network, seenThroughProxies } from "@stamp/azure-rest";
import type { HttpHandler, HttpRequest, HttpResponse } from "@stamp/ports";

class ForwardedRequest implements HttpRequest {
  readonly #request: HttpRequest;
  readonly remoteAddress: string;
  readonly secure: boolean;
  readonly headers: Readonly<Record<string, string>>;

  constructor(request: HttpRequest, { remoteAddress, secure, headers }: Pick<HttpRequest, "remoteAddress" | "secure" | "headers">) {
    this.#request = request;
    this.remoteAddress = remoteAddress;
    this.secure = secure;
    this.headers = headers;
  }

  get method(): string {
    return this.#request.method;
  }

  get target(): string {
    return this.#request.target;
  }

  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders ?? [];
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#request.body;
  }

  async smallBody(): Promise<Uint8Array | undefined> {
    return this.#request.smallBody?.();
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }
}

/** Returns a handler that looks through the proxies; without proxies the handler itself. */
export function throughProxies(proxies: readonly Network[], handler: HttpHandler): HttpHandler {
  if (proxies.length === 0) return handler;
  const through = (request: HttpRequest): Promise<HttpResponse> => {
    const seen = seenThroughProxies(proxies, request);
    return handler(seen === request ? request : new ForwardedRequest(request, seen));
  };
  return Object.assign(through, handler.refused && { refused: handler.refused });
}
