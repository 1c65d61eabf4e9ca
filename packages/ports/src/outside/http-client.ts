/**
 * HTTP out: reading from servers that are no part of this stamp. Nobody but who has a policy for it (`mayConnectTo`) may ask, and no answer
 * is followed elsewhere: a redirect is an answer like any other.
 */
import type { Outcome } from "@stamp/base";

export interface OutgoingRequest {
  readonly method: "GET" | "HEAD";
  /** True for HTTPS; the certificate must be vouched for by the authorities that the host trusts. */
  readonly secure: boolean;
  /** A name or an address, in lower case; an IPv6 address without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Path and query as they are sent: printable ASCII. */
  readonly target: string;
  /** All that is sent besides Host. Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface OutgoingOptions {
  /** Time until the head of the answer is there, with finding the host and connecting to it, in milliseconds. */
  readonly timeoutMs: number;
  /** Time from the head until the whole body is there, in milliseconds. */
  readonly bodyTimeoutMs: number;
  /** Time within which the next bytes of the body come, in milliseconds. */
  readonly idleTimeoutMs: number;
  readonly signal?: AbortSignal;
  /**
   * Called for every address that the host's name stands for when a connection is made, and for the address it came to. No byte is sent to
   * an address for which it says no.
   */
  readonly mayConnectTo: (address: string) => boolean;
}

export interface IncomingAnswer {
  readonly status: number;
  /** Names in lower case; one that came several times is joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values in turn, unchanged; absent: the client can't tell them. */
  readonly rawHeaders?: readonly string[];
  /** Slowed down by its reader, who reads it to its end or leaves it (`return`). Throws `FailureError` when it breaks off. */
  readonly body: AsyncIterableIterator<Uint8Array>;
}

/** Fails with `permissionDenied` (`unauthorized`) when the host has no address that may be connected to, else as unreachable or late. */
export interface HttpClient {
  request(request: OutgoingRequest, options: OutgoingOptions): Promise<Outcome<IncomingAnswer>>;
  /** Ends idle connections. */
  close(): void;
}
